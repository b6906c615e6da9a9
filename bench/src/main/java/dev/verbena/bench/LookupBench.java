package dev.verbena.bench;

import dev.verbena.bench.Rounds.Better;
import dev.verbena.memory.AddressMap;
import dev.verbena.memory.MemoryRegistry;
import dev.verbena.memory.Pool;
import dev.verbena.memory.RegistryOptions;
import java.util.Map;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.TreeMap;

/**
 * From an address to its pool, at random among many, against what one would write first: a sorted
 * map and {@link TreeMap#floorEntry}.
 */
final class LookupBench implements Benchmark {
    private static final int[] POOLS = {10, 1_000, 10_000};
    private static final long POOL_BYTES = 1 << 20;
    private static final int LOOKUPS = 1 << 16;
    private static final int REPEATS = 16;

    @Override
    public void run(Setting setting) throws Exception {
        for (int pools : POOLS) {
            measure(setting, pools);
        }
    }

    private static void measure(Setting setting, int pools) throws Exception {
        try (MemoryRegistry registry =
                new MemoryRegistry(new AddressRegions(), RegistryOptions.defaults())) {
            NavigableMap<Long, Pool> sorted = new TreeMap<>();
            for (int i = 0; i < pools; i++) {
                // With gaps, so that no two pools are neighbours.
                long address = (1L << 40) + i * POOL_BYTES * 2;
                sorted.put(address, registry.registerAddress("pool-" + i, address, POOL_BYTES));
            }
            SplittableRandom random = new SplittableRandom(1);
            long[] addresses =
                    random.longs(LOOKUPS, 0, pools * POOL_BYTES)
                            .map(at ->
                                    (1L << 40) + at / POOL_BYTES * 2 * POOL_BYTES + at % POOL_BYTES)
                            .toArray();
            AddressMap<Pool> map = registry.addressMap();
            if (sum(map, addresses) != sum(sorted, addresses)) {
                throw new AssertionError("the lookups differ");
            }
            setting.report()
                    .accept(
                            Result.of(
                                    "lookup/" + pools,
                                    "million/s",
                                    setting.rounds()
                                            .compare(
                                                    Better.HIGHER,
                                                    () -> rate(() -> sum(map, addresses)),
                                                    () -> rate(() -> sum(sorted, addresses))),
                                    "pools",
                                    pools,
                                    "addresses",
                                    "random",
                                    "peer",
                                    "TreeMap.floorEntry"));
        }
    }

    private static double rate(Runnable lookups) {
        long start = System.nanoTime();
        for (int i = 0; i < REPEATS; i++) {
            lookups.run();
        }
        return 1e3 * REPEATS * LOOKUPS / (System.nanoTime() - start);
    }

    private static long sum(AddressMap<Pool> map, long[] addresses) {
        long sum = 0;
        for (long address : addresses) {
            sum += map.owner(map.find(address)).generation();
        }
        return sum;
    }

    private static long sum(NavigableMap<Long, Pool> sorted, long[] addresses) {
        long sum = 0;
        for (long address : addresses) {
            Map.Entry<Long, Pool> below = sorted.floorEntry(address);
            if (below == null || address - below.getKey() >= POOL_BYTES) {
                throw new AssertionError("an address of a pool is in none");
            }
            sum += below.getValue().generation();
        }
        return sum;
    }
}
