package dev.verbena.demo;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * A CRC32C of every item of a request on one rank, pool by pool.
 *
 * <p>Not thread-safe.
 */
final class Checksums {
    private final List<List<Integer>> pools = new ArrayList<>();

    /** Makes room for the checksums of a rank's items, 0 at first. */
    Checksums(RankCache cache) {
        for (RankCache.PoolPart part : cache.parts()) {
            pools.add(new ArrayList<>(Collections.nCopies(part.slots().size(), 0)));
        }
    }

    /** The checksum of one item. */
    static int of(MemorySegment item) {
        CRC32C checksum = new CRC32C();
        checksum.update(item.asByteBuffer());
        return (int) checksum.getValue();
    }

    void set(int pool, int requestItem, int checksum) {
        pools.get(pool).set(requestItem, checksum);
    }

    int get(int pool, int requestItem) {
        return pools.get(pool).get(requestItem);
    }

    /** The checksums of one pool of a rank, as a message. */
    DemoMessage.Checksums message(int rank, int pool) {
        return new DemoMessage.Checksums(rank, pool, pools.get(pool));
    }

    /**
     * Takes the checksums of one pool from the other side.
     *
     * @throws IllegalArgumentException if the pool or the number of items is not the request's
     */
    void put(DemoMessage.Checksums message) {
        int pool = message.pool();
        if (pool < 0 || pool >= pools.size() || message.items().size() != pools.get(pool).size()) {
            throw new IllegalArgumentException(
                    "checksums of pool %d with %d items do not belong to this request"
                            .formatted(pool, message.items().size()));
        }
        pools.set(pool, new ArrayList<>(message.items()));
    }
}
