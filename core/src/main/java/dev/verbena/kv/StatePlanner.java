package dev.verbena.kv;

import dev.verbena.transfer.TransferBatch;

/**
 * Plans the state pages of hybrid attention models, sliding window (SWA) or native sparse attention
 * (NSA) (category 4): the same map of pages as {@link PagePlanner}, over the state pools, with
 * index lists of their own. Sent once, with the last chunk.
 *
 * <p>Both lists are positional, so they must be equally long: a shorter one is never read as a
 * prefix of the other.
 *
 * <p>Source: SGLang's {@code maybe_send_extra}.
 */
public final class StatePlanner {
    private StatePlanner() {}

    /**
     * Plans into a new batch of exactly the right capacity.
     *
     * @param prefill state pools of this side; local
     * @param decode state pools of the peer; remote. Paired by layer, or by position without layer
     *     ids; pairs have equal item lengths
     * @param prefillStatePages state pages to send, each below every prefill pool's item count
     * @param decodeStatePages state pages to fill, as many, below every decode pool's item count,
     *     none twice
     * @return a batch of pools x runs blocks, empty if the lists are
     * @throws IllegalArgumentException if the pools cannot be paired or differ in item length, the
     *     lists differ in length, a decode page occurs twice, or the blocks exceed a batch
     * @throws IndexOutOfBoundsException if a page is outside its pool
     */
    public static TransferBatch plan(
            KvPools prefill, KvPools decode, int[] prefillStatePages, int[] decodeStatePages) {
        PoolPairs pairs = PoolPairs.ofEqualItems(prefill, decode);
        IndexRuns runs = pairs.runs("StatePages", prefillStatePages, decodeStatePages);
        TransferBatch batch = Checks.newBatch((long) pairs.size() * runs.count());
        return PagePlanner.add(batch, pairs, runs);
    }

    /**
     * Plans into a batch, after the blocks it holds. Those are not checked for overlap with the new
     * ones.
     *
     * @param batch takes the blocks; unchanged if the plan is refused
     * @param prefill as for {@link #plan}
     * @param decode as for {@link #plan}
     * @param prefillStatePages as for {@link #plan}
     * @param decodeStatePages as for {@link #plan}
     * @return the batch
     * @throws IllegalArgumentException as for {@link #plan}
     * @throws IndexOutOfBoundsException as for {@link #plan}
     */
    public static TransferBatch fill(
            TransferBatch batch,
            KvPools prefill,
            KvPools decode,
            int[] prefillStatePages,
            int[] decodeStatePages) {
        PoolPairs pairs = PoolPairs.ofEqualItems(prefill, decode);
        IndexRuns runs = pairs.runs("StatePages", prefillStatePages, decodeStatePages);
        Checks.room(batch, (long) pairs.size() * runs.count());
        return PagePlanner.add(batch, pairs, runs);
    }
}
