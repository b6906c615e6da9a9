package dev.verbena.kv;

import dev.verbena.transfer.TransferBatch;
import java.util.List;

/**
 * Plans Mamba state, sliced (category 8): between sides of different TP sizes, in either direction,
 * the rows of every tensor that both ranks hold; of one state slot, once per request, with the last
 * chunk.
 *
 * <p>Shape: one block per tensor and group. Ranks that share no row have nothing to move: the batch
 * is empty. Every rank of {@link RankMap#prefillRanksOf} takes part, since rows are never
 * replicated.
 *
 * <p>Source: SGLang's {@code _send_mamba_state_slice}.
 */
public final class MambaSlicePlanner {
    private MambaSlicePlanner() {}

    /**
     * Plans into a new batch.
     *
     * @param prefill state tensors of this side, items are state slots; local
     * @param decode state tensors of the peer; remote. Paired by layer, or by position without
     *     layer ids
     * @param tensors the sharded dimension of each prefill pool, in their order
     * @param ranks the two ranks and the TP sizes
     * @param prefillStates the one state slot to read, below every prefill tensor's item count
     * @param decodeStates the one state slot to fill, below every decode tensor's item count
     * @return a batch of at most one block per tensor and group
     * @throws IllegalArgumentException if the tensors cannot be paired, there is not one
     *     description per tensor, a group is not divisible by a TP size, an item length is not that
     *     of the rank's rows, or a list does not hold exactly one index
     * @throws IndexOutOfBoundsException if an index is outside its tensor
     */
    public static TransferBatch plan(
            KvPools prefill,
            KvPools decode,
            List<MambaTensor> tensors,
            RankPair ranks,
            int[] prefillStates,
            int[] decodeStates) {
        return fill(
                new TransferBatch(), prefill, decode, tensors, ranks, prefillStates, decodeStates);
    }

    /**
     * Plans into a batch, after the blocks it holds.
     *
     * @param batch takes the blocks; unchanged if the plan is refused
     * @param prefill as for {@link #plan}
     * @param decode as for {@link #plan}
     * @param tensors as for {@link #plan}
     * @param ranks as for {@link #plan}
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
            List<MambaTensor> tensors,
            RankPair ranks,
            int[] prefillStates,
            int[] decodeStates) {
        PoolPairs pairs = PoolPairs.of(prefill, decode);
        checkItemBytes(pairs, tensors, ranks);
        MambaPlanner.checkOne("prefillStates", prefillStates);
        MambaPlanner.checkOne("decodeStates", decodeStates);
        IndexRuns slot = pairs.runs("States", prefillStates, decodeStates);
        Checks.room(batch, tensors.stream().mapToLong(MambaTensor::groupCount).sum());

        for (int pair = 0; pair < pairs.size(); pair++) {
            long source = pairs.prefillBase(pair) + slot.source(0) * pairs.prefillItemBytes(pair);
            long destination =
                    pairs.decodeBase(pair) + slot.destination(0) * pairs.decodeItemBytes(pair);
            add(batch, tensors.get(pair), ranks, source, destination);
        }
        return batch;
    }

    /** Adds the shared rows of every group, whose shards begin at the two addresses. */
    private static void add(
            TransferBatch batch,
            MambaTensor tensor,
            RankPair ranks,
            long source,
            long destination) {
        long rowBytes = tensor.rowBytes();
        for (int group = 0; group < tensor.groupCount(); group++) {
            long prefillRows = tensor.groupRows(group) / ranks.prefillSize();
            long decodeRows = tensor.groupRows(group) / ranks.decodeSize();
            long prefillStart = prefillRows * ranks.prefillRank();
            long decodeStart = decodeRows * ranks.decodeRank();
            long first = Math.max(prefillStart, decodeStart);
            long end = Math.min(prefillStart + prefillRows, decodeStart + decodeRows);
            if (first < end) {
                batch.add(
                        source + (first - prefillStart) * rowBytes,
                        destination + (first - decodeStart) * rowBytes,
                        (end - first) * rowBytes);
            }
            source += prefillRows * rowBytes;
            destination += decodeRows * rowBytes;
        }
    }

    private static void checkItemBytes(PoolPairs pairs, List<MambaTensor> tensors, RankPair ranks) {
        if (tensors.size() != pairs.size()) {
            throw new IllegalArgumentException(
                    "tensors has %d entries for %d prefill pools"
                            .formatted(tensors.size(), pairs.size()));
        }
        for (int pair = 0; pair < pairs.size(); pair++) {
            MambaTensor tensor = tensors.get(pair);
            checkItemBytes(
                    "prefill", pair, pairs.prefillItemBytes(pair), tensor, ranks.prefillSize());
            checkItemBytes(
                    "decode",
                    pairs.decodePool(pair),
                    pairs.decodeItemBytes(pair),
                    tensor,
                    ranks.decodeSize());
        }
    }

    private static void checkItemBytes(
            String side, int pool, long itemBytes, MambaTensor tensor, int tpSize) {
        long expected;
        try {
            expected = tensor.itemBytes(tpSize);
        } catch (IllegalArgumentException indivisible) {
            throw new IllegalArgumentException(
                    "tensor of %s pool %d: %s".formatted(side, pool, indivisible.getMessage()),
                    indivisible);
        }
        if (itemBytes != expected) {
            throw new IllegalArgumentException(
                    "items of %s pool %d are %d bytes, its rows at TP size %d are %d bytes"
                            .formatted(side, pool, itemBytes, tpSize, expected));
        }
    }
}
