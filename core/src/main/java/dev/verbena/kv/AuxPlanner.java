package dev.verbena.kv;

import dev.verbena.transfer.TransferBatch;

/**
 * Plans auxiliary data (category 6): one item of every buffer (first token, log probabilities,
 * metadata), once per request, with the last chunk.
 *
 * <p>Shape: one block per buffer.
 *
 * <p>Source: SGLang's {@code send_aux}.
 */
public final class AuxPlanner {
    private AuxPlanner() {}

    /**
     * Plans into a new batch.
     *
     * @param prefill auxiliary buffers of this side; local
     * @param decode auxiliary buffers of the peer; remote. Paired by position; pairs have equal
     *     item lengths
     * @param prefillIndex item to send, below every prefill buffer's item count
     * @param decodeIndex item to fill, below every decode buffer's item count
     * @return a batch of one block per buffer
     * @throws IllegalArgumentException if the buffers cannot be paired or differ in item length
     * @throws IndexOutOfBoundsException if an index is outside its buffer
     */
    public static TransferBatch plan(
            KvPools prefill, KvPools decode, int prefillIndex, int decodeIndex) {
        return fill(new TransferBatch(prefill.size()), prefill, decode, prefillIndex, decodeIndex);
    }

    /**
     * Plans into a batch, after the blocks it holds.
     *
     * @param batch takes the blocks; unchanged if the plan is refused
     * @param prefill as for {@link #plan}
     * @param decode as for {@link #plan}
     * @param prefillIndex as for {@link #plan}
     * @param decodeIndex as for {@link #plan}
     * @return the batch
     * @throws IllegalArgumentException as for {@link #plan}, or if the batch has no room
     * @throws IndexOutOfBoundsException as for {@link #plan}
     */
    public static TransferBatch fill(
            TransferBatch batch,
            KvPools prefill,
            KvPools decode,
            int prefillIndex,
            int decodeIndex) {
        PoolPairs pairs = PoolPairs.ofEqualItems(prefill, decode);
        IndexRuns item = pairs.item(prefillIndex, decodeIndex);
        Checks.room(batch, pairs.size());
        return PagePlanner.add(batch, pairs, item);
    }
}
