package dev.verbena.demo;

import java.util.List;
import java.util.Locale;

/**
 * What a replayed trace has to tell beside what all scenarios do.
 *
 * @param requests replayed, one after the other
 * @param itemsReused pages of them, over all pools, that the decode side had and was not sent
 * @param p50 seconds that half of the requests did not exceed, from the announcement to the end
 * @param p90 the same of 90 percent
 * @param p99 the same of 99 percent
 * @param longest seconds of the slowest
 */
record TraceResult(
        int requests, long itemsReused, double p50, double p90, double p99, double longest) {

    /** Sums up the latencies, in nanoseconds, of at least one request. */
    static TraceResult of(List<Long> latencies, long itemsReused) {
        List<Long> sorted = latencies.stream().sorted().toList();
        return new TraceResult(
                sorted.size(),
                itemsReused,
                percentile(sorted, 50),
                percentile(sorted, 90),
                percentile(sorted, 99),
                percentile(sorted, 100));
    }

    /** The latency, one of those measured, that so many percent of the requests do not exceed. */
    private static double percentile(List<Long> sorted, int percent) {
        return sorted.get(Math.ceilDiv(sorted.size() * percent, 100) - 1) / 1e9;
    }

    /** The result in a sentence. */
    String words(long itemsMoved) {
        return String.format(
                Locale.ROOT,
                "%,d requests, of whose %,d pages %,d were in the decode cache and not sent again;"
                        + " from announcement to end p50 %.1f ms, p90 %.1f ms, p99 %.1f ms,"
                        + " longest %.1f ms",
                requests,
                itemsMoved + itemsReused,
                itemsReused,
                p50 * 1e3,
                p90 * 1e3,
                p99 * 1e3,
                longest * 1e3);
    }

    String json() {
        return String.format(
                Locale.ROOT,
                "\"requests\":%d,\"itemsReused\":%d,\"latencySeconds\":"
                        + "{\"p50\":%.6f,\"p90\":%.6f,\"p99\":%.6f,\"longest\":%.6f}",
                requests,
                itemsReused,
                p50,
                p90,
                p99,
                longest);
    }
}
