package dev.verbena.demo;

import dev.verbena.kv.KvLayout;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Judges what arrived at the decode side, three ways: every page of the request against the
 * checksum that the prefill side made of it, and byte by byte against the pattern; every other page
 * against zero, for nobody was to write there.
 *
 * <p>One check, one thread.
 */
final class PageCheck {
    private final CacheMemory cache;
    private final KvLayout layout;
    private final int[] pages;
    private final PageContent content;

    private long checked;
    private long wrong;
    private @Nullable WrongPage first;

    /** Told of progress, pool by pool. */
    @FunctionalInterface
    interface Listener {
        /** So many pools are checked. */
        void checked(int pools) throws IOException;
    }

    /**
     * Makes a check.
     *
     * @param cache the decode side's memory
     * @param pages of the request there, in the order of its tokens
     * @param content what should be in them
     */
    PageCheck(CacheMemory cache, int[] pages, PageContent content) {
        this.cache = cache;
        this.layout = cache.layout();
        this.pages = pages.clone();
        this.content = content;
    }

    /**
     * Checks every page of every pool.
     *
     * @param theirs checksums of the prefill side
     * @param listener told after each pool
     * @throws IOException if the listener throws it
     */
    DemoMessage.Verdict run(PageChecksums theirs, Listener listener) throws IOException {
        int[] requestPages = requestPageOfEach();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment expected = arena.allocate(layout.pageBytes(), Long.BYTES);
            MemorySegment zeros = arena.allocate(layout.pageBytes(), Long.BYTES);
            for (int pool = 0; pool < layout.poolCount(); pool++) {
                for (int page = 0; page < cache.pages(); page++) {
                    int requestPage = requestPages[page];
                    if (requestPage >= 0) {
                        content.fill(expected, pool, requestPage);
                        checkPage(pool, requestPage, expected, theirs.get(pool, requestPage));
                    } else {
                        checkUntouched(pool, page, zeros);
                    }
                }
                listener.checked(pool + 1);
            }
        }
        return new DemoMessage.Verdict(checked, wrong, first);
    }

    /** Spoils one byte in the middle of the request, to prove that it is found. */
    void corruptOneByte() {
        MemorySegment page = cache.page(layout.poolCount() / 2, pages[pages.length / 2]);
        long offset = page.byteSize() / 2;
        byte value = page.get(ValueLayout.JAVA_BYTE, offset);
        page.set(ValueLayout.JAVA_BYTE, offset, (byte) (value ^ 1));
    }

    /** Of each page of a pool, its number in the request, or -1. */
    private int[] requestPageOfEach() {
        int[] requestPages = new int[cache.pages()];
        Arrays.fill(requestPages, -1);
        for (int i = 0; i < pages.length; i++) {
            requestPages[pages[i]] = i;
        }
        return requestPages;
    }

    private void checkPage(int pool, int requestPage, MemorySegment expected, int theirChecksum) {
        MemorySegment found = cache.page(pool, pages[requestPage]);
        checked++;
        int ourChecksum = PageChecksums.of(found);
        long offset = found.mismatch(expected);
        if (ourChecksum == theirChecksum && offset < 0) {
            return;
        }
        String detail =
                "decode page %d; CRC32C %08x at prefill, %08x at decode"
                        .formatted(pages[requestPage], theirChecksum, ourChecksum);
        detail += "; " + describe(found, expected, offset);
        note(pool, requestPage, "%s, page %d".formatted(name(pool), requestPage), detail);
    }

    private void checkUntouched(int pool, int page, MemorySegment zeros) {
        MemorySegment found = cache.page(pool, page);
        long offset = found.mismatch(zeros);
        if (offset >= 0) {
            note(
                    pool,
                    Integer.MAX_VALUE,
                    "%s, decode page %d, which is not the request's".formatted(name(pool), page),
                    describe(found, zeros, offset));
        }
    }

    /** Counts a wrong page; the first is the one a reader of the request meets first. */
    private void note(int pool, int requestPage, String label, String detail) {
        wrong++;
        WrongPage known = first;
        if (known == null || (known.pool() == pool && requestPage < known.requestPage())) {
            first = new WrongPage(pool, requestPage, label, detail);
        }
    }

    private String name(int pool) {
        return ModelShape.poolName(layout, pool);
    }

    private static String describe(MemorySegment found, MemorySegment expected, long offset) {
        if (offset < 0) {
            return "its bytes follow the pattern";
        }
        return "byte %d is 0x%02x, should be 0x%02x"
                .formatted(
                        offset,
                        found.get(ValueLayout.JAVA_BYTE, offset),
                        expected.get(ValueLayout.JAVA_BYTE, offset));
    }
}
