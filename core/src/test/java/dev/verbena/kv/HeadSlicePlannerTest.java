package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.transfer.TransferBatch;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * Category 9, byte by byte, for every pair of ranks of random TP sizes: more and fewer ranks than
 * heads on either side.
 */
class HeadSlicePlannerTest {
    private static final KvPools PREFILL =
            KvPools.of(new long[] {1000}, new long[] {24}, new int[] {4});
    private static final KvPools PREFILL_COPY =
            KvPools.of(new long[] {9000}, new long[] {24}, new int[] {4});
    private static final KvPools DECODE =
            KvPools.of(new long[] {5000}, new long[] {12}, new int[] {4});
    private static final HeadSlice SECOND_HALF = RankMap.of(1, 2, 4).slice(0, 1);

    @Test
    void movesTheHeadsThatBothRanksHold() {
        Seeds.forEach(
                2000,
                random -> {
                    RandomRanks ranks = new RandomRanks(random);
                    int prefillRank = random.nextInt(ranks.prefillSize);
                    int decodeRank = random.nextInt(ranks.decodeSize);
                    int length = RandomLayouts.length(random, ranks.items);
                    int[] sources = RandomLayouts.sources(random, length, ranks.items);
                    int[] targets = RandomLayouts.distinct(random, length, ranks.items);

                    ByteMap moved = plan(ranks, prefillRank, decodeRank, sources, targets);

                    ByteMap model = new ByteMap();
                    int[] theirs = ranks.headsOf(decodeRank, ranks.decodeSize);
                    for (int head : ranks.headsOf(prefillRank, ranks.prefillSize)) {
                        if (IntStream.of(theirs).anyMatch(other -> other == head)) {
                            int[] pair = {prefillRank, decodeRank};
                            copyHead(ranks, model, pair, sources, targets, head);
                        }
                    }
                    moved.assertSame(model);
                });
    }

    @Test
    void fillsEveryHeadOfADecodeRankExactlyOnceFromItsWriters() {
        Seeds.forEach(
                1000,
                random -> {
                    RandomRanks ranks = new RandomRanks(random);
                    int decodeRank = random.nextInt(ranks.decodeSize);
                    int[] pages = RandomLayouts.shuffled(random, ranks.items);

                    ByteMap moved = new ByteMap();
                    for (int writer : ranks.map.writersOf(decodeRank)) {
                        moved.add(plan(ranks, writer, decodeRank, pages, pages));
                    }

                    long bytes = 0;
                    int held = ranks.headsOf(decodeRank, ranks.decodeSize).length;
                    for (int pool = 0; pool < ranks.pools; pool++) {
                        bytes += ranks.headBytes(pool) * held * ranks.pageTokens * ranks.items;
                    }
                    assertThat(moved.bytes()).isEqualTo(bytes);
                });
    }

    @Test
    void plansTheSameLayerByLayer() {
        Seeds.forEach(
                500,
                random -> {
                    RandomRanks ranks = new RandomRanks(random);
                    int decodeRank = random.nextInt(ranks.decodeSize);
                    int writer = ranks.map.writersOf(decodeRank)[0];
                    int[] pages = RandomLayouts.shuffled(random, ranks.items);
                    KvPools prefill = ranks.prefill(writer).withLayerRange(3, 1);
                    KvPools decode = ranks.decode(decodeRank).withLayerRange(3, 1);

                    List<TransferBatch> batches =
                            HeadSlicePlanner.planLayers(
                                    prefill,
                                    decode,
                                    ranks.pageTokens,
                                    ranks.map.slice(writer, decodeRank),
                                    pages,
                                    pages);

                    assertThat(batches).hasSize(1);
                    ByteMap.of(batches).assertSame(plan(ranks, writer, decodeRank, pages, pages));
                });
    }

    @Test
    void keepsKAndVOfALayerTogether() {
        KvPools prefill = new KvLayout.Heads(2, 4, 3, 1, 1).pools(1000, 1);
        KvPools decode = new KvLayout.Heads(2, 2, 3, 1, 1).pools(5000, 1);

        List<TransferBatch> batches =
                HeadSlicePlanner.planLayers(
                        prefill, decode, 1, SECOND_HALF, new int[] {0}, new int[] {0});

        assertThat(NormalForm.blocks(batches.get(0)))
                .containsExactly(
                        new NormalForm.Move(1006, 5000, 6), new NormalForm.Move(1030, 5012, 6));
        assertThat(NormalForm.blocks(batches.get(1)))
                .containsExactly(
                        new NormalForm.Move(1018, 5006, 6), new NormalForm.Move(1042, 5018, 6));
    }

