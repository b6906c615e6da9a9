package dev.verbena.demo;

import dev.verbena.kv.KvLayout;

/**
 * One request of the demo: what the prefill side is asked to move, and all that the decode side
 * must know to set its pages aside and to judge them.
 *
 * @param model whose cache it is
 * @param tokens length of the prompt, 1 to {@link #MAX_TOKENS}
 * @param seed of the content, and of where pages lie
 */
record Job(ModelShape model, int tokens, long seed) {
    /** Tokens of one page, as most engines have it by default. */
    static final int PAGE_TOKENS = 16;

    /** The longest context that the models here are published with. */
    static final int MAX_TOKENS = 128 << 10;

    Job {
        if (tokens < 1 || tokens > MAX_TOKENS) {
            throw new IllegalArgumentException(tokens + " tokens are outside 1.." + MAX_TOKENS);
        }
    }

    KvLayout layout() {
        return model.layout(PAGE_TOKENS);
    }

    /**
     * Pages of the request in each pool; the last may hold less than its tokens, and moves whole.
     */
    int pages() {
        return Math.ceilDiv(tokens, PAGE_TOKENS);
    }

    /**
     * Pages of each side's pools: a quarter as many again, and some, belong to others or are free.
     */
    int cachePages() {
        return pages() + pages() / 4 + 32;
    }

    long bytes() {
        return layout().bytes(pages());
    }

    /** Bytes of one side's pools. */
    long cacheBytes() {
        return layout().bytes(cachePages());
    }

    /** Identity of the request on both sides. */
    long room() {
        return seed;
    }
}
