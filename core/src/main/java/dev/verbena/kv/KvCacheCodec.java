package dev.verbena.kv;

import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * A {@link KvCache} as bytes, for the other side.
 *
 * <pre>
 *   cache    layout, pools, u32 TP size, u32 KV heads, u32 rank,
 *            u8 states, each: u8 kind, u8 name length, name, [layout] pools [tensors],
 *            u8 has aux, [pools]
 *   layout   u8 kind, u32 layers, [u32 heads,] u32 values, u32 element bytes, u32 page tokens
 *   pools    u8 has layers, u32 count, each: u64 base, u64 item bytes, u32 items, u32 layer
 *   tensors  u32 count, each: u64 row bytes, u32 groups, each: u32 rows
 * </pre>
 */
final class KvCacheCodec {
    private static final byte HEADS = 1;
    private static final byte LATENT = 2;
    private static final byte PAGES = 1;
    private static final byte MAMBA = 2;

    /** Bytes of one pool. */
    private static final int POOL_BYTES = 2 * Long.BYTES + 2 * Integer.BYTES;

    /** Fewest bytes of one tensor. */
    private static final int TENSOR_BYTES = Long.BYTES + Integer.BYTES;

    /** Most groups of one tensor. */
    private static final int MAX_GROUPS = 1 << 16;

    private KvCacheCodec() {}

    static void encode(KvCache cache, DataOutputStream out) throws IOException {
        encode(cache.layout(), out);
        encode(cache.pools(), out);
        out.writeInt(cache.tensorParallel().size());
        out.writeInt(cache.tensorParallel().kvHeads());
        out.writeInt(cache.rank());
        out.writeByte(cache.states().size());
        for (KvState state : cache.states()) {
            encode(state, out);
        }
        out.writeBoolean(cache.auxBuffers().isPresent());
        if (cache.auxBuffers().isPresent()) {
            encode(cache.auxBuffers().get(), out);
        }
    }

    private static void encode(KvState state, DataOutputStream out) throws IOException {
        byte[] name = state.name().getBytes(StandardCharsets.UTF_8);
        out.writeByte(state instanceof KvState.Pages ? PAGES : MAMBA);
        out.writeByte(name.length);
        out.write(name);
        switch (state) {
            case KvState.Pages paged -> {
                encode(paged.layout(), out);
                encode(paged.pools(), out);
            }
            case KvState.Mamba mamba -> {
                encode(mamba.pools(), out);
                out.writeInt(mamba.tensors().size());
                for (MambaTensor tensor : mamba.tensors()) {
                    out.writeLong(tensor.rowBytes());
                    out.writeInt(tensor.groupCount());
                    for (int group = 0; group < tensor.groupCount(); group++) {
                        out.writeInt(tensor.groupRows(group));
                    }
                }
            }
        }
    }

    private static void encode(KvLayout layout, DataOutputStream out) throws IOException {
        switch (layout) {
            case KvLayout.Heads heads -> {
                out.writeByte(HEADS);
                out.writeInt(heads.layers());
                out.writeInt(heads.kvHeads());
                out.writeInt(heads.headDim());
                out.writeInt(heads.elementBytes());
                out.writeInt(heads.pageTokens());
            }
            case KvLayout.Latent latent -> {
                out.writeByte(LATENT);
                out.writeInt(latent.layers());
                out.writeInt(latent.latentValues());
                out.writeInt(latent.elementBytes());
                out.writeInt(latent.pageTokens());
            }
        }
    }

    private static void encode(KvPools pools, DataOutputStream out) throws IOException {
        out.writeBoolean(pools.hasLayers());
        out.writeInt(pools.size());
        for (int pool = 0; pool < pools.size(); pool++) {
            out.writeLong(pools.base(pool));
            out.writeLong(pools.itemBytes(pool));
            out.writeInt(pools.itemCount(pool));
            out.writeInt(pools.layer(pool));
        }
    }

    /**
     * Reads a cache, which may come from anybody.
     *
     * @throws IllegalArgumentException if it makes no sense
     * @throws java.nio.BufferUnderflowException if it is cut short
     */
    static KvCache decode(ByteBuffer in) {
        KvLayout layout = decodeLayout(in);
        KvCache cache = KvCache.of(layout, decodePools(in));
        TensorParallel tensorParallel = new TensorParallel(in.getInt(), in.getInt());
        int rank = in.getInt();
        if (rank < 0 || rank >= tensorParallel.size()) {
            throw new IllegalArgumentException(
                    "rank %d is outside the TP size %d".formatted(rank, tensorParallel.size()));
        }
        cache = cache.rank(tensorParallel, rank);
        int states = Byte.toUnsignedInt(in.get());
        for (int i = 0; i < states; i++) {
            cache = decodeState(cache, in);
        }
        return in.get() != 0 ? cache.aux(decodePools(in)) : cache;
    }

    private static KvCache decodeState(KvCache cache, ByteBuffer in) {
        byte kind = in.get();
        byte[] bytes = new byte[Byte.toUnsignedInt(in.get())];
        in.get(bytes);
        String name = new String(bytes, StandardCharsets.UTF_8);
        return switch (kind) {
            case PAGES -> cache.pageState(name, decodeLayout(in), decodePools(in));
            case MAMBA -> cache.mambaState(name, decodePools(in), decodeTensors(in));
            default -> throw new IllegalArgumentException("KV state of unknown kind " + kind);
        };
    }

    private static KvLayout decodeLayout(ByteBuffer in) {
        byte kind = in.get();
        return switch (kind) {
            case HEADS ->
                    new KvLayout.Heads(
                            in.getInt(), in.getInt(), in.getInt(), in.getInt(), in.getInt());
            case LATENT -> new KvLayout.Latent(in.getInt(), in.getInt(), in.getInt(), in.getInt());
            default -> throw new IllegalArgumentException("KV layout of unknown kind " + kind);
        };
    }

    private static KvPools decodePools(ByteBuffer in) {
        boolean hasLayers = in.get() != 0;
        int size = KvMessage.count(in, POOL_BYTES, KvCache.MAX_POOLS);
        long[] bases = new long[size];
        long[] itemBytes = new long[size];
        int[] itemCounts = new int[size];
        int[] layers = new int[size];
        for (int pool = 0; pool < size; pool++) {
            bases[pool] = in.getLong();
            itemBytes[pool] = in.getLong();
            itemCounts[pool] = in.getInt();
            layers[pool] = in.getInt();
        }
        KvPools pools = KvPools.of(bases, itemBytes, itemCounts);
        return hasLayers ? pools.withLayers(layers) : pools;
    }

    private static MambaTensor[] decodeTensors(ByteBuffer in) {
        MambaTensor[] tensors =
                new MambaTensor[KvMessage.count(in, TENSOR_BYTES, KvCache.MAX_POOLS)];
        for (int i = 0; i < tensors.length; i++) {
            long rowBytes = in.getLong();
            int[] groups = new int[KvMessage.count(in, Integer.BYTES, MAX_GROUPS)];
            for (int group = 0; group < groups.length; group++) {
                groups[group] = in.getInt();
            }
            tensors[i] = MambaTensor.of(rowBytes, groups);
        }
        return tensors;
    }
}
