package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.transfer.TransferBatch;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The model that planners are held to: for every byte that is written, the byte it comes from.
 * Slow, and too simple to be wrong.
 */
final class ByteMap {
    private final Map<Long, Long> sources = new HashMap<>();

    static ByteMap of(TransferBatch batch) {
        return of(List.of(batch));
    }

    static ByteMap of(List<TransferBatch> batches) {
        ByteMap map = new ByteMap();
        for (TransferBatch batch : batches) {
            for (int i = 0; i < batch.size(); i++) {
                map.copy(batch.localAddress(i), batch.remoteAddress(i), batch.length(i));
            }
        }
        return map;
    }

    /** Copies byte by byte; no byte may be written twice. */
    void copy(long source, long destination, long bytes) {
        for (long i = 0; i < bytes; i++) {
            Long earlier = sources.put(destination + i, source + i);
            assertThat(earlier).as("earlier source of byte %d", destination + i).isNull();
        }
    }

    /** What this copy and then another amount to; the other reads only what this one wrote. */
    ByteMap then(ByteMap next) {
        ByteMap both = new ByteMap();
        next.sources.forEach((destination, between) -> {
            Long source = sources.get(between);
            assertThat(source).as("source of staged byte %d", between).isNotNull();
            both.sources.put(destination, source);
        });
        return both;
    }

    void add(ByteMap other) {
        other.sources.forEach((destination, source) -> copy(source, destination, 1));
    }

    long bytes() {
        return sources.size();
    }

    void assertSame(ByteMap expected) {
        assertThat(sources).isEqualTo(expected.sources);
    }
}
