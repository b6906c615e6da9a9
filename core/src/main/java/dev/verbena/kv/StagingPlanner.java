package dev.verbena.kv;

import dev.verbena.transfer.TransferBatch;
import java.util.Arrays;

/**
 * Plans the transfer of shared heads through staging areas (category 5): different TP sizes. Heads
 * of all layers are gathered into a local staging area, written in one block, the largest there is,
 * to the region of this rank in the decode rank's staging area, and scattered there into its pools.
 *
 * <pre>
 * prefill pools  --gather-->   prefill staging
 *                --bulk-->     decode staging + rank offset
 *                --scatter-->  decode pools
 * </pre>
 *
 * <p>A region is {@code [pool][token][shared head]}, pools in the order of the side's pools (a
 * pipeline stage scatters into {@link KvPools#onlyLayers}), tokens in the order of the page lists.
 * The three together amount to {@link HeadSlicePlanner#plan}.
 *
 * <p>Gather and scatter are copies within one side: in their batches the local address is where to
 * copy from and the remote address where to copy to.
 *
 * <p>Source: SGLang's staging buffers for heterogeneous TP.
 */
public final class StagingPlanner {
    private StagingPlanner() {}

    /**
     * Says how large the region of one prefill rank is.
     *
     * @param prefill pools of the prefill rank
     * @param pageTokens tokens of a page, at least 1
     * @param slice heads that both ranks hold
     * @param pages pages to send, at least 0
     * @return bytes of the shared heads of that many pages in all pools
     * @throws IllegalArgumentException if a number is out of range, an item length is not divisible
     *     into tokens and heads, or the result exceeds 64 bits
     */
    public static long bytesPerRank(KvPools prefill, int pageTokens, HeadSlice slice, int pages) {
        Checks.positive("pageTokens", pageTokens);
        Checks.notNegative("pages", pages);
        long[] headBytes = headBytes("prefill", prefill, pageTokens, slice.prefillHeads());
        return regionBytes(headBytes, pageTokens, slice, pages);
    }

    /**
     * Says where the region of a prefill rank begins in the staging area of a decode rank. Every
     * rank that faces the decode rank has a region, all of the same size.
     *
     * @param ranks ranks of both sides
     * @param prefillRank rank of the prefill side
     * @param bytesPerRank bytes of one region, at least 0
     * @return offset of its first byte
     * @throws IllegalArgumentException if the size is negative or the result exceeds 64 bits
     * @throws IndexOutOfBoundsException if there is no such rank
     */
    public static long rankOffset(RankMap ranks, int prefillRank, long bytesPerRank) {
        Checks.rank("prefill rank", prefillRank, ranks.prefill().size());
        Checks.notNegative("bytesPerRank", bytesPerRank);
        int position = prefillRank % ranks.prefillRanksPerDecodeRank();
        return Checks.product("offset of rank " + prefillRank, bytesPerRank, position);
    }

    /**
     * Plans the copies from the prefill pools to the staging area of the same side.
     *
     * @param prefill pools of this side: copied from
     * @param pageTokens tokens of a page, at least 1
     * @param slice heads that both ranks hold
     * @param prefillPages pages to send, each below every pool's item count
     * @param staging where to copy to; at least {@link #bytesPerRank} long, apart from the pools
     * @return a batch of pages x page tokens blocks per pool, fewer where whole tokens are copied
     * @throws IllegalArgumentException if an item length is not divisible into tokens and heads,
     *     the staging area is too small or overlaps a pool, or the blocks exceed a batch
     * @throws IndexOutOfBoundsException if a page is outside its pool
     */
    public static TransferBatch gather(
            KvPools prefill,
            int pageTokens,
            HeadSlice slice,
            int[] prefillPages,
            StagingArea staging) {
        long[] headBytes = headBytes("prefill", prefill, pageTokens, slice.prefillHeads());
        PoolPairs.checkAll("prefillPages", prefillPages, "prefill", prefill);
        IndexRuns runs = IndexRuns.of(prefillPages, order(prefillPages), "staged pages", 0);
        long bytes = regionBytes(headBytes, pageTokens, slice, prefillPages.length);
        long staged = region(staging, 0, bytes, "prefill", prefill).base();

        long blocks = gatherCopy(headBytes[0], slice).blocks(runs, pageTokens) * prefill.size();
        TransferBatch batch = Checks.newBatch(blocks);
        for (int pool = 0; pool < headBytes.length; pool++) {
            TokenCopy copy = gatherCopy(headBytes[pool], slice);
            copy.addTo(batch, runs, pageTokens, prefill.base(pool), staged);
            staged += copy.partBytes() * pageTokens * prefillPages.length;
        }
        return batch;
    }

