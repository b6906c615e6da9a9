package dev.verbena.demo;

import dev.verbena.kv.KvLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * What stands in for computed K and V: a pattern by seed, layer, K or V, token and place within the
 * token. No two pages are alike, nor a page and itself moved by some bytes, so whatever lands in
 * the wrong place shows.
 *
 * <p>Immutable, safe to share.
 */
final class PageContent {
    private static final ValueLayout.OfLong WORD =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** Between words of a token: 2^64 by the golden ratio, odd, so no word comes twice. */
    private static final long STEP = 0x9e3779b97f4a7c15L;

    private final long seed;
    private final int pageTokens;
    private final long tokenBytes;

    /**
     * Makes the content of a request.
     *
     * @throws IllegalArgumentException if a token is not made of whole 8-byte words
     */
    PageContent(KvLayout layout, long seed) {
        if (layout.tokenBytes() % Long.BYTES != 0) {
            throw new IllegalArgumentException(
                    "a token of " + layout.tokenBytes() + " bytes is not made of 8-byte words");
        }
        this.seed = seed;
        this.pageTokens = layout.pageTokens();
        this.tokenBytes = layout.tokenBytes();
    }

    /**
     * Fills one page.
     *
     * @param target memory of the page
     * @param pool the pool it belongs to, which stands for its layer and for K or V
     * @param requestPage number of the page within the request
     */
    void fill(MemorySegment target, int pool, int requestPage) {
        long firstToken = (long) requestPage * pageTokens;
        for (int i = 0; i < pageTokens; i++) {
            long word = firstWord(pool, firstToken + i);
            long end = (i + 1) * tokenBytes;
            for (long offset = i * tokenBytes; offset < end; offset += Long.BYTES) {
                target.set(WORD, offset, word);
                word += STEP;
            }
        }
    }

    private long firstWord(int pool, long token) {
        return mix(mix(seed ^ mix(pool + 1L)) ^ token);
    }

    /** The finishing steps of SplitMix64: every bit of the input matters to every bit given. */
    private static long mix(long value) {
        long z = value + STEP;
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }
}
