package dev.verbena.demo;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A cache of pages by the hash of the prefix that they end: what an engine keeps so as not to
 * compute, or to be sent, the same prefix again. A full cache forgets the blocks that were used
 * least recently.
 *
 * <p>Not thread-safe; one request at a time.
 */
final class PrefixCache {
    private final PageAllocator allocator;
    private final int blockPages;

    /** Pages of each block, the least recently used first. */
    private final Map<Long, int[]> blocks = new LinkedHashMap<>(16, 0.75f, true);

    /**
     * Where a request lies.
     *
     * @param pages of all its blocks
     * @param cachedPages how many of the first of them were in the cache
     */
    record Placed(List<Integer> pages, int cachedPages) {
        Placed {
            pages = List.copyOf(pages);
        }
    }

    /** Makes an empty cache of an allocator's pages, of which each block takes some. */
    PrefixCache(PageAllocator allocator, int blockPages) {
        this.allocator = allocator;
        this.blockPages = blockPages;
    }

    /**
     * Finds the blocks of a request, or room for those that are not there.
     *
     * @throws DemoException if the request is longer than the cache
     */
    Placed place(List<Long> hashes) {
        int cached = 0;
        while (cached < hashes.size() && blocks.get(hashes.get(cached)) != null) {
            cached++;
        }
        // Behind the first that is missing the rest is missing too, whatever its hash: a block
        // stands for all that is before it.
        List<Integer> pages = new ArrayList<>();
        for (int i = 0; i < hashes.size(); i++) {
            int[] block = blocks.get(hashes.get(i));
            if (block == null) {
                block = allocate(hashes);
                blocks.put(hashes.get(i), block);
            }
            for (int page : block) {
                pages.add(page);
            }
        }
        return new Placed(pages, cached * blockPages);
    }

    /** Takes a block, at the expense of others than those of the request. */
    private int[] allocate(List<Long> keep) {
        Iterator<Map.Entry<Long, int[]>> oldest = blocks.entrySet().iterator();
        while (allocator.freePages() < blockPages) {
            if (!oldest.hasNext()) {
                throw new DemoException("a request is longer than the cache");
            }
            Map.Entry<Long, int[]> block = oldest.next();
            if (!keep.contains(block.getKey())) {
                allocator.release(block.getValue());
                oldest.remove();
            }
        }
        return allocator.allocate(blockPages);
    }
}
