package dev.verbena.kv;

import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;

/** Small random pools and index lists, the awkward ones among them. */
final class RandomLayouts {
    static final long PREFILL_SPACE = 0x7f00_0000_0000L;
    static final long DECODE_SPACE = 0x7f80_0000_0000L;
    static final long STAGING_SPACE = 0x7e00_0000_0000L;

    private RandomLayouts() {}

    /** Pools of these item lengths in random order and with random gaps, often none. */
    static KvPools pools(Random random, long space, long[] itemBytes, int items) {
        int[] order = shuffled(random, itemBytes.length);
        long[] bases = new long[itemBytes.length];
        int[] counts = new int[itemBytes.length];
        long base = space + random.nextInt(100);
        for (int pool : order) {
            bases[pool] = base;
            counts[pool] = items + random.nextInt(3);
            base += itemBytes[pool] * counts[pool] + (random.nextBoolean() ? 0 : random.nextInt(9));
        }
        return KvPools.of(bases, itemBytes, counts);
    }

    /** Item lengths of that many pools, one for all or each its own. */
    static long[] itemBytes(Random random, int pools, int largest) {
        long[] itemBytes = new long[pools];
        Arrays.fill(itemBytes, 1 + random.nextInt(largest));
        if (random.nextBoolean()) {
            Arrays.setAll(itemBytes, pool -> 1 + random.nextInt(largest));
        }
        return itemBytes;
    }

    /** A list of distinct indices below a limit, which is at least the length. */
    static int[] distinct(Random random, int length, int limit) {
        int first = random.nextInt(limit - length + 1);
        int[] ascending = IntStream.range(first, first + length).toArray();
        return switch (random.nextInt(5)) {
            case 0 -> ascending;
            case 1 -> IntStream.range(0, length).map(i -> first + length - 1 - i).toArray();
            case 2 -> alternating(length, limit);
            case 3 -> Arrays.copyOf(shuffled(random, limit), length);
            default -> rotated(ascending, random.nextInt(length + 1));
        };
    }

    /** As {@link #distinct}, or with repetitions, which a source may have. */
    static int[] sources(Random random, int length, int limit) {
        if (random.nextInt(6) == 0) {
            return IntStream.range(0, length).map(i -> random.nextInt(limit)).toArray();
        }
        return distinct(random, length, limit);
    }

    /** Lengths of lists: none, one, or some. */
    static int length(Random random, int limit) {
        return switch (random.nextInt(8)) {
            case 0 -> 0;
            case 1 -> 1;
            case 2 -> limit;
            default -> random.nextInt(limit + 1);
        };
    }

    static int[] shuffled(Random random, int length) {
        int[] values = IntStream.range(0, length).toArray();
        for (int i = length - 1; i > 0; i--) {
            int j = random.nextInt(i + 1);
            int value = values[i];
            values[i] = values[j];
            values[j] = value;
        }
        return values;
    }

    private static int[] alternating(int length, int limit) {
        return IntStream.range(0, length)
                .map(i -> i % 2 == 0 ? i / 2 : limit - 1 - i / 2)
                .toArray();
    }

    private static int[] rotated(int[] values, int by) {
        return IntStream.range(0, values.length)
                .map(i -> values[(i + by) % values.length])
                .toArray();
    }
}
