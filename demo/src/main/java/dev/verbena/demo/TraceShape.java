package dev.verbena.demo;

import dev.verbena.kv.KvCache;
import dev.verbena.kv.KvLayout;
import java.lang.foreign.MemorySegment;

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

    /** Where a page lies in one pool of a side's memory. */
    long offset(int pool, int page) {
        return layout().pageBytes() * ((long) pool * cachePages + page);
    }

    /** Computes one page in one pool: its tokens follow from the block's hash. */
    void fill(MemorySegment target, long offset, int pool, long hash, int pageOfBlock) {
        Content content = new Content(seed);
        long tokenBytes = layout().tokenBytes();
        for (int token = 0; token < Scenario.PAGE_TOKENS; token++) {
            long unit =
                    hash * TraceRequest.BLOCK_TOKENS
                            + (long) pageOfBlock * Scenario.PAGE_TOKENS
                            + token;
            content.fill(target, offset + token * tokenBytes, pool, unit, 0, tokenBytes);
        }
    }
}
