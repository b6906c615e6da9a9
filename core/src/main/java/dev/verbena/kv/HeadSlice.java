package dev.verbena.kv;

/**
 * The heads that a prefill rank and a decode rank both hold, as positions inside a token on either
 * side. A token of a pool is {@code [head][headDim]}.
 *
 * <p>Source: {@link RankMap#slice}.
 *
 * @param heads heads that both hold, at least 0; 0 means there is nothing to move
 * @param prefillHeads heads that the prefill rank holds, at least 1
 * @param prefillFirst position of the first shared head among them
 * @param decodeHeads heads that the decode rank holds, at least 1
 * @param decodeFirst position of the first shared head among them
 */
public record HeadSlice(
        int heads, int prefillHeads, int prefillFirst, int decodeHeads, int decodeFirst) {
    /**
     * Checks that the shared heads lie within both tokens.
     *
     * @throws IllegalArgumentException if a number is out of range
     */
    public HeadSlice {
        Checks.notNegative("heads", heads);
        checkWithin("prefill", heads, prefillHeads, prefillFirst);
        checkWithin("decode", heads, decodeHeads, decodeFirst);
    }

    /**
     * Says whether the ranks share no head.
     *
     * @return true if there is nothing to move between them
     */
    public boolean isEmpty() {
        return heads == 0;
    }

    /**
     * Gives the bytes of one head from the item length of a pool.
     *
     * @throws IllegalArgumentException if the page cannot be divided into that many tokens and
     *     heads
     */
    static long headBytes(String side, KvPools pools, int pool, int pageTokens, int heads) {
        long parts = (long) pageTokens * heads;
        if (pools.itemBytes(pool) % parts != 0) {
            throw new IllegalArgumentException(
                    "a page of %s pool %d is %d bytes, not divisible into %d tokens x %d heads"
                            .formatted(side, pool, pools.itemBytes(pool), pageTokens, heads));
        }
        return pools.itemBytes(pool) / parts;
    }

    private static void checkWithin(String side, int heads, int held, int first) {
        Checks.positive(side + " heads", held);
        Checks.notNegative("first " + side + " head", first);
        if ((long) first + heads > held) {
            throw new IllegalArgumentException(
                    "shared heads %d..%d are outside the %d heads of the %s rank"
                            .formatted(first, (long) first + heads - 1, held, side));
        }
    }
}