    /**
     * Plans the write from one staging area to the other.
     *
     * @param prefillStaging staging area of this side, gathered into; local
     * @param decodeStaging staging area of the peer; remote
     * @param rankOffset where the region of this rank begins there, {@link #rankOffset}
     * @param bytesPerRank bytes of the region, {@link #bytesPerRank}
     * @return a batch of one block, empty if there are no bytes
     * @throws IllegalArgumentException if a number is negative or a staging area is too small
     */
    public static TransferBatch bulk(
            StagingArea prefillStaging,
            StagingArea decodeStaging,
            long rankOffset,
            long bytesPerRank) {
        StagingArea from = prefillStaging.region(0, bytesPerRank);
        StagingArea to = decodeStaging.region(rankOffset, bytesPerRank);
        return new TransferBatch(1).add(from.base(), to.base(), bytesPerRank);
    }

    /**
     * Plans the copies from the staging area of the decode side to its pools.
     *
     * @param decode pools of this side: copied to
     * @param pageTokens tokens of a page, at least 1
     * @param slice heads that both ranks hold
     * @param decodePages pages to fill, in the order in which they were gathered, each below every
     *     pool's item count, none twice
     * @param staging where to copy from, apart from the pools
     * @param rankOffset where the region of the prefill rank begins, {@link #rankOffset}
     * @return a batch of pages x page tokens blocks per pool, fewer where whole tokens are copied
     * @throws IllegalArgumentException if an item length is not divisible into tokens and heads, a
     *     page occurs twice, the staging area is too small or overlaps a pool, or the blocks exceed
     *     a batch
     * @throws IndexOutOfBoundsException if a page is outside its pool
     */
    public static TransferBatch scatter(
            KvPools decode,
            int pageTokens,
            HeadSlice slice,
            int[] decodePages,
            StagingArea staging,
            long rankOffset) {
        long[] headBytes = headBytes("decode", decode, pageTokens, slice.decodeHeads());
        PoolPairs.checkAll("decodePages", decodePages, "decode", decode);
        IndexRuns runs = IndexRuns.of(order(decodePages), decodePages, "decodePages", 0);
        long bytes = regionBytes(headBytes, pageTokens, slice, decodePages.length);
        long staged = region(staging, rankOffset, bytes, "decode", decode).base();

        long blocks = scatterCopy(headBytes[0], slice).blocks(runs, pageTokens) * decode.size();
        TransferBatch batch = Checks.newBatch(blocks);
        for (int pool = 0; pool < headBytes.length; pool++) {
            TokenCopy copy = scatterCopy(headBytes[pool], slice);
            copy.addTo(batch, runs, pageTokens, staged, decode.base(pool));
            staged += copy.partBytes() * pageTokens * decodePages.length;
        }
        return batch;
    }

    /** Takes the shared heads out of every prefill token. */
    private static TokenCopy gatherCopy(long headBytes, HeadSlice slice) {
        long shared = headBytes * slice.heads();
        long tokenBytes = headBytes * slice.prefillHeads();
        return new TokenCopy(tokenBytes, headBytes * slice.prefillFirst(), shared, 0, shared);
    }

    /** Puts the shared heads into every decode token. */
    private static TokenCopy scatterCopy(long headBytes, HeadSlice slice) {
        long shared = headBytes * slice.heads();
        long tokenBytes = headBytes * slice.decodeHeads();
        return new TokenCopy(shared, 0, tokenBytes, headBytes * slice.decodeFirst(), shared);
    }

    /** Numbers the pages of a list: their order in the staging area. */
    private static int[] order(int[] pages) {
        int[] order = new int[pages.length];
        Arrays.setAll(order, i -> i);
        return order;
    }

    /** Bytes of one head in each pool. */
    private static long[] headBytes(String side, KvPools pools, int pageTokens, int heads) {
        Checks.positive("pageTokens", pageTokens);
        long[] headBytes = new long[pools.size()];
        for (int pool = 0; pool < headBytes.length; pool++) {
            headBytes[pool] = HeadSlice.headBytes(side, pools, pool, pageTokens, heads);
        }
        return headBytes;
    }

    private static long regionBytes(long[] headBytes, int pageTokens, HeadSlice slice, int pages) {
        long tokenBytes = 0;
        for (long bytes : headBytes) {
            tokenBytes = Checks.sum("staged bytes of a token", tokenBytes, bytes * slice.heads());
        }
        return Checks.product("staged bytes", tokenBytes, (long) pageTokens * pages);
    }

    private static StagingArea region(
            StagingArea staging, long offset, long bytes, String side, KvPools pools) {
        StagingArea region = staging.region(offset, bytes);
        for (int pool = 0; pool < pools.size(); pool++) {
            if (region.overlaps(pools.base(pool), pools.bytes(pool))) {
                throw new IllegalArgumentException(
                        "the staging area at 0x%x, %d bytes, overlaps %s pool %d at 0x%x, %d bytes"
                                .formatted(
                                        region.base(),
                                        region.lengthBytes(),
                                        side,
                                        pool,
                                        pools.base(pool),
                                        pools.bytes(pool)));
            }
        }
        return region;
    }
}
