package dev.verbena.demo;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Percentiles are measured latencies, whatever their order and however few there are. */
class TraceResultTest {
    private static final long MILLI = 1_000_000;

    @Test
    void percentilesAreTheNearestRanks() {
        List<Long> latencies =
                LongStream.rangeClosed(1, 200).map(i -> (201 - i) * MILLI).boxed().toList();

        assertThat(TraceResult.of(latencies, 5))
                .isEqualTo(new TraceResult(200, 5, 0.1, 0.18, 0.198, 0.2));
    }

    @Test
    void oneRequestIsAllOfThem() {
        assertThat(TraceResult.of(List.of(7 * MILLI), 0))
                .isEqualTo(new TraceResult(1, 0, 0.007, 0.007, 0.007, 0.007));
    }

    @Test
    void saysWhatWasNotSent() {
        assertThat(new TraceResult(40, 2496, 0.0313, 0.0848, 0.143, 0.143).words(62400))
                .isEqualTo(
                        "40 requests, of whose 64,896 pages 2,496 were in the decode cache and not"
                                + " sent again; from announcement to end p50 31.3 ms, p90 84.8 ms,"
                                + " p99 143.0 ms, longest 143.0 ms");
    }

    @Test
    void jsonHasSeconds() {
        assertThat(new TraceResult(40, 2496, 0.0313, 0.0848, 0.143, 0.2).json())
                .isEqualTo(
                        "\"requests\":40,\"itemsReused\":2496,\"latencySeconds\":{\"p50\":0.031300,"
                                + "\"p90\":0.084800,\"p99\":0.143000,\"longest\":0.200000}");
    }
}
