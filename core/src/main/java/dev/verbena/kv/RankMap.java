package dev.verbena.kv;

import java.util.stream.IntStream;

/**
 * Says which prefill rank writes what to which decode rank. One TP size divides the other, so every
 * decode rank faces a window of prefill ranks (or a single one that it shares with its neighbours),
 * and no others.
 *
 * <p>Where heads are replicated, several ranks of a window may hold the same head: the first of
 * them writes it, the others are dummies, which have no KV to send to that decode rank. They may
 * still have other state to send, see {@link #prefillRanksOf}.
 *
 * <p>For latent attention (MLA) give one KV head.
 *
 * <p>Source: the rank mapping of SGLang's disaggregation bootstrap.
 *
 * @param prefill ranks and heads of the prefill side
 * @param decode ranks and heads of the decode side; the same number of KV heads
 */
public record RankMap(TensorParallel prefill, TensorParallel decode) {
    /**
     * Checks that the sides fit together.
     *
     * @throws IllegalArgumentException if the KV heads differ, or neither TP size divides the other
     */
    public RankMap {
        if (prefill.kvHeads() != decode.kvHeads()) {
            throw new IllegalArgumentException(
                    "the prefill side has %d KV heads and the decode side %d"
                            .formatted(prefill.kvHeads(), decode.kvHeads()));
        }
        Checks.tpSizes(prefill.size(), decode.size());
    }

    /**
     * Makes the map of two TP sizes.
     *
     * @param prefillSize ranks of the prefill side, at least 1
     * @param decodeSize ranks of the decode side, at least 1
     * @param kvHeads KV heads of the whole model, at least 1; 1 for latent attention
     * @return the map
     * @throws IllegalArgumentException if a number is below 1, neither TP size divides the other,
     *     or one of them and the heads do not divide
     */
    public static RankMap of(int prefillSize, int decodeSize, int kvHeads) {
        return new RankMap(
                new TensorParallel(prefillSize, kvHeads), new TensorParallel(decodeSize, kvHeads));
    }

    /**
     * Gives the prefill ranks that face a decode rank. State that is sharded by rank and never
     * replicated, such as sliced Mamba state, comes from all of them.
     *
     * @param decodeRank rank of the decode side
     * @return prefill ranks, ascending, at least one
     * @throws IndexOutOfBoundsException if there is no such rank
     */
    public int[] prefillRanksOf(int decodeRank) {
        int first = firstPrefillRank(Checks.rank("decode rank", decodeRank, decode.size()));
        return IntStream.range(first, first + prefillRanksPerDecodeRank()).toArray();
    }

    /**
     * Gives the prefill ranks that write KV to a decode rank: of every head that it holds, exactly
     * one writer.
     *
     * @param decodeRank rank of the decode side
     * @return prefill ranks, ascending, at least one
     * @throws IndexOutOfBoundsException if there is no such rank
     */
    public int[] writersOf(int decodeRank) {
        return IntStream.of(prefillRanksOf(decodeRank))
                .filter(prefillRank -> writes(prefillRank, decodeRank))
                .toArray();
    }

    /**
     * Gives the decode ranks that a prefill rank writes KV to.
     *
     * @param prefillRank rank of the prefill side
     * @return decode ranks, ascending; none if the rank is a dummy
     * @throws IndexOutOfBoundsException if there is no such rank
     */
    public int[] readersOf(int prefillRank) {
        Checks.rank("prefill rank", prefillRank, prefill.size());
        return IntStream.range(0, decode.size())
                .filter(decodeRank -> writes(prefillRank, decodeRank))
                .toArray();
    }

    /**
     * Says whether a prefill rank writes KV to a decode rank.
     *
     * @param prefillRank rank of the prefill side
     * @param decodeRank rank of the decode side
     * @return true if it is the first in the window of the decode rank that holds its heads
     * @throws IndexOutOfBoundsException if there is no such rank on its side
     */
    public boolean writes(int prefillRank, int decodeRank) {
        Checks.rank("prefill rank", prefillRank, prefill.size());
        Checks.rank("decode rank", decodeRank, decode.size());
        int position = prefillRank - firstPrefillRank(decodeRank);
        if (position < 0 || position >= prefillRanksPerDecodeRank()) {
            return false;
        }
        return position == 0
                || prefill.firstHead(prefillRank) != prefill.firstHead(prefillRank - 1);
    }

    /**
     * Gives the heads that two ranks both hold, whether or not the one writes to the other.
     *
     * @param prefillRank rank of the prefill side
     * @param decodeRank rank of the decode side
     * @return the shared heads, none if the ranks hold different ones
     * @throws IndexOutOfBoundsException if there is no such rank on its side
     */
    public HeadSlice slice(int prefillRank, int decodeRank) {
        Checks.rank("prefill rank", prefillRank, prefill.size());
        Checks.rank("decode rank", decodeRank, decode.size());
        int prefillStart = prefill.firstHead(prefillRank);
        int decodeStart = decode.firstHead(decodeRank);
        int prefillHeads = prefill.headsPerRank();
        int decodeHeads = decode.headsPerRank();
        int first = Math.max(prefillStart, decodeStart);
        int end = Math.min(prefillStart + prefillHeads, decodeStart + decodeHeads);
        if (end <= first) {
            return new HeadSlice(0, prefillHeads, 0, decodeHeads, 0);
        }
        return new HeadSlice(
                end - first, prefillHeads, first - prefillStart, decodeHeads, first - decodeStart);
    }

    /**
     * Picks one rank of either side.
     *
     * @param prefillRank rank of the prefill side
     * @param decodeRank rank of the decode side
     * @return the two ranks with the TP sizes
     * @throws IndexOutOfBoundsException if there is no such rank on its side
     */
    public RankPair pair(int prefillRank, int decodeRank) {
        return new RankPair(prefill.size(), prefillRank, decode.size(), decodeRank);
    }

    /**
     * Says how many prefill ranks face each decode rank: the regions of a decode staging area, one
     * per rank whether it writes or is a dummy.
     *
     * @return prefill ranks per decode rank, at least 1
     */
    public int prefillRanksPerDecodeRank() {
        return Math.max(1, prefill.size() / decode.size());
    }

    private int firstPrefillRank(int decodeRank) {
        return (int) ((long) decodeRank * prefill.size() / decode.size());
    }
}
