package dev.verbena.kv;

import java.util.Arrays;

/**
 * A model's KV cache shape on one rank. A pool is an array of pages, a page holds {@link
 * #pageTokens} tokens back to back. Attention with heads keeps two pools per layer, K and V; latent
 * attention keeps one.
 *
 * <p>Element sizes are whole bytes: a 4-bit cache is described by its packed bytes, as half the
 * values of one byte each.
 *
 * <p>Immutable, safe to share.
 *
 * <p>Source: the cache shapes of the models' published configurations.
 */
public sealed interface KvLayout {

    /**
     * Describes a cache with heads: multi-head (MHA) or grouped-query attention (GQA). A page is
     * {@code [token][head][headDim]}; pools are all K layers, then all V layers.
     *
     * @param layers layers on this rank, at least 1
     * @param kvHeads K (and V) heads on this rank, at least 1
     * @param headDim values of one head, at least 1
     * @param elementBytes bytes of one value, at least 1
     * @param pageTokens tokens of one page, at least 1
     */
    record Heads(int layers, int kvHeads, int headDim, int elementBytes, int pageTokens)
            implements KvLayout {
        /**
         * Checks the shape.
         *
         * @throws IllegalArgumentException if a component is below 1, or a page exceeds 64 bits
         */
        public Heads {
            Checks.positive("layers", layers);
            Checks.positive("kvHeads", kvHeads);
            Checks.positive("headDim", headDim);
            Checks.positive("elementBytes", elementBytes);
            Checks.positive("pageTokens", pageTokens);
            long headBytes = (long) headDim * elementBytes;
            long tokenBytes = Checks.product("bytes of a token", headBytes, kvHeads);
            Checks.product("bytes of a page", tokenBytes, pageTokens);
        }

        @Override
        public int poolsPerLayer() {
            return 2;
        }

        @Override
        public long tokenBytes() {
            return (long) headDim * elementBytes * kvHeads;
        }
    }

    /**
     * Describes a cache of latents (MLA): one pool per layer, the same on every rank.
     *
     * @param layers layers on this rank, at least 1
     * @param latentValues values of one token: the latent's rank and the positional part together
     * @param elementBytes bytes of one value, at least 1
     * @param pageTokens tokens of one page, at least 1
     */
    record Latent(int layers, int latentValues, int elementBytes, int pageTokens)
            implements KvLayout {
        /**
         * Checks the shape.
         *
         * @throws IllegalArgumentException if a component is below 1, or a page exceeds 64 bits
         */
        public Latent {
            Checks.positive("layers", layers);
            Checks.positive("latentValues", latentValues);
            Checks.positive("elementBytes", elementBytes);
            Checks.positive("pageTokens", pageTokens);
            long tokenBytes = (long) latentValues * elementBytes;
            Checks.product("bytes of a page", tokenBytes, pageTokens);
        }

        @Override
        public int poolsPerLayer() {
            return 1;
        }

        @Override
        public long tokenBytes() {
            return (long) latentValues * elementBytes;
        }
    }

    /**
     * Says how many layers this rank holds.
     *
     * @return the number of layers, at least 1
     */
    int layers();

    /**
     * Says how many tokens a page holds.
     *
     * @return tokens of one page, at least 1
     */
    int pageTokens();

    /**
     * Says how many pools a layer has: 2 with heads (K and V), 1 with latents.
     *
     * @return pools of one layer
     */
    int poolsPerLayer();

    /**
     * Says how large one token is in one pool.
     *
     * @return bytes of one token in one pool
     */
    long tokenBytes();

    /**
     * Says how large one page is in one pool.
     *
     * @return bytes of one page in one pool: the item length of its pools
     */
    default long pageBytes() {
        return tokenBytes() * pageTokens();
    }

    /**
     * Says how many pools the cache has.
     *
     * @return layers times pools per layer
     * @throws IllegalArgumentException if there are more than 2^31 - 1
     */
    default int poolCount() {
        long pools = (long) layers() * poolsPerLayer();
        if (pools > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "layers is %d: %d pools are too many".formatted(layers(), pools));
        }
        return (int) pools;
    }

    /**
     * Says how large some pages are in all pools together.
     *
     * @param pages number of pages, at least 0
     * @return bytes of that many pages in every pool
     * @throws IllegalArgumentException if the number is negative, or the result exceeds 64 bits
     */
    default long bytes(int pages) {
        Checks.notNegative("pages", pages);
        long pageBytes = Checks.product("bytes of a page in all pools", pageBytes(), poolCount());
        return Checks.product("bytes of " + pages + " pages in all pools", pageBytes, pages);
    }

    /**
     * Lays the pools out back to back from an address: all K layers, then all V layers, or one pool
     * per layer for latents. Layers are numbered from 0; {@link KvPools#withLayerRange} renumbers
     * the pools of a pipeline stage.
     *
     * @param base address of the first byte, at least 0
     * @param pages pages of every pool, at least 1
     * @return the pools, with their layer ids
     * @throws IllegalArgumentException if an argument is out of range, or the pools pass the end of
     *     the address space
     */
    default KvPools pools(long base, int pages) {
        Checks.notNegative("base", base);
        Checks.positive("pages", pages);
        Checks.sum("end of the pools", base, bytes(pages));
        long[] bases = new long[poolCount()];
        for (int pool = 0; pool < bases.length; pool++) {
            bases[pool] = base + pageBytes() * pages * pool;
        }
        long[] itemBytes = new long[bases.length];
        Arrays.fill(itemBytes, pageBytes());
        int[] itemCounts = new int[bases.length];
        Arrays.fill(itemCounts, pages);
        return KvPools.of(bases, itemBytes, itemCounts).withLayerRange(0, layers());
    }
}
