package dev.verbena.demo;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.zip.CRC32C;

/**
 * A CRC32C of every page of a request, pool by pool.
 *
 * <p>Not thread-safe.
 */
final class PageChecksums {
    private final int[][] checksums;

    /** Makes room for the checksums of so many pools, of so many pages each. */
    PageChecksums(int pools, int pages) {
        checksums = new int[pools][pages];
    }

    /** The checksum of one page. */
    static int of(MemorySegment page) {
        CRC32C checksum = new CRC32C();
        checksum.update(page.asByteBuffer());
        return (int) checksum.getValue();
    }

    void set(int pool, int requestPage, int checksum) {
        checksums[pool][requestPage] = checksum;
    }

    int get(int pool, int requestPage) {
        return checksums[pool][requestPage];
    }

    /** The checksums of one pool, as a message. */
    DemoMessage.Checksums message(int pool) {
        return new DemoMessage.Checksums(pool, Arrays.stream(checksums[pool]).boxed().toList());
    }

    /**
     * Takes the checksums of one pool from the other side.
     *
     * @throws IllegalArgumentException if the pool or the number of pages is not the request's
     */
    void put(DemoMessage.Checksums message) {
        if (message.pool() < 0
                || message.pool() >= checksums.length
                || message.pages().size() != checksums[message.pool()].length) {
            throw new IllegalArgumentException(
                    "checksums of pool %d with %d pages do not belong to this request"
                            .formatted(message.pool(), message.pages().size()));
        }
        checksums[message.pool()] = message.pages().stream().mapToInt(Integer::intValue).toArray();
    }
}
