package dev.verbena.kv;

import dev.verbena.transfer.TransferBatch;

/**
 * Plans prefill pages into single decode tokens (HiSparse, category 3): the decode side's host pool
 * has pages of one token, so every prefill page is expanded to its tokens.
 *
 * <p>Shape: layers x token runs blocks. Token t of page p of the request goes to slot {@code
 * decodeTokens[p * pageTokens + t]}; tokens past the end of that list do not exist, so the last
 * page may be partly filled.
 *
 * <p>Source: SGLang's {@code send_kvcache_hisparse}.
 */
public final class HiSparsePlanner {
    private HiSparsePlanner() {}

    /**
     * Plans into a new batch of exactly the right capacity.
     *
     * @param prefill pools of this side, items are pages; local
     * @param decode pools of the peer, items are tokens; remote. Paired by layer, or by position
     *     without layer ids
     * @param pageTokens tokens of a prefill page, at least 1
     * @param slice which pages of the request the prefill pages are
     * @param prefillPages pages to send, one per page of the slice, each below every prefill pool's
     *     item count
     * @param decodeTokens token slots of the whole request so far; those of the slice are each
     *     below every decode pool's item count, and none occurs twice
     * @return a batch of pools x token runs blocks, empty if the slice holds no token
     * @throws IllegalArgumentException if the pools cannot be paired, a prefill item is not
     *     pageTokens decode items, the slice and the prefill pages differ in length, a token slot
     *     occurs twice, or the tokens of a pool or the blocks of the plan exceed 32 bits
     * @throws IndexOutOfBoundsException if a page or a token slot is outside its pool
     */
    public static TransferBatch plan(
            KvPools prefill,
            KvPools decode,
            int pageTokens,
            PageSlice slice,
            int[] prefillPages,
            int[] decodeTokens) {
        PoolPairs pairs = pairs(prefill, decode, pageTokens);
        IndexRuns runs = runs(pairs, pageTokens, slice, prefillPages, decodeTokens);
        return add(Checks.newBatch((long) pairs.size() * runs.count()), pairs, runs);
    }

    /**
     * Plans into a batch, after the blocks it holds. Those are not checked for overlap with the new
     * ones.
     *
     * @param batch takes the blocks; unchanged if the plan is refused
     * @param prefill as for {@link #plan}
     * @param decode as for {@link #plan}
     * @param pageTokens as for {@link #plan}
     * @param slice as for {@link #plan}
     * @param prefillPages as for {@link #plan}
     * @param decodeTokens as for {@link #plan}
     * @return the batch
     * @throws IllegalArgumentException as for {@link #plan}
     * @throws IndexOutOfBoundsException as for {@link #plan}
     */
    public static TransferBatch fill(
            TransferBatch batch,
            KvPools prefill,
            KvPools decode,
            int pageTokens,
            PageSlice slice,
            int[] prefillPages,
            int[] decodeTokens) {
        PoolPairs pairs = pairs(prefill, decode, pageTokens);
        IndexRuns runs = runs(pairs, pageTokens, slice, prefillPages, decodeTokens);
        Checks.room(batch, (long) pairs.size() * runs.count());
        return add(batch, pairs, runs);
    }

    private static TransferBatch add(TransferBatch batch, PoolPairs pairs, IndexRuns runs) {
        for (int pair = 0; pair < pairs.size(); pair++) {
            runs.addTo(
                    batch,
                    pairs.prefillBase(pair),
                    pairs.decodeBase(pair),
                    pairs.decodeItemBytes(pair));
        }
        return batch;
    }

    private static PoolPairs pairs(KvPools prefill, KvPools decode, int pageTokens) {
        Checks.positive("pageTokens", pageTokens);
        PoolPairs pairs = PoolPairs.of(prefill, decode);
        for (int pair = 0; pair < pairs.size(); pair++) {
            long pageBytes = pairs.prefillItemBytes(pair);
            long tokenBytes = pairs.decodeItemBytes(pair);
            if (pageBytes % pageTokens != 0 || pageBytes / pageTokens != tokenBytes) {
                throw new IllegalArgumentException(
                        ("a page of prefill pool %d is %d bytes, not %d tokens of the %d bytes"
                                        + " of decode pool %d")
                                .formatted(
                                        pair,
                                        pageBytes,
                                        pageTokens,
                                        tokenBytes,
                                        pairs.decodePool(pair)));
            }
            if ((long) prefill.itemCount(pair) * pageTokens > Integer.MAX_VALUE) {
                throw new IllegalArgumentException(
                        ("prefill pool %d holds %d pages of %d tokens: more than an index can"
                                        + " count")
                                .formatted(pair, prefill.itemCount(pair), pageTokens));
            }
        }
        return pairs;
    }

    private static IndexRuns runs(
            PoolPairs pairs, int pageTokens, PageSlice slice, int[] prefillPages, int[] tokens) {
        if (prefillPages.length != slice.count()) {
            throw new IllegalArgumentException(
                    "prefillPages has %d entries and the slice %d..%d has %d pages"
                            .formatted(
                                    prefillPages.length,
                                    slice.first(),
                                    slice.end(),
                                    slice.count()));
        }
        pairs.checkPrefill("prefillPages", prefillPages);
        int from = (int) Math.min(tokens.length, (long) slice.first() * pageTokens);
        int to = (int) Math.min(tokens.length, (long) slice.end() * pageTokens);
        pairs.checkDecode("decodeTokens", tokens, from, to);

        int[] sources = new int[to - from];
        int[] destinations = new int[to - from];
        for (int i = 0; i < sources.length; i++) {
            sources[i] = prefillPages[i / pageTokens] * pageTokens + i % pageTokens;
            destinations[i] = tokens[from + i];
        }
        return IndexRuns.of(sources, destinations, "decodeTokens", from);
    }
}
