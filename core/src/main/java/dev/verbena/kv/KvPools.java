package dev.verbena.kv;

import java.util.Arrays;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * One side's pools: of each its base address, the bytes of an item and the number of items. An item
 * is what an index list counts: a page, a token, a state slot, an auxiliary record. Item lengths
 * may differ from pool to pool, by layer or between K and V.
 *
 * <p>Pools may carry layer ids, so that a prefill pipeline stage, which owns a range of layers, can
 * write into a decode side that owns all of them. Pools of one layer keep their order, K before V.
 * Without ids the pools of both sides are paired by position.
 *
 * <p>Immutable, safe to share. Addresses are numbers: nothing here touches memory.
 */
public final class KvPools {
    private final long[] bases;
    private final long[] itemBytes;
    private final int[] itemCounts;
    private final int[] layers;
    private final boolean hasLayers;

    /** Pools in the order of their layers, and by position within a layer. */
    private final int[] byLayer;

    private KvPools(
            long[] bases, long[] itemBytes, int[] itemCounts, int[] layers, boolean hasLayers) {
        this.bases = bases;
        this.itemBytes = itemBytes;
        this.itemCounts = itemCounts;
        this.layers = layers;
        this.hasLayers = hasLayers;
        long[] keys = new long[layers.length];
        for (int pool = 0; pool < keys.length; pool++) {
            keys[pool] = (long) layers[pool] << Integer.SIZE | pool;
        }
        Arrays.sort(keys);
        byLayer = Arrays.stream(keys).mapToInt(key -> (int) key).toArray();
    }

    /**
     * Describes pools without layer ids. The arrays are copied.
     *
     * @param bases address of the first byte of each pool, at least 0
     * @param itemBytes bytes of one item of each pool, at least 1
     * @param itemCounts items of each pool, at least 1
     * @return the pools, in the order given
     * @throws IllegalArgumentException if the arrays are empty or of different length, a value is
     *     out of range, a pool passes the end of the address space, or two pools overlap
     */
    public static KvPools of(long[] bases, long[] itemBytes, int[] itemCounts) {
        Checks.positive("number of pools", bases.length);
        if (bases.length != itemBytes.length || bases.length != itemCounts.length) {
            throw new IllegalArgumentException(
                    "bases has %d entries, itemBytes %d and itemCounts %d: one per pool is needed"
                            .formatted(bases.length, itemBytes.length, itemCounts.length));
        }
        KvPools pools =
                new KvPools(
                        bases.clone(),
                        itemBytes.clone(),
                        itemCounts.clone(),
                        IntStream.range(0, bases.length).toArray(),
                        false);
        for (int pool = 0; pool < bases.length; pool++) {
            pools.checkShape(pool);
        }
        pools.checkApart();
        return pools;
    }

    /**
     * Gives the same pools with a layer id each.
     *
     * @param layerIds layer of each pool, at least 0, in the order of the pools
     * @return the pools with these ids
     * @throws IllegalArgumentException if there is not one id per pool, or an id is negative
     */
    public KvPools withLayers(int... layerIds) {
        if (layerIds.length != bases.length) {
            throw new IllegalArgumentException(
                    "layerIds has %d entries for %d pools"
                            .formatted(layerIds.length, bases.length));
        }
        for (int pool = 0; pool < layerIds.length; pool++) {
            Checks.notNegative("layerIds[" + pool + "]", layerIds[pool]);
        }
        return new KvPools(bases, itemBytes, itemCounts, layerIds.clone(), true);
    }

    /**
     * Gives the same pools numbered as a range of layers: all K layers, then all V layers, or one
     * pool per layer.
     *
     * @param firstLayer id of the first layer, at least 0
     * @param layerCount number of layers, at least 1; the number of pools must be a multiple of it
     * @return the pools with these ids
     * @throws IllegalArgumentException if an argument is out of range
     */
    public KvPools withLayerRange(int firstLayer, int layerCount) {
        Checks.notNegative("firstLayer", firstLayer);
        Checks.positive("layerCount", layerCount);
        if (bases.length % layerCount != 0) {
            throw new IllegalArgumentException(
                    "%d pools cannot be divided into %d layers"
                            .formatted(bases.length, layerCount));
        }
        if (layerCount - 1 > Integer.MAX_VALUE - firstLayer) {
            throw new IllegalArgumentException(
                    "firstLayer %d leaves no ids for %d layers".formatted(firstLayer, layerCount));
        }
        return withLayers(
                IntStream.range(0, bases.length)
                        .map(pool -> firstLayer + pool % layerCount)
                        .toArray());
    }

