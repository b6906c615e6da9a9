package dev.verbena.demo;

import dev.verbena.kv.TensorParallel;

/**
 * One request of the demo: what the prefill side is asked to move, and all that the decode side
 * must know to set its slots aside and to judge them.
 *
 * @param scenario how it is moved, and how much
 * @param seed of the content, and of where pages lie
 */
record Job(Scenario scenario, long seed) {
    Job {
        int tokens = scenario.tokens();
        if (tokens < 1 || tokens > Scenario.MAX_TOKENS) {
            throw new IllegalArgumentException(
                    tokens + " tokens are outside 1.." + Scenario.MAX_TOKENS);
        }
    }

    /** Which of the two sides. */
    enum Side {
        PREFILL,
        DECODE
    }

    int ranks(Side side) {
        return side == Side.PREFILL ? scenario.prefillTp() : scenario.decodeTp();
    }

    TensorParallel tensorParallel(Side side) {
        return new TensorParallel(ranks(side), scenario.model().kvHeads());
    }

    /** Tokens of a page: one on the decode side of HiSparse. */
    int pageTokens(Side side) {
        boolean single = side == Side.DECODE && scenario.way() == Scenario.Way.TOKENS;
        return single ? 1 : Scenario.PAGE_TOKENS;
    }

    /** Pages of the request in each pool. */
    int pages(Side side) {
        return Math.ceilDiv(scenario.tokens(), pageTokens(side));
    }

    /** Pages of a side's pools: a quarter as many again, and some, belong to others or are free. */
    int cachePages(Side side) {
        return pages(side) + pages(side) / 4 + 32;
    }

    /** Pages of the sliding layers that hold the window at the end of the prompt. */
    int windowPages() {
        int tokens = Math.min(scenario.tokens(), ModelShape.WINDOW_TOKENS);
        return Math.ceilDiv(tokens, Scenario.PAGE_TOKENS);
    }

    /** Bytes of all ranks of both sides. */
    long cacheBytes() {
        long bytes = 0;
        for (Side side : Side.values()) {
            for (int rank = 0; rank < ranks(side); rank++) {
                bytes += RankCache.of(this, side, rank).lengthBytes();
            }
        }
        return bytes;
    }

    /**
     * Whether an item of a prefill rank is the item of the decode rank of the same number, so that
     * checksums can be compared.
     */
    boolean hasSameItems() {
        return scenario.prefillTp() == scenario.decodeTp()
                && pageTokens(Side.PREFILL) == pageTokens(Side.DECODE);
    }

    /** Identity of the request on both sides. */
    long room() {
        return seed;
    }
}
