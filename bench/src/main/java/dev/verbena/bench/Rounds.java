package dev.verbena.bench;

import java.util.Arrays;

/**
 * How everything here is measured: ours and the peer's in turn, in one run, so that whatever else
 * the machine does meets both. Rounds to warm up are thrown away; of the others the median counts,
 * and the ratio is the median of the ratios of each round, not the ratio of the medians.
 *
 * @param warmUps rounds before those that count
 * @param runs rounds that count, above 0
 */
record Rounds(int warmUps, int runs) {
    private static final int ROUNDS_TO_COMPILE = 24;

    /** One side of a comparison: runs one round and gives its figure. */
    @FunctionalInterface
    interface Side {
        double round() throws Exception;
    }

    /** Which figures are better. */
    enum Better {
        /** Times and other costs. */
        LOWER,
        /** Rates. */
        HIGHER
    }

    /**
     * What two sides came to.
     *
     * @param ours median of ours
     * @param peer median of the peer's
     * @param ratio median of how many times better ours was in a round
     * @param low a quarter of the rounds had a ratio below this
     * @param high a quarter of the rounds had a ratio above this
     * @param runs rounds that counted
     */
    record Comparison(double ours, double peer, double ratio, double low, double high, int runs) {}

    /**
     * Runs the sides that are in Java until their code is compiled, before the first comparison. In
     * an emulated guest that takes its time, on the processor that also runs them; the rounds to
     * warm up of a comparison are too few for it, and would cost the peer as many.
     *
     * @throws Exception what a side throws
     */
    static void untilCompiled(Side... sides) throws Exception {
        for (int round = 0; round < ROUNDS_TO_COMPILE; round++) {
            for (Side side : sides) {
                side.round();
            }
        }
    }

    /**
     * Lets both sides take turns, the first of a round being the second of the next.
     *
     * @throws Exception what a side throws
     */
    Comparison compare(Better better, Side ours, Side peer) throws Exception {
        double[] oursFigures = new double[runs];
        double[] peerFigures = new double[runs];
        double[] ratios = new double[runs];
        for (int round = -warmUps; round < runs; round++) {
            boolean oursFirst = (round & 1) == 0;
            double first = (oursFirst ? ours : peer).round();
            double second = (oursFirst ? peer : ours).round();
            if (round >= 0) {
                oursFigures[round] = oursFirst ? first : second;
                peerFigures[round] = oursFirst ? second : first;
                ratios[round] =
                        better == Better.LOWER
                                ? peerFigures[round] / oursFigures[round]
                                : oursFigures[round] / peerFigures[round];
            }
        }
        return new Comparison(
                quantile(oursFigures, 0.5),
                quantile(peerFigures, 0.5),
                quantile(ratios, 0.5),
                quantile(ratios, 0.25),
                quantile(ratios, 0.75),
                runs);
    }

    /** The value below which that share of the values lies, between neighbours by proportion. */
    static double quantile(double[] values, double share) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        double at = share * (sorted.length - 1);
        int below = (int) at;
        int above = Math.min(below + 1, sorted.length - 1);
        return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
    }
}
