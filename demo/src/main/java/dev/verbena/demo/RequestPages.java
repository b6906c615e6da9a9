package dev.verbena.demo;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/**
 * Where the pages of a request lie in a cache that has been in use for a while: earlier requests of
 * all lengths came and went, some with a common prefix. Some neighbours are adjacent, so that there
 * is something to merge, and most stretches are short. The same arguments give the same pages.
 */
final class RequestPages {
    /** How often the cache has been filled and emptied, roughly. */
    private static final int TURNOVERS = 8;

    private final Random random;
    private final PageAllocator allocator;
    private final int longest;
    private final List<int[]> running = new ArrayList<>();

    private RequestPages(int cachePages, long seed) {
        random = new Random(seed);
        allocator = new PageAllocator(cachePages);
        longest = Math.clamp(cachePages / 8, 1, 32);
    }

    /**
     * Pages of a request on the prefill side. Its first pages may be those of an earlier request
     * with the same prefix; all are distinct.
     *
     * @param count pages of the request, at most {@code cachePages}
     * @param cachePages pages of each pool
     * @param seed of the cache's history
     * @return page numbers, in the order of the request's tokens
     */
    static int[] onPrefill(int count, int cachePages, long seed) {
        RequestPages cache = new RequestPages(cachePages, seed);
        cache.live(count);
        int[] prefix = cache.somePrefix(count / 4);
        return concat(prefix, cache.allocator.allocate(count - prefix.length));
    }

    /**
     * Pages set aside on the decode side: none is anybody else's, as all are written.
     *
     * @param count pages of the request, at most {@code cachePages}
     * @param cachePages pages of each pool
     * @param seed of the cache's history, which is another one than that of the prefill side
     * @return page numbers, in the order of the request's tokens
     */
    static int[] onDecode(int count, int cachePages, long seed) {
        RequestPages cache = new RequestPages(cachePages, ~seed);
        cache.live(count);
        return cache.allocator.allocate(count);
    }

    /**
     * An allocator whose pages are all free, in the order in which earlier requests left them.
     *
     * @param cachePages pages of each pool
     * @param seed of the cache's history
     */
    static PageAllocator used(int cachePages, long seed) {
        RequestPages cache = new RequestPages(cachePages, seed);
        cache.live(cachePages);
        return cache.allocator;
    }

    /** Lets requests come and go, and leaves so many pages free. */
    private void live(int count) {
        int steps = TURNOVERS * Math.ceilDiv(2 * (count + longest), longest);
        for (int step = 0; step < steps; step++) {
            int pages = 1 + random.nextInt(longest);
            if (allocator.freePages() >= pages && random.nextInt(3) > 0) {
                begin(pages);
            } else {
                end();
            }
        }
        while (allocator.freePages() < count) {
            end();
        }
    }

    private void begin(int pages) {
        int[] prefix = random.nextBoolean() ? somePrefix(pages / 2) : new int[0];
        running.add(concat(prefix, allocator.allocate(pages - prefix.length)));
    }

    private void end() {
        if (!running.isEmpty()) {
            allocator.release(running.remove(random.nextInt(running.size())));
        }
    }

    /** The first pages of some running request, shared; at most so many, and maybe none. */
    private int[] somePrefix(int longestPrefix) {
        if (running.isEmpty()) {
            return new int[0];
        }
        int[] other = running.get(random.nextInt(running.size()));
        int[] prefix = Arrays.copyOf(other, Math.min(longestPrefix, other.length));
        allocator.share(prefix);
        return prefix;
    }

    /** Stretches of pages that follow one another in memory on both sides. */
    static int runs(int[] prefillPages, int[] decodePages) {
        int runs = prefillPages.length == 0 ? 0 : 1;
        for (int i = 1; i < prefillPages.length; i++) {
            boolean adjacent =
                    prefillPages[i] == prefillPages[i - 1] + 1
                            && decodePages[i] == decodePages[i - 1] + 1;
            runs += adjacent ? 0 : 1;
        }
        return runs;
    }

    private static int[] concat(int[] first, int[] second) {
        int[] both = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, both, first.length, second.length);
        return both;
    }
}
