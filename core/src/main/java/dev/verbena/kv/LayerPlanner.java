package dev.verbena.kv;

import dev.verbena.transfer.TransferBatch;
import java.util.ArrayList;
import java.util.List;

/**
 * Plans KV pages layer by layer (category 2): a batch per layer, K and V together, to be posted
 * concurrently. For pools from a custom allocator, whose layers are registered apart.
 *
 * <p>Shape: per layer as many blocks as runs times pools. Pools without layer ids count as a layer
 * each: give ids ({@link KvPools#withLayerRange}) to have K and V of a layer together.
 *
 * <p>Source: SGLang's {@code send_kvcache} with a custom memory pool.
 */
public final class LayerPlanner {
    private LayerPlanner() {}

    /**
     * Plans a batch per layer. The runs are found once for all of them.
     *
     * @param prefill pools of this side; local
     * @param decode pools of the peer; remote. Paired by layer, or by position without layer ids;
     *     pairs have equal item lengths
     * @param prefillPages pages to send, each at least 0 and below every prefill pool's item count
     * @param decodePages pages to fill, as many, below every decode pool's item count, none twice
     * @return one batch per layer of the prefill pools, layers ascending; all empty if the lists
     *     are
     * @throws IllegalArgumentException if the pools cannot be paired or differ in item length, the
     *     lists differ in length, a decode page occurs twice, or the blocks exceed a batch
     * @throws IndexOutOfBoundsException if a page is outside its pool
     */
    public static List<TransferBatch> plan(
            KvPools prefill, KvPools decode, int[] prefillPages, int[] decodePages) {
        PoolPairs pairs = PoolPairs.ofEqualItems(prefill, decode);
        IndexRuns runs = pairs.runs("Pages", prefillPages, decodePages);
        List<TransferBatch> batches = new ArrayList<>();
        for (int[] layer : pairs.byLayer()) {
            TransferBatch batch = Checks.newBatch((long) layer.length * runs.count());
            for (int pair : layer) {
                runs.addTo(
                        batch,
                        pairs.prefillBase(pair),
                        pairs.decodeBase(pair),
                        pairs.prefillItemBytes(pair));
            }
            batches.add(batch);
        }
        return batches;
    }
}
