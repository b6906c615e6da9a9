package dev.verbena.kv;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * A model's cache, naively: what every byte of a request is, by token, layer, head and position,
 * and where a rank keeps it. Says what the memory of a rank looks like once a request is in some
 * slots, and knows nothing of transfers.
 *
 * @param latent whether the KV is one latent a token instead of heads
 * @param kvHeads KV heads of the model; 1 for latents
 * @param layers of the model
 * @param pageTokens tokens of a page
 * @param swa whether there is sliding window state
 * @param mamba whether there is Mamba state
 * @param aux whether there is auxiliary data
 */
record ModelOfBytes(
        boolean latent,
        int kvHeads,
        int layers,
        int pageTokens,
        boolean swa,
        boolean mamba,
        boolean aux) {
    /** Slots of a rank: of tokens, whatever the pages. */
    static final int SLOT_TOKENS = 128;

    static final int STATE_PAGES = 12;
    static final int STATE_TOKENS = 2;
    static final int MAMBA_SLOTS = 6;
    static final int AUX_SLOTS = 9;

    private static final int HEAD_BYTES = 6;
    private static final int LATENT_BYTES = 20;
    private static final MambaTensor CONVOLUTION = MambaTensor.of(3, 16, 8, 24);
    private static final MambaTensor TEMPORAL = MambaTensor.of(10, 8);
    private static final long[] AUX_BYTES = {24, 5};

    static ModelOfBytes heads(int kvHeads) {
        return new ModelOfBytes(false, kvHeads, 4, 4, false, false, false);
    }

    static ModelOfBytes latents() {
        return new ModelOfBytes(true, 1, 4, 4, false, false, false);
    }

    ModelOfBytes withSwa() {
        return new ModelOfBytes(latent, kvHeads, layers, pageTokens, true, mamba, aux);
    }

    ModelOfBytes withMamba() {
        return new ModelOfBytes(latent, kvHeads, layers, pageTokens, swa, true, aux);
    }

    ModelOfBytes withAux() {
        return new ModelOfBytes(latent, kvHeads, layers, pageTokens, swa, mamba, true);
    }

    ModelOfBytes withPageTokens(int tokens) {
        return new ModelOfBytes(latent, kvHeads, layers, tokens, swa, mamba, aux);
    }

    /** Bytes that a staged chunk of so many pages takes in a decode rank's ring, at most. */
    long stagedBytes(KvGroup.Shape shape, int pages) {
        int heads = Math.max(kvHeads, shape.prefillTp());
        return 2L * heads * HEAD_BYTES * (layers / shape.stages()) * pageTokens * pages;
    }

    /** A rank's part of the model in memory that begins at an address. */
    RankOfBytes rank(int tpSize, int rank, int stage, int stages, long base) {
        return new RankOfBytes(this, tpSize, rank, stage, stages, base);
    }

    private static byte value(long seed, int... coordinates) {
        long hash = seed * 0x9e3779b97f4a7c15L;
        for (int coordinate : coordinates) {
            hash = (hash ^ coordinate) * 0xbf58476d1ce4e5b9L;
            hash ^= hash >>> 29;
        }
        return (byte) (hash >>> 40);
    }

    /** Which state a byte belongs to, so that no two are alike. */
    private enum Kind {
        KV,
        SWA,
        CONVOLUTION,
        TEMPORAL,
        AUX
    }

    /** The cache of one rank, by addresses, and what a request looks like in it. */
    static final class RankOfBytes {
        private final ModelOfBytes model;
        private final TensorParallel tp;
        private final int rank;
        private final int firstLayer;
        private final int layerCount;
        private final long base;
        private long end;
        final KvCache cache;

        private RankOfBytes(
                ModelOfBytes model, int tpSize, int rank, int stage, int stages, long base) {
            this.model = model;
            this.tp = new TensorParallel(tpSize, model.kvHeads);
            this.rank = rank;
            this.layerCount = model.layers / stages;
            this.firstLayer = stage * layerCount;
            this.base = base;
            this.end = base;
            KvLayout layout = layout(LATENT_BYTES, model.pageTokens);
            KvCache described =
                    KvCache.of(layout, pools(layout, SLOT_TOKENS / model.pageTokens))
                            .rank(tp, rank);
            if (model.swa) {
                KvLayout state = layout(LATENT_BYTES / 2, STATE_TOKENS);
                described = described.pageState("swa", state, pools(state, STATE_PAGES));
            }
            if (model.mamba) {
                MambaTensor[] tensors = new MambaTensor[2 * layerCount];
                Arrays.fill(tensors, 0, layerCount, CONVOLUTION);
                Arrays.fill(tensors, layerCount, tensors.length, TEMPORAL);
                long[] itemBytes =
                        Arrays.stream(tensors).mapToLong(t -> t.itemBytes(tpSize)).toArray();
                described =
                        described.mambaState(
                                "mamba",
                                pools(itemBytes, MAMBA_SLOTS)
                                        .withLayerRange(firstLayer, layerCount),
                                tensors);
            }
            if (model.aux) {
                described = described.aux(pools(AUX_BYTES, AUX_SLOTS));
            }
            this.cache = described;
        }

        int lengthBytes() {
            return (int) (end - base);
        }

        private KvLayout layout(int latentBytes, int pageTokens) {
            return model.latent
                    ? new KvLayout.Latent(layerCount, latentBytes, 1, pageTokens)
                    : new KvLayout.Heads(layerCount, tp.headsPerRank(), HEAD_BYTES, 1, pageTokens);
        }

        private KvPools pools(KvLayout layout, int pages) {
            long[] itemBytes = new long[layout.poolCount()];
            Arrays.fill(itemBytes, layout.pageBytes());
            return pools(itemBytes, pages).withLayerRange(firstLayer, layerCount);
        }

        /** Pools one behind the other, with a gap that nobody may write. */
        private KvPools pools(long[] itemBytes, int items) {
            long[] bases = new long[itemBytes.length];
            int[] counts = new int[itemBytes.length];
            Arrays.fill(counts, items);
            for (int pool = 0; pool < bases.length; pool++) {
                bases[pool] = end;
                end += itemBytes[pool] * items + 7;
            }
            return KvPools.of(bases, itemBytes, counts);
        }

        /** Puts a request into its slots. */
        void paint(byte[] image, long seed, int tokens, KvSlots slots) {
            paintTokens(
                    image, seed, Kind.KV, tokens, cache.layout(), cache.pools(), slots.pageSlots());
            if (model.swa) {
                KvState.Pages swa = (KvState.Pages) cache.states().getFirst();
                int[] pages = slots.requireItems("swa");
                paintTokens(
                        image,
                        seed,
                        Kind.SWA,
                        pages.length * STATE_TOKENS,
                        swa.layout(),
                        swa.pools(),
                        pages);
            }
            if (model.mamba) {
                KvPools pools = cache.states().getLast().pools();
                int slot = slots.requireItems("mamba")[0];
                for (int layer = 0; layer < layerCount; layer++) {
                    paintShard(image, seed, Kind.CONVOLUTION, CONVOLUTION, pools, layer, slot);
                    paintShard(
                            image, seed, Kind.TEMPORAL, TEMPORAL, pools, layerCount + layer, slot);
                }
            }
            if (model.aux && slots.hasAux()) {
                KvPools pools = cache.auxBuffers().orElseThrow();
                for (int pool = 0; pool < pools.size(); pool++) {
                    int bytes = (int) pools.itemBytes(pool);
                    int at = offset(pools, pool, slots.auxSlot());
                    for (int i = 0; i < bytes; i++) {
                        image[at + i] = value(seed, Kind.AUX.ordinal(), pool, i);
                    }
                }
            }
        }

        private void paintTokens(
                byte[] image,
                long seed,
                Kind kind,
                int tokens,
                KvLayout layout,
                KvPools pools,
                int[] pages) {
            int headBytes = (int) layout.tokenBytes() / tp.headsPerRank();
            for (int pool = 0; pool < pools.size(); pool++) {
                int part = pool / layerCount;
                int layer = firstLayer + pool % layerCount;
                for (int token = 0; token < tokens; token++) {
                    int page = pages[token / layout.pageTokens()];
                    int at =
                            offset(pools, pool, page)
                                    + token % layout.pageTokens() * (int) layout.tokenBytes();
                    for (int head = 0; head < tp.headsPerRank(); head++) {
                        for (int i = 0; i < headBytes; i++) {
                            image[at++] =
                                    value(
                                            seed,
                                            kind.ordinal(),
                                            part,
                                            layer,
                                            token,
                                            tp.firstHead(rank) + head,
                                            i);
                        }
                    }
                }
            }
        }

        private void paintShard(
                byte[] image,
                long seed,
                Kind kind,
                MambaTensor tensor,
                KvPools pools,
                int pool,
                int slot) {
            int layer = pools.layer(pool);
            int at = offset(pools, pool, slot);
            for (int group = 0; group < tensor.groupCount(); group++) {
                int rows = tensor.groupRows(group) / tp.size();
                for (int row = rows * rank; row < rows * (rank + 1); row++) {
                    for (int i = 0; i < tensor.rowBytes(); i++) {
                        image[at++] = value(seed, kind.ordinal(), layer, group, row, i);
                    }
                }
            }
        }

        private int offset(KvPools pools, int pool, int item) {
            return (int) (pools.base(pool) + item * pools.itemBytes(pool) - base);
        }
    }

    static byte[] bytes(MemorySegment memory) {
        return memory.toArray(ValueLayout.JAVA_BYTE);
    }
}
