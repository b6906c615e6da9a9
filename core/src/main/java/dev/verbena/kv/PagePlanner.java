package dev.verbena.kv;

import dev.verbena.transfer.TransferBatch;
import java.util.ArrayList;
import java.util.List;

/**
 * Plans KV pages, all layers in one batch (category 1, the default): same TP size on both sides, or
 * latent attention. Page {@code prefillPages[i]} of every pool goes to page {@code decodePages[i]}
 * of its counterpart.
 *
 * <p>Shape: layers x runs blocks, pool by pool, runs in ascending order of decode page. A run is a
 * stretch of pages that are contiguous on both sides; runs are found once for all pools.
 *
 * <p>Source: SGLang's {@code send_kvcache}.
 */
public final class PagePlanner {
    private PagePlanner() {}

    /**
     * Plans into a new batch of exactly the right capacity.
     *
     * @param prefill pools of this side; local
     * @param decode pools of the peer; remote. Paired by layer, or by position without layer ids;
     *     pairs have equal item lengths
     * @param prefillPages pages to send, each at least 0 and below every prefill pool's item count;
     *     a page may occur more than once
     * @param decodePages pages to fill, as many, below every decode pool's item count, none twice
     * @return a batch of pools x runs blocks, empty if the lists are
     * @throws IllegalArgumentException if the pools cannot be paired or differ in item length, the
     *     lists differ in length, a decode page occurs twice, or the blocks exceed a batch
     * @throws IndexOutOfBoundsException if a page is outside its pool
     */
    public static TransferBatch plan(
            KvPools prefill, KvPools decode, int[] prefillPages, int[] decodePages) {
        PoolPairs pairs = PoolPairs.ofEqualItems(prefill, decode);
        IndexRuns runs = pairs.runs("Pages", prefillPages, decodePages);
        return add(Checks.newBatch((long) pairs.size() * runs.count()), pairs, runs);
    }

    /**
     * Plans into a batch, after the blocks it holds. Those are not checked for overlap with the new
     * ones. A batch that is cleared and filled again allocates no blocks.
     *
     * @param batch takes the blocks; unchanged if the plan is refused
     * @param prefill as for {@link #plan}
     * @param decode as for {@link #plan}
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
            int[] prefillPages,
            int[] decodePages) {
        PoolPairs pairs = PoolPairs.ofEqualItems(prefill, decode);
        IndexRuns runs = pairs.runs("Pages", prefillPages, decodePages);
        Checks.room(batch, (long) pairs.size() * runs.count());
        return add(batch, pairs, runs);
    }

    /**
     * Plans into as many batches as needed for a bound on the pages of each. All of them are
     * checked before the first is made, so no decode page occurs in two.
     *
     * @param prefill as for {@link #plan}
     * @param decode as for {@link #plan}
     * @param prefillPages as for {@link #plan}
     * @param decodePages as for {@link #plan}
     * @param maxPagesPerBatch pages that one batch may move, at least 1
     * @return the batches, in ascending order of decode page; none if the lists are empty
     * @throws IllegalArgumentException as for {@link #plan}, or if the bound is below 1
     * @throws IndexOutOfBoundsException as for {@link #plan}
     */
    public static List<TransferBatch> planBounded(
            KvPools prefill,
            KvPools decode,
            int[] prefillPages,
            int[] decodePages,
            int maxPagesPerBatch) {
        Checks.positive("maxPagesPerBatch", maxPagesPerBatch);
        PoolPairs pairs = PoolPairs.ofEqualItems(prefill, decode);
        IndexRuns runs = pairs.runs("Pages", prefillPages, decodePages);
        List<TransferBatch> batches = new ArrayList<>();
        for (IndexRuns part : runs.cut(maxPagesPerBatch)) {
            batches.add(add(Checks.newBatch((long) pairs.size() * part.count()), pairs, part));
        }
        return batches;
    }

    /** Adds a block per pair and run. */
    static TransferBatch add(TransferBatch batch, PoolPairs pairs, IndexRuns runs) {
        for (int pair = 0; pair < pairs.size(); pair++) {
            runs.addTo(
                    batch,
                    pairs.prefillBase(pair),
                    pairs.decodeBase(pair),
                    pairs.prefillItemBytes(pair));
        }
        return batch;
    }
}