    @Test
    void plansABlockPerToken() {
        TransferBatch batch = new TransferBatch();

        HeadSlicePlanner.fill(
                batch, PREFILL, DECODE, 2, SECOND_HALF, new int[] {0, 3}, new int[] {1, 2});

        assertThat(NormalForm.blocks(batch))
                .containsExactly(
                        new NormalForm.Move(1006, 5012, 6),
                        new NormalForm.Move(1018, 5018, 6),
                        new NormalForm.Move(1078, 5024, 6),
                        new NormalForm.Move(1090, 5030, 6));
    }

    @Test
    void plansRunsOfPagesWhereBothRanksHoldTheSameHeads() {
        HeadSlice slice = RankMap.of(4, 8, 2).slice(1, 3);

        TransferBatch batch =
                HeadSlicePlanner.plan(
                        PREFILL, PREFILL_COPY, 4, slice, new int[] {1, 2}, new int[] {0, 1});

        assertThat(NormalForm.blocks(batch)).containsExactly(new NormalForm.Move(1024, 9000, 48));
    }

    @Test
    void plansNothingBetweenRanksThatShareNoHead() {
        HeadSlice slice = RankMap.of(2, 4, 4).slice(0, 3);
        KvPools one = KvPools.of(new long[] {0}, new long[] {8}, new int[] {4});
        KvPools other = KvPools.of(new long[] {100}, new long[] {4}, new int[] {4});

        assertThat(slice.isEmpty()).isTrue();
        assertThat(
                        HeadSlicePlanner.plan(one, other, 2, slice, new int[] {0}, new int[] {0})
                                .isEmpty())
                .isTrue();
    }

    @Test
    void refusesAnItemLengthThatIsNotTokensAndHeads() {
        assertThatThrownBy(() -> plan(5, SECOND_HALF, 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "a page of prefill pool 0 is 24 bytes, not divisible into 5 tokens x 4"
                                + " heads");
        assertThatThrownBy(() -> plan(3, new HeadSlice(1, 4, 0, 8, 0), 0))
                .hasMessageContaining("a page of decode pool 0 is 12 bytes");
        assertThatThrownBy(() -> plan(0, SECOND_HALF, 0))
                .hasMessage("pageTokens is 0, must be at least 1");
    }

    @Test
    void refusesHeadsOfDifferentLength() {
        assertThatThrownBy(() -> plan(2, new HeadSlice(1, 4, 0, 1, 0), 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("a head of prefill pool 0 is 3 bytes, one of decode pool 0 is 6 bytes");
    }

    @Test
    void refusesPagesOutsideTheirPoolOnEitherSide() {
        assertThatThrownBy(() -> plan(2, SECOND_HALF, 4))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("prefillPages[1] = 4 is outside 0..3: prefill pool 0 holds 4 items");
        assertThatThrownBy(() ->
                        HeadSlicePlanner.plan(
                                PREFILL, DECODE, 2, SECOND_HALF, new int[] {0}, new int[] {-1}))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("decodePages[0] = -1 is outside 0..3: decode pool 0 holds 4 items");
    }

    @Test
    void refusesHeadsOutsideTheirToken() {
        assertThatThrownBy(() -> new HeadSlice(2, 4, 3, 2, 0))
                .hasMessage("shared heads 3..4 are outside the 4 heads of the prefill rank");
        assertThatThrownBy(() -> new HeadSlice(2, 4, 0, 2, 1))
                .hasMessage("shared heads 1..2 are outside the 2 heads of the decode rank");
        assertThatThrownBy(() -> new HeadSlice(-1, 4, 0, 2, 1))
                .hasMessage("heads is -1, must not be negative");
    }

    private static TransferBatch plan(int pageTokens, HeadSlice slice, int secondPage) {
        return HeadSlicePlanner.plan(
                PREFILL, DECODE, pageTokens, slice, new int[] {1, secondPage}, new int[] {2, 3});
    }

    private static ByteMap plan(
            RandomRanks ranks, int prefillRank, int decodeRank, int[] sources, int[] targets) {
        return ByteMap.of(
                HeadSlicePlanner.plan(
                        ranks.prefill(prefillRank),
                        ranks.decode(decodeRank),
                        ranks.pageTokens,
                        ranks.map.slice(prefillRank, decodeRank),
                        sources,
                        targets));
    }

    private static void copyHead(
            RandomRanks ranks, ByteMap model, int[] pair, int[] sources, int[] targets, int head) {
        for (int pool = 0; pool < ranks.pools; pool++) {
            for (int i = 0; i < sources.length; i++) {
                int[] pages = {sources[i], targets[i]};
                for (int token = 0; token < ranks.pageTokens; token++) {
                    ranks.copyHead(model, pair, pool, pages, token, head);
                }
            }
        }
    }
}
