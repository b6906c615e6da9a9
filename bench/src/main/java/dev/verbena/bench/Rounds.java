package dev.verbena.bench;

import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.function.LongSupplier;

/**
 * How everything here is measured: ours and the peer's in turn, in one run, so that whatever else
 * the machine does meets both. Rounds to warm up are thrown away; of the others the median counts,
 * and the ratio is the median of the ratios of each round, not the ratio of the medians.
 *
 * @param warmUps rounds before those that count
 * @param runs rounds that count, above 0
 */
record Rounds(int warmUps, int runs) {
    private static final long QUIET_MILLIS = 5000;
    private static final double QUIET_SHARE = 0.02;
    private static final long LONGEST_WARM_UP_MILLIS = 180_000;

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
     * Runs the sides that are in Java until the JVM has little left to compile, before the first
     * comparison. In an emulated guest that takes a minute or two, on the processor that also runs
     * them; the rounds to warm up of a comparison are too few for it, and would cost the peer as
     * many.
     *
     * @throws Exception what a side throws
     */
    static void untilCompiled(Side... sides) throws Exception {
        untilQuiet(
                ManagementFactory.getCompilationMXBean()::getTotalCompilationTime,
                () -> System.nanoTime() / 1_000_000,
                sides);
    }

    /**
     * Runs the sides until, for a while, compilers were at work for a small share of the time.
     *
     * @param compiling milliseconds for which compilers have been at work so far
     * @param clock milliseconds
     */
    static void untilQuiet(LongSupplier compiling, LongSupplier clock, Side... sides)
            throws Exception {
        long start = clock.getAsLong();
        long now = start;
        boolean quiet = false;
        while (!quiet && now - start < LONGEST_WARM_UP_MILLIS) {
            long since = now;
            long compiledBefore = compiling.getAsLong();
            while (now - since < QUIET_MILLIS) {
                for (Side side : sides) {
                    side.round();
                }
                now = clock.getAsLong();
            }
            quiet = compiling.getAsLong() - compiledBefore < QUIET_SHARE * (now - since);
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
