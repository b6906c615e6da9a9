package dev.verbena.kv;

/**
 * Says which KV heads the ranks of one side hold. With no more ranks than heads, each rank holds a
 * stretch of heads; with more ranks than heads, heads are replicated: rank r of T holds head r / (T
 * / heads). Latent attention (MLA) is the case of one head that every rank holds.
 *
 * @param size number of ranks, at least 1
 * @param kvHeads KV heads of the whole model, at least 1; either number divides the other
 */
public record TensorParallel(int size, int kvHeads) {
    /**
     * Checks the sizes.
     *
     * @throws IllegalArgumentException if a number is below 1, or neither divides the other
     */
    public TensorParallel {
        Checks.positive("TP size", size);
        Checks.positive("kvHeads", kvHeads);
        if (size % kvHeads != 0 && kvHeads % size != 0) {
            throw new IllegalArgumentException(
                    "TP size %d and %d KV heads: neither divides the other"
                            .formatted(size, kvHeads));
        }
    }

    /**
     * Says how many heads every rank holds.
     *
     * @return heads of one rank, at least 1
     */
    public int headsPerRank() {
        return Math.max(1, kvHeads / size);
    }

    /**
     * Says how many ranks hold the same heads.
     *
     * @return ranks per head, at least 1; 1 unless there are more ranks than heads
     */
    public int replicas() {
        return Math.max(1, size / kvHeads);
    }

    /**
     * Says which heads a rank holds: this one and the following {@link #headsPerRank} - 1.
     *
     * @param rank rank of this side
     * @return first head of the rank, counted over the whole model
     * @throws IndexOutOfBoundsException if there is no such rank
     */
    public int firstHead(int rank) {
        return Checks.rank("rank", rank, size) / replicas() * headsPerRank();
    }
}
