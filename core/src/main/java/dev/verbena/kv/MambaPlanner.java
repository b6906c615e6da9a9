package dev.verbena.kv;

import dev.verbena.transfer.TransferBatch;

/**
 * Plans Mamba state, whole (category 7): the convolution and temporal state of one state slot, once
 * per request, with the last chunk, between sides of the same TP size.
 *
 * <p>Shape: one block per tensor. Tensors are pools whose items are state slots.
 *
 * <p>Source: SGLang's {@code _send_mamba_state}.
 */
public final class MambaPlanner {
    private MambaPlanner() {}

    /**
     * Plans into a new batch.
     *
     * @param prefill state tensors of this side; local
     * @param decode state tensors of the peer; remote. Paired by layer, or by position without
     *     layer ids; pairs have equal item lengths
     * @param prefillStates the one state slot to send, below every prefill tensor's item count
     * @param decodeStates the one state slot to fill, below every decode tensor's item count
     * @return a batch of one block per tensor
     * @throws IllegalArgumentException if the tensors cannot be paired or differ in item length, or
     *     a list does not hold exactly one index
     * @throws IndexOutOfBoundsException if an index is outside its tensor
     */
    public static TransferBatch plan(
            KvPools prefill, KvPools decode, int[] prefillStates, int[] decodeStates) {
        return fill(
                new TransferBatch(prefill.size()), prefill, decode, prefillStates, decodeStates);
    }

    /**
     * Plans into a batch, after the blocks it holds.
     *
     * @param batch takes the blocks; unchanged if the plan is refused
     * @param prefill as for {@link #plan}
     * @param decode as for {@link #plan}
     * @param prefillStates as for {@link #plan}
     * @param decodeStates as for {@link #plan}
     * @return the batch
     * @throws IllegalArgumentException as for {@link #plan}, or if the batch has no room
     * @throws IndexOutOfBoundsException as for {@link #plan}
     */
    public static TransferBatch fill(
            TransferBatch batch,
            KvPools prefill,
            KvPools decode,
            int[] prefillStates,
            int[] decodeStates) {
        PoolPairs pairs = PoolPairs.ofEqualItems(prefill, decode);
        checkOne("prefillStates", prefillStates);
        checkOne("decodeStates", decodeStates);
        IndexRuns slot = pairs.runs("States", prefillStates, decodeStates);
        Checks.room(batch, pairs.size());
        return PagePlanner.add(batch, pairs, slot);
    }

    /** Refuses a list that does not hold exactly one state index. */
    static void checkOne(String list, int[] states) {
        if (states.length != 1) {
            throw new IllegalArgumentException(
                    "%s has %d entries: a request has exactly one Mamba state"
                            .formatted(list, states.length));
        }
    }
}
