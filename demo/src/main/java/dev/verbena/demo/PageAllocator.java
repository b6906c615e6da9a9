package dev.verbena.demo;

import java.util.ArrayDeque;

/**
 * A paged allocator as inference engines have one: pages are taken from the head of a list of free
 * ones and come back at its tail, so that with time neighbours in a request are neighbours in
 * memory only by stretches. Requests with a common prefix share its pages, which are free again
 * when the last of them has gone.
 *
 * <p>Not thread-safe.
 */
final class PageAllocator {
    private final ArrayDeque<Integer> free = new ArrayDeque<>();

    /** Requests that hold each page. */
    private final int[] holders;

    /** Makes an allocator of so many pages, all free. */
    PageAllocator(int pages) {
        holders = new int[pages];
        for (int page = 0; page < pages; page++) {
            free.add(page);
        }
    }

    int freePages() {
        return free.size();
    }

    /**
     * Takes free pages, to be given back by {@link #release}.
     *
     * @throws IllegalStateException if there are not as many
     */
    int[] allocate(int count) {
        if (count > free.size()) {
            throw new IllegalStateException(
                    "%d pages wanted, %d of %d are free"
                            .formatted(count, free.size(), holders.length));
        }
        int[] pages = new int[count];
        for (int i = 0; i < count; i++) {
            pages[i] = free.remove();
            holders[pages[i]] = 1;
        }
        return pages;
    }

    /**
     * Adds a holder to pages that have one: a request that begins with the same tokens.
     *
     * @throws IllegalStateException if a page is free
     */
    void share(int[] pages) {
        for (int page : pages) {
            requireHeld(page);
            holders[page]++;
        }
    }

    /**
     * Ends one hold of each page.
     *
     * @throws IllegalStateException if a page is free
     */
    void release(int[] pages) {
        for (int page : pages) {
            requireHeld(page);
            if (--holders[page] == 0) {
                free.add(page);
            }
        }
    }

    private void requireHeld(int page) {
        if (holders[page] == 0) {
            throw new IllegalStateException("page " + page + " is free");
        }
    }
}
