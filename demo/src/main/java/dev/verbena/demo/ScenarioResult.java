package dev.verbena.demo;

import org.jspecify.annotations.Nullable;

/**
 * What became of one scenario.
 *
 * @param name of the scenario, for machines
 * @param category number of the transfer category
 * @param title the category in words
 * @param items pages and other items moved, over all pools and ranks
 * @param blocks blocks that the planner made of them
 * @param workRequests work requests that the blocks were moved with
 * @param bytes moved
 * @param seconds during which a transfer was under way
 * @param verdict of the decode side
 * @param trace what is told of a trace only, or null if it was none
 */
record ScenarioResult(
        String name,
        int category,
        String title,
        long items,
        long blocks,
        long workRequests,
        long bytes,
        double seconds,
        DemoMessage.Verdict verdict,
        @Nullable TraceResult trace) {

    boolean verified() {
        return verdict.allRight();
    }
}
