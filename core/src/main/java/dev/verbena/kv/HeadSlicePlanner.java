package dev.verbena.kv;

import dev.verbena.transfer.TransferBatch;
import java.util.ArrayList;
import java.util.List;

/**
 * Plans the heads that both ranks hold, token by token (category 9): different TP sizes, without
 * staging.
 *
 * <p>Shape: pages x page tokens blocks per pool, or a block per run of pages where both ranks hold
 * the same heads, as with replication. A page is {@code [token][head][headDim]} on both sides.
 *
 * <p>Which ranks take part: {@link RankMap#writersOf}. Ranks that share no head have nothing to
 * move: the batch is empty.
 *
 * <p>Source: SGLang's {@code send_kvcache_slice}.
 */
public final class HeadSlicePlanner {
    private HeadSlicePlanner() {}

    /**
     * Plans all layers into a new batch of exactly the right capacity.
     *
     * @param prefill pools of this side; local
     * @param decode pools of the peer; remote. Paired by layer, or by position without layer ids
     * @param pageTokens tokens of a page on either side, at least 1
     * @param slice heads that both ranks hold, {@link RankMap#slice}
     * @param prefillPages pages to read, each below every prefill pool's item count
     * @param decodePages pages to fill, as many, below every decode pool's item count, none twice
     * @return a batch of all layers, pool by pool
     * @throws IllegalArgumentException if the pools cannot be paired, an item length is not
     *     divisible into tokens and heads, the heads of a pair differ in length, the lists differ
     *     in length, a decode page occurs twice, or the blocks exceed a batch
     * @throws IndexOutOfBoundsException if a page is outside its pool
     */
    public static TransferBatch plan(
            KvPools prefill,
            KvPools decode,
            int pageTokens,
            HeadSlice slice,
            int[] prefillPages,
            int[] decodePages) {
        PoolPairs pairs = PoolPairs.of(prefill, decode);
        TokenCopy[] copies = copies(pairs, prefill, decode, pageTokens, slice);
        IndexRuns runs = pairs.runs("Pages", prefillPages, decodePages);
        TransferBatch batch = Checks.newBatch(blocks(copies, runs, pageTokens));
        return add(batch, pairs, copies, runs, pageTokens);
    }

    /**
     * Plans all layers into a batch, after the blocks it holds. Those are not checked for overlap
     * with the new ones.
     *
     * @param batch takes the blocks; unchanged if the plan is refused
     * @param prefill as for {@link #plan}
     * @param decode as for {@link #plan}
     * @param pageTokens as for {@link #plan}
     * @param slice as for {@link #plan}
     * @param prefillPages as for {@link #plan}
     * @param decodePages as for {@link #plan}
     * @return the batch
     * @throws IllegalArgumentException as for {@link #plan}
     * @throws IndexOutOfBoundsException as for {@link #plan}
     */
    public static TransferBatch fill(
            TransferBatch batch,
            KvPools prefill,
            KvPools decode,
            int pageTokens,
            HeadSlice slice,
            int[] prefillPages,
            int[] decodePages) {
        PoolPairs pairs = PoolPairs.of(prefill, decode);
        TokenCopy[] copies = copies(pairs, prefill, decode, pageTokens, slice);
        IndexRuns runs = pairs.runs("Pages", prefillPages, decodePages);
        Checks.room(batch, blocks(copies, runs, pageTokens));
        return add(batch, pairs, copies, runs, pageTokens);
    }

    /**
     * Plans a batch per layer, K and V together, to be posted concurrently. Pools without layer ids
     * count as a layer each.
     *
     * @param prefill as for {@link #plan}
     * @param decode as for {@link #plan}
     * @param pageTokens as for {@link #plan}
     * @param slice as for {@link #plan}
     * @param prefillPages as for {@link #plan}
     * @param decodePages as for {@link #plan}
     * @return one batch per layer of the prefill pools, layers ascending
     * @throws IllegalArgumentException as for {@link #plan}
     * @throws IndexOutOfBoundsException as for {@link #plan}
     */
    public static List<TransferBatch> planLayers(
            KvPools prefill,
            KvPools decode,
            int pageTokens,
            HeadSlice slice,
            int[] prefillPages,
            int[] decodePages) {
        PoolPairs pairs = PoolPairs.of(prefill, decode);
        TokenCopy[] copies = copies(pairs, prefill, decode, pageTokens, slice);
        IndexRuns runs = pairs.runs("Pages", prefillPages, decodePages);
        List<TransferBatch> batches = new ArrayList<>();
        for (int[] layer : pairs.byLayer()) {
            long blocks = copies[layer[0]].blocks(runs, pageTokens) * layer.length;
            TransferBatch batch = Checks.newBatch(blocks);
            for (int pair : layer) {
                add(batch, pairs, pair, copies[pair], runs, pageTokens);
            }
            batches.add(batch);
        }
        return batches;
    }

    private static long blocks(TokenCopy[] copies, IndexRuns runs, int pageTokens) {
        return copies[0].blocks(runs, pageTokens) * copies.length;
    }

    private static TransferBatch add(
            TransferBatch batch,
            PoolPairs pairs,
            TokenCopy[] copies,
            IndexRuns runs,
            int pageTokens) {
        for (int pair = 0; pair < copies.length; pair++) {
            add(batch, pairs, pair, copies[pair], runs, pageTokens);
        }
        return batch;
    }

    private static void add(
            TransferBatch batch,
            PoolPairs pairs,
            int pair,
            TokenCopy copy,
            IndexRuns runs,
            int pageTokens) {
        copy.addTo(batch, runs, pageTokens, pairs.prefillBase(pair), pairs.decodeBase(pair));
    }

    private static TokenCopy[] copies(
            PoolPairs pairs, KvPools prefill, KvPools decode, int pageTokens, HeadSlice slice) {
        Checks.positive("pageTokens", pageTokens);
        TokenCopy[] copies = new TokenCopy[pairs.size()];
        for (int pair = 0; pair < copies.length; pair++) {
            int decodePool = pairs.decodePool(pair);
            long headBytes =
                    HeadSlice.headBytes("prefill", prefill, pair, pageTokens, slice.prefillHeads());
            long decodeHeadBytes =
                    HeadSlice.headBytes(
                            "decode", decode, decodePool, pageTokens, slice.decodeHeads());
            if (headBytes != decodeHeadBytes) {
                throw new IllegalArgumentException(
                        "a head of prefill pool %d is %d bytes, one of decode pool %d is %d bytes"
                                .formatted(pair, headBytes, decodePool, decodeHeadBytes));
            }
            copies[pair] =
                    new TokenCopy(
                            headBytes * slice.prefillHeads(),
                            headBytes * slice.prefillFirst(),
                            headBytes * slice.decodeHeads(),
                            headBytes * slice.decodeFirst(),
                            headBytes * slice.heads());
        }
        return copies;
    }
}
