package dev.verbena.kv;

/**
 * One rank of either side, with the TP sizes: what sharding needs to know.
 *
 * <p>Source: {@link RankMap#pair}.
 *
 * @param prefillSize TP size of the prefill side, at least 1
 * @param prefillRank rank of the prefill side
 * @param decodeSize TP size of the decode side, at least 1; one size divides the other
 * @param decodeRank rank of the decode side
 */
public record RankPair(int prefillSize, int prefillRank, int decodeSize, int decodeRank) {
    /**
     * Checks sizes and ranks.
     *
     * @throws IllegalArgumentException if a size is below 1 or neither divides the other
     * @throws IndexOutOfBoundsException if a rank is outside its size
     */
    public RankPair {
        Checks.positive("prefill TP size", prefillSize);
        Checks.positive("decode TP size", decodeSize);
        Checks.tpSizes(prefillSize, decodeSize);
        Checks.rank("prefill rank", prefillRank, prefillSize);
        Checks.rank("decode rank", decodeRank, decodeSize);
    }
}
