package dev.verbena.kv;

import java.util.Arrays;

/**
 * Puts runs in ascending order of their first destination. Runs are given by the list positions at
 * which they start.
 *
 * <p>Cost: linear where destinations ascend already or lie close together, as pages of one pool
 * usually do; else a sort of the runs.
 */
final class RunOrder {
    /** A table of destinations may have so many slots per run, to stay linear in the runs. */
    private static final int TABLE_SLOTS_PER_RUN = 8;

    private RunOrder() {}

    /**
     * Orders runs.
     *
     * @param starts list position of the first item of each run
     * @param runs number of runs
     * @param destinations the list, values at least 0
     * @return the numbers of the runs; runs that start at the same destination are neighbours
     */
    static int[] of(int[] starts, int runs, int[] destinations) {
        int[] order = new int[runs];
        int lowest = Integer.MAX_VALUE;
        int highest = -1;
        boolean ascending = true;
        for (int run = 0; run < runs; run++) {
            int destination = destinations[starts[run]];
            ascending &= destination > highest;
            lowest = Math.min(lowest, destination);
            highest = Math.max(highest, destination);
            order[run] = run;
        }
        if (ascending) {
            return order;
        }
        long slots = (long) highest - lowest + 1;
        if (slots > (long) runs * TABLE_SLOTS_PER_RUN
                || !placed(order, starts, destinations, lowest, (int) slots)) {
            sort(order, starts, destinations);
        }
        return order;
    }

    /** Orders by a table with a slot per destination; gives up if two runs claim the same slot. */
    private static boolean placed(
            int[] order, int[] starts, int[] destinations, int lowest, int slots) {
        int[] runAfter = new int[slots]; // number of the run plus one, 0 where none starts
        for (int run = 0; run < order.length; run++) {
            int slot = destinations[starts[run]] - lowest;
            if (runAfter[slot] != 0) {
                return false;
            }
            runAfter[slot] = run + 1;
        }
        int next = 0;
        for (int after : runAfter) {
            if (after != 0) {
                order[next++] = after - 1;
            }
        }
        return true;
    }

    private static void sort(int[] order, int[] starts, int[] destinations) {
        long[] keys = new long[order.length];
        for (int run = 0; run < keys.length; run++) {
            keys[run] = (long) destinations[starts[run]] << Integer.SIZE | run;
        }
        Arrays.sort(keys);
        for (int run = 0; run < keys.length; run++) {
            order[run] = (int) keys[run];
        }
    }
}
