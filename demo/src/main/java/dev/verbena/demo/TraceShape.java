package dev.verbena.demo;

import dev.verbena.kv.KvCache;
import dev.verbena.kv.KvLayout;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * What both sides must agree on to replay a trace.
 *
 * @param model whose cache it is
 * @param blockPages pages that stand for a block of 512 tokens
 * @param cachePages pages of each side's pools
 * @param seed of the content
 */
record TraceShape(ModelShape model, int blockPages, int cachePages, long seed) {
    TraceShape {
        if (blockPages < 1 || cachePages < blockPages || cachePages > Scenario.MAX_TOKENS) {
            throw new IllegalArgumentException(
                    "%d pages a block in a cache of %d".formatted(blockPages, cachePages));
        }
    }

    KvLayout layout() {
        return model.layout(model.kvHeads(), Scenario.PAGE_TOKENS);
    }

    long cacheBytes() {
        return layout().bytes(cachePages);
    }

    KvCache cache(long base) {
        return KvCache.of(layout(), layout().pools(base, cachePages));
    }

    /**
     * The prefix cache of a side, empty. Each side has a history of its own: were page numbers the
     * same on both, whole requests would merge to one block a pool, as they do in no engine.
     */
    PrefixCache prefixes(Job.Side side) {
        long history = side == Job.Side.PREFILL ? seed : ~seed;
        return new PrefixCache(RequestPages.used(cachePages, history), blockPages);
    }

    /** Where a page lies in one pool of a side's memory. */
    long offset(int pool, int page) {
        return layout().pageBytes() * ((long) pool * cachePages + page);
    }

    /**
     * What tells a page of a request from the pages of all other blocks, the same wherever the
     * block occurs: the number of its first token if blocks were numbered by hash.
     */
    long firstToken(List<Long> hashes, int page) {
        return hashes.get(page / blockPages) * TraceRequest.BLOCK_TOKENS
                + (long) (page % blockPages) * Scenario.PAGE_TOKENS;
    }

    /** Computes one page in one pool. */
    void fill(MemorySegment target, long offset, int pool, long firstToken) {
        Content content = new Content(seed);
        long tokenBytes = layout().tokenBytes();
        for (int token = 0; token < Scenario.PAGE_TOKENS; token++) {
            content.fill(
                    target, offset + token * tokenBytes, pool, firstToken + token, 0, tokenBytes);
        }
    }

    /** Names a byte of a page, of whose request so many tokens come before it. */
    String place(long tokensBefore, long offset) {
        long tokenBytes = layout().tokenBytes();
        return model.place(
                tokensBefore + offset / tokenBytes,
                offset % tokenBytes,
                tokenBytes / model.kvHeads());
    }
}
