package dev.verbena.demo;

import dev.verbena.kv.KvLayout;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * One side's cache as memory: pools back to back, as {@link KvLayout#pools} lays them out.
 *
 * @param layout of the pools
 * @param pages of each pool
 * @param memory of all pools
 */
record CacheMemory(KvLayout layout, int pages, MemorySegment memory) {
    CacheMemory {
        if (memory.byteSize() != layout.bytes(pages)) {
            throw new IllegalArgumentException(
                    "%d bytes of memory for pools of %d bytes"
                            .formatted(memory.byteSize(), layout.bytes(pages)));
        }
    }

    /**
     * The memory of one page.
     *
     * @throws IndexOutOfBoundsException if there is no such pool or page
     */
    MemorySegment page(int pool, int page) {
        Objects.checkIndex(pool, layout.poolCount());
        Objects.checkIndex(page, pages);
        long index = (long) pool * pages + page;
        return memory.asSlice(index * layout.pageBytes(), layout.pageBytes());
    }
}
