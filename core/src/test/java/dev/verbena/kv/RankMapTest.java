package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Which rank holds and writes which heads, with more and with fewer ranks than heads. */
class RankMapTest {

    @Test
    void dividesHeadsAmongRanks() {
        TensorParallel ranks = new TensorParallel(2, 8);

        assertThat(ranks.headsPerRank()).isEqualTo(4);
        assertThat(ranks.replicas()).isEqualTo(1);
        assertThat(ranks.firstHead(0)).isZero();
        assertThat(ranks.firstHead(1)).isEqualTo(4);
    }

    @Test
    void replicatesHeadsWhenThereAreMoreRanks() {
        TensorParallel ranks = new TensorParallel(16, 4);

        assertThat(ranks.headsPerRank()).isEqualTo(1);
        assertThat(ranks.replicas()).isEqualTo(4);
        assertThat(IntStream.range(0, 16).map(ranks::firstHead))
                .containsExactly(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    }

    @Test
    void everyHeadOfADecodeRankHasExactlyOneWriter() {
        Seeds.forEach(
                1000,
                random -> {
                    RandomRanks ranks = new RandomRanks(random);
                    for (int decodeRank = 0; decodeRank < ranks.decodeSize; decodeRank++) {
                        int[] written =
                                IntStream.of(ranks.map.writersOf(decodeRank))
                                        .flatMap(writer ->
                                                Arrays.stream(
                                                        ranks.headsOf(writer, ranks.prefillSize)))
                                        .sorted()
                                        .toArray();
                        int[] held = ranks.headsOf(decodeRank, ranks.decodeSize);
                        assertThat(written).doesNotHaveDuplicates().contains(held);
                    }
                });
    }

    @Test
    void readersAndWritersAgree() {
        Seeds.forEach(
                300,
                random -> {
                    RandomRanks ranks = new RandomRanks(random);
                    for (int prefillRank = 0; prefillRank < ranks.prefillSize; prefillRank++) {
                        int[] readers = ranks.map.readersOf(prefillRank);
                        for (int decodeRank = 0; decodeRank < ranks.decodeSize; decodeRank++) {
                            boolean reads = contains(readers, decodeRank);
                            boolean faces =
                                    contains(ranks.map.prefillRanksOf(decodeRank), prefillRank);
                            assertThat(contains(ranks.map.writersOf(decodeRank), prefillRank))
                                    .isEqualTo(reads);
                            assertThat(ranks.map.writes(prefillRank, decodeRank)).isEqualTo(reads);
                            assertThat(faces || !reads).isTrue();
                        }
                    }
                });
    }

    @Test
    void makesDummiesOfReplicasThatAreNotNeeded() {
        RankMap ranks = RankMap.of(16, 4, 4);

        assertThat(ranks.prefillRanksOf(3)).containsExactly(12, 13, 14, 15);
        assertThat(ranks.writersOf(3)).containsExactly(12);
        assertThat(ranks.readersOf(12)).containsExactly(3);
        assertThat(ranks.readersOf(13)).isEmpty();
    }

    @Test
    void spreadsWritersOverReplicasWhenBothSidesReplicate() {
        RankMap ranks = RankMap.of(4, 8, 2);

        assertThat(IntStream.range(0, 8).map(rank -> ranks.writersOf(rank)[0]))
                .containsExactly(0, 0, 1, 1, 2, 2, 3, 3);
    }

    @Test
    void letsOneRankWriteTheLatentOfADecodeRank() {
        RankMap ranks = RankMap.of(8, 2, 1);

        assertThat(ranks.writersOf(1)).containsExactly(4);
        assertThat(ranks.slice(4, 1)).isEqualTo(new HeadSlice(1, 1, 0, 1, 0));
    }

    @Test
    void slicesBothWays() {
        assertThat(RankMap.of(4, 1, 8).slice(2, 0)).isEqualTo(new HeadSlice(2, 2, 0, 8, 4));
        assertThat(RankMap.of(1, 4, 8).slice(0, 2)).isEqualTo(new HeadSlice(2, 8, 4, 2, 0));
        assertThat(RankMap.of(1, 4, 8).pair(0, 2)).isEqualTo(new RankPair(1, 0, 4, 2));
    }

    @Test
    void refusesSizesOfWhichNeitherDividesTheOther() {
        assertThatThrownBy(() -> RankMap.of(2, 3, 6))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("prefill TP size 2 and decode TP size 3: neither divides the other");
        assertThatThrownBy(() -> RankMap.of(4, 4, 6))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("TP size 4 and 6 KV heads: neither divides the other");
        assertThatThrownBy(() -> new RankPair(6, 0, 4, 0))
                .hasMessage("prefill TP size 6 and decode TP size 4: neither divides the other");
    }

    @Test
    void refusesSidesOfDifferentModels() {
        assertThatThrownBy(() -> new RankMap(new TensorParallel(2, 4), new TensorParallel(2, 8)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("the prefill side has 4 KV heads and the decode side 8");
    }

    @Test
    void refusesSizesBelowOne() {
        assertThatThrownBy(() -> RankMap.of(0, 1, 1))
                .hasMessage("TP size is 0, must be at least 1");
        assertThatThrownBy(() -> RankMap.of(1, 1, 0))
                .hasMessage("kvHeads is 0, must be at least 1");
        assertThatThrownBy(() -> new RankPair(1, 0, 0, 0))
                .hasMessage("decode TP size is 0, must be at least 1");
    }

    @Test
    void refusesRanksOutsideTheirSide() {
        RankMap ranks = RankMap.of(2, 4, 4);

        assertThatThrownBy(() -> ranks.slice(2, 0))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("prefill rank 2 is outside 0..1: the TP size is 2");
        assertThatThrownBy(() -> ranks.writersOf(4))
                .hasMessage("decode rank 4 is outside 0..3: the TP size is 4");
        assertThatThrownBy(() -> ranks.readersOf(-1))
                .hasMessage("prefill rank -1 is outside 0..1: the TP size is 2");
        assertThatThrownBy(() -> ranks.writes(0, 4))
                .hasMessage("decode rank 4 is outside 0..3: the TP size is 4");
        assertThatThrownBy(() -> ranks.pair(0, 4))
                .hasMessage("decode rank 4 is outside 0..3: the TP size is 4");
        assertThatThrownBy(() -> new TensorParallel(2, 4).firstHead(2))
                .hasMessage("rank 2 is outside 0..1: the TP size is 2");
    }

    private static boolean contains(int[] values, int value) {
        return IntStream.of(values).anyMatch(other -> other == value);
    }
}
