package dev.verbena.kv;

import java.util.Arrays;

/**
 * The pools of both sides, paired: by layer id, and within a layer by order, or by position when
 * neither side has ids. Holds the checks of indices against both sides.
 */
final class PoolPairs {
    private final KvPools prefill;
    private final KvPools decode;

    /** Position of the decode pool that each prefill pool is paired with. */
    private final int[] decodePools;

    private PoolPairs(KvPools prefill, KvPools decode, int[] decodePools) {
        this.prefill = prefill;
        this.decode = decode;
        this.decodePools = decodePools;
    }

    /**
     * Pairs every prefill pool with a decode pool; decode pools of further layers stay out.
     *
     * @throws IllegalArgumentException if one side alone has layer ids, a prefill layer is missing
     *     on the decode side, or a layer (or a side without ids) has another number of pools there
     */
    static PoolPairs of(KvPools prefill, KvPools decode) {
        if (prefill.hasLayers() != decode.hasLayers()) {
            throw new IllegalArgumentException(
                    "only the %s pools have layer ids: give them on both sides or on neither"
                            .formatted(prefill.hasLayers() ? "prefill" : "decode"));
        }
        if (!prefill.hasLayers()) {
            checkCounts("", prefill.size(), decode.size());
        }
        int[] ours = prefill.byLayer();
        int[] theirs = decode.byLayer();
        int[] decodePools = new int[ours.length];
        int there = 0;
        for (int here = 0; here < ours.length; ) {
            int layer = prefill.layer(ours[here]);
            while (there < theirs.length && decode.layer(theirs[there]) < layer) {
                there++;
            }
            int count = countOfLayer(prefill, ours, here);
            int countThere = countOfLayer(decode, theirs, there, layer);
            checkCounts("layer " + layer + ": ", count, countThere);
            for (int i = 0; i < count; i++) {
                decodePools[ours[here + i]] = theirs[there + i];
            }
            here += count;
            there += count;
        }
        return new PoolPairs(prefill, decode, decodePools);
    }

    /** As {@link #of}, and refuses pairs whose items differ in length. */
    static PoolPairs ofEqualItems(KvPools prefill, KvPools decode) {
        PoolPairs pairs = of(prefill, decode);
        for (int pair = 0; pair < pairs.size(); pair++) {
            int decodePool = pairs.decodePools[pair];
            if (prefill.itemBytes(pair) != decode.itemBytes(decodePool)) {
                throw new IllegalArgumentException(
                        ("items of prefill pool %d are %d bytes, those of decode pool %d are"
                                        + " %d bytes")
                                .formatted(
                                        pair,
                                        prefill.itemBytes(pair),
                                        decodePool,
                                        decode.itemBytes(decodePool)));
            }
        }
        return pairs;
    }

    /** The decode pools that have a partner, in the order of the prefill pools. */
    KvPools decodeInOrder() {
        return decode.select(decodePools);
    }

    /** Number of pairs, one per prefill pool; a pair is named by its prefill pool. */
    int size() {
        return decodePools.length;
    }

    int decodePool(int pair) {
        return decodePools[pair];
    }

    long prefillBase(int pair) {
        return prefill.base(pair);
    }

    long decodeBase(int pair) {
        return decode.base(decodePools[pair]);
    }

    long prefillItemBytes(int pair) {
        return prefill.itemBytes(pair);
    }

    long decodeItemBytes(int pair) {
        return decode.itemBytes(decodePools[pair]);
    }

    /** The pairs of each layer, layers ascending; without layer ids every pair is one by itself. */
    int[][] byLayer() {
        int[] order = prefill.byLayer();
        int[][] layers = new int[order.length][];
        int count = 0;
        for (int here = 0; here < order.length; ) {
            int pools = countOfLayer(prefill, order, here);
            layers[count++] = Arrays.copyOfRange(order, here, here + pools);
            here += pools;
        }
        return Arrays.copyOf(layers, count);
    }

    /**
     * Checks two index lists and finds their runs.
     *
     * @param kind what the lists count: their names are prefill and decode followed by it
     */
    IndexRuns runs(String kind, int[] prefillItems, int[] decodeItems) {
        if (prefillItems.length != decodeItems.length) {
            throw new IllegalArgumentException(
                    "prefill%s has %d entries and decode%s has %d: the lists must be equally long"
                            .formatted(kind, prefillItems.length, kind, decodeItems.length));
        }
        checkPrefill("prefill" + kind, prefillItems);
        checkDecode("decode" + kind, decodeItems, 0, decodeItems.length);
        return IndexRuns.of(prefillItems, decodeItems, "decode" + kind, 0);
    }

    /** Checks one index of either side, and makes a run of it. */
    IndexRuns item(int prefillIndex, int decodeIndex) {
        checkItem("prefillIndex", prefillIndex, "prefill", prefill, prefill.smallestPool());
        checkItem("decodeIndex", decodeIndex, "decode", decode, smallestDecodePool());
        return IndexRuns.of(new int[] {prefillIndex}, new int[] {decodeIndex}, "decodeIndex", 0);
    }

    /** Refuses an index outside any prefill pool. */
    void checkPrefill(String list, int[] items) {
        checkAll(list, items, "prefill", prefill);
    }

    /** Refuses an index outside any decode pool that is paired, from one position to another. */
    void checkDecode(String list, int[] items, int from, int to) {
        checkItems(list, items, from, to, "decode", decode, smallestDecodePool());
    }

    /** Refuses an index outside any pool of a side. */
    static void checkAll(String list, int[] items, String side, KvPools pools) {
        checkItems(list, items, 0, items.length, side, pools, pools.smallestPool());
    }

    private static void checkItems(
            String list, int[] items, int from, int to, String side, KvPools pools, int pool) {
        int count = pools.itemCount(pool);
        for (int i = from; i < to; i++) {
            if (items[i] < 0 || items[i] >= count) {
                checkItem(list + "[" + i + "]", items[i], side, pools, pool);
            }
        }
    }

    private static void checkItem(String name, int item, String side, KvPools pools, int pool) {
        int count = pools.itemCount(pool);
        if (item < 0 || item >= count) {
            throw new IndexOutOfBoundsException(
                    "%s = %d is outside 0..%d: %s pool %d holds %d items"
                            .formatted(name, item, count - 1, side, pool, count));
        }
    }

    private int smallestDecodePool() {
        int smallest = decodePools[0];
        for (int pool : decodePools) {
            if (decode.itemCount(pool) < decode.itemCount(smallest)) {
                smallest = pool;
            }
        }
        return smallest;
    }

    private static int countOfLayer(KvPools pools, int[] order, int from) {
        return countOfLayer(pools, order, from, pools.layer(order[from]));
    }

    private static int countOfLayer(KvPools pools, int[] order, int from, int layer) {
        int end = from;
        while (end < order.length && pools.layer(order[end]) == layer) {
            end++;
        }
        return end - from;
    }

    private static void checkCounts(String where, int prefill, int decode) {
        if (prefill != decode) {
            throw new IllegalArgumentException(
                    "%sthe prefill side has %d pools and the decode side %d"
                            .formatted(where, prefill, decode));
        }
    }
}
