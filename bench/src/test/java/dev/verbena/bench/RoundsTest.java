package dev.verbena.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.verbena.bench.Rounds.Better;
import dev.verbena.bench.Rounds.Comparison;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What a comparison makes of the figures of both sides. */
class RoundsTest {
    @Test
    void aRatioAboveOneIsBetterWhateverTheUnit() throws Exception {
        Rounds rounds = new Rounds(0, 3);

        assertThat(rounds.compare(Better.LOWER, () -> 2, () -> 6).ratio()).isEqualTo(3);
        assertThat(rounds.compare(Better.HIGHER, () -> 6, () -> 2).ratio()).isEqualTo(3);
        assertThat(rounds.compare(Better.LOWER, () -> 6, () -> 2).ratio())
                .isCloseTo(1.0 / 3, within(1e-12));
    }

    @Test
    void sidesTakeTurnsAndRoundsToWarmUpDoNotCount() throws Exception {
        List<String> order = new ArrayList<>();
        double[] ours = {1000, 1, 2, 3};
        int[] taken = new int[1];

        Comparison comparison =
                new Rounds(1, 3)
                        .compare(
                                Better.LOWER,
                                () -> {
                                    order.add("ours");
                                    return ours[taken[0]++];
                                },
                                () -> {
                                    order.add("peer");
                                    return 12;
                                });

        assertThat(order)
                .containsExactly("peer", "ours", "ours", "peer", "peer", "ours", "ours", "peer");
        assertThat(comparison.ours()).isEqualTo(2);
        assertThat(comparison.peer()).isEqualTo(12);
        assertThat(comparison.runs()).isEqualTo(3);
    }

    /** A round in which the machine was slow must not make a ratio of its own. */
    @Test
    void theRatioIsTheMedianOfTheRatiosOfRounds() throws Exception {
        double[] ours = {1, 10, 100};
        double[] peers = {2, 10, 300};
        int[] taken = new int[2];

        Comparison comparison =
                new Rounds(0, 3)
                        .compare(Better.LOWER, () -> ours[taken[0]++], () -> peers[taken[1]++]);

        assertThat(comparison.ratio()).isEqualTo(2);
        assertThat(comparison.low()).isEqualTo(1.5);
        assertThat(comparison.high()).isEqualTo(2.5);
    }

    @Test
    void warmingUpEndsOnceTheCompilersAreQuiet() throws Exception {
        long[] clock = new long[1];
        long[] compiling = new long[1];
        int[] rounds = new int[1];

        Rounds.untilQuiet(
                () -> compiling[0],
                () -> clock[0],
                () -> {
                    rounds[0]++;
                    clock[0] += 1000;
                    compiling[0] += rounds[0] <= 12 ? 500 : 10;
                    return 0;
                });

        // Five seconds at a time: busy, busy, busy for two of them, quiet.
        assertThat(rounds[0]).isEqualTo(20);
    }

    @Test
    void warmingUpEndsEvenIfTheCompilersNeverRest() throws Exception {
        long[] clock = new long[1];

        Rounds.untilQuiet(
                () -> clock[0],
                () -> clock[0],
                () -> {
                    clock[0] += 700;
                    return 0;
                });

        assertThat(clock[0]).isBetween(180_000L, 190_000L);
    }

    @Test
    void quantilesLieBetweenNeighboursByProportion() {
        assertThat(Rounds.quantile(new double[] {4, 1, 3, 2}, 0.5)).isEqualTo(2.5);
        assertThat(Rounds.quantile(new double[] {4, 1, 3, 2}, 0)).isEqualTo(1);
        assertThat(Rounds.quantile(new double[] {4, 1, 3, 2}, 1)).isEqualTo(4);
        assertThat(Rounds.quantile(new double[] {7}, 0.75)).isEqualTo(7);
    }
}