    /**
     * Gives the pools of some layers only, in the same order: the decode side's counterpart of one
     * prefill pipeline stage.
     *
     * @param firstLayer id of the first layer, at least 0
     * @param layerCount number of layers, at least 1
     * @return the pools whose layer is in the range, with their ids
     * @throws IllegalArgumentException if an argument is out of range, or no pool is left
     * @throws IllegalStateException if these pools have no layer ids
     */
    public KvPools onlyLayers(int firstLayer, int layerCount) {
        if (!hasLayers) {
            throw new IllegalStateException("these pools have no layer ids to choose by");
        }
        Checks.notNegative("firstLayer", firstLayer);
        Checks.positive("layerCount", layerCount);
        long end = (long) firstLayer + layerCount;
        int[] kept =
                IntStream.range(0, bases.length)
                        .filter(pool -> layers[pool] >= firstLayer && layers[pool] < end)
                        .toArray();
        if (kept.length == 0) {
            throw new IllegalArgumentException(
                    "no pool is of layer %d..%d".formatted(firstLayer, end - 1));
        }
        return select(kept);
    }

    /** Some of the pools, each at most once, in that order. */
    KvPools select(int[] kept) {
        return new KvPools(
                Arrays.stream(kept).mapToLong(pool -> bases[pool]).toArray(),
                Arrays.stream(kept).mapToLong(pool -> itemBytes[pool]).toArray(),
                Arrays.stream(kept).map(pool -> itemCounts[pool]).toArray(),
                Arrays.stream(kept).map(pool -> layers[pool]).toArray(),
                hasLayers);
    }

    /**
     * Says how many pools there are.
     *
     * @return the number of pools, at least 1
     */
    public int size() {
        return bases.length;
    }

    /**
     * Says where a pool begins.
     *
     * @param pool position of the pool
     * @return address of its first byte
     * @throws IndexOutOfBoundsException if there is no such pool
     */
    public long base(int pool) {
        return bases[Objects.checkIndex(pool, bases.length)];
    }

    /**
     * Says how large one item of a pool is.
     *
     * @param pool position of the pool
     * @return bytes of one item
     * @throws IndexOutOfBoundsException if there is no such pool
     */
    public long itemBytes(int pool) {
        return itemBytes[Objects.checkIndex(pool, bases.length)];
    }

    /**
     * Says how many items a pool holds.
     *
     * @param pool position of the pool
     * @return number of items
     * @throws IndexOutOfBoundsException if there is no such pool
     */
    public int itemCount(int pool) {
        return itemCounts[Objects.checkIndex(pool, bases.length)];
    }

    /**
     * Says how large a pool is.
     *
     * @param pool position of the pool
     * @return bytes of the whole pool
     * @throws IndexOutOfBoundsException if there is no such pool
     */
    public long bytes(int pool) {
        return itemBytes(pool) * itemCount(pool);
    }

    /**
     * Says whether the pools carry layer ids.
     *
     * @return true if they are paired by layer, false if by position
     */
    public boolean hasLayers() {
        return hasLayers;
    }

    /**
     * Says which layer a pool belongs to.
     *
     * @param pool position of the pool
     * @return its layer id, or its position if the pools have no layer ids
     * @throws IndexOutOfBoundsException if there is no such pool
     */
    public int layer(int pool) {
        return layers[Objects.checkIndex(pool, bases.length)];
    }

    @Override
    public String toString() {
        long bytes = IntStream.range(0, bases.length).mapToLong(this::bytes).sum();
        return "KvPools[" + bases.length + " pools, " + bytes + " bytes]";
    }

    /** Pools in the order of their layers. Not to be changed. */
    int[] byLayer() {
        return byLayer;
    }

    /** Position of the pool that holds the fewest items: what an index must stay below. */
    int smallestPool() {
        int smallest = 0;
        for (int pool = 1; pool < itemCounts.length; pool++) {
            if (itemCounts[pool] < itemCounts[smallest]) {
                smallest = pool;
            }
        }
        return smallest;
    }

    private void checkShape(int pool) {
        Checks.notNegative("base of pool " + pool, bases[pool]);
        Checks.positive("itemBytes of pool " + pool, itemBytes[pool]);
        Checks.positive("itemCount of pool " + pool, itemCounts[pool]);
        long bytes = Checks.product("bytes of pool " + pool, itemBytes[pool], itemCounts[pool]);
        Checks.sum("end of pool " + pool, bases[pool], bytes);
    }

    private void checkApart() {
        int[] order =
                IntStream.range(0, bases.length)
                        .boxed()
                        .sorted((a, b) -> Long.compare(bases[a], bases[b]))
                        .mapToInt(Integer::intValue)
                        .toArray();
        for (int i = 1; i < order.length; i++) {
            int lower = order[i - 1];
            int upper = order[i];
            if (bases[lower] + bytes(lower) > bases[upper]) {
                throw new IllegalArgumentException(
                        ("pools %d and %d overlap: pool %d is %d bytes from 0x%x, pool %d begins"
                                        + " at 0x%x")
                                .formatted(
                                        Math.min(lower, upper),
                                        Math.max(lower, upper),
                                        lower,
                                        bytes(lower),
                                        bases[lower],
                                        upper,
                                        bases[upper]));
            }
        }
    }
}
