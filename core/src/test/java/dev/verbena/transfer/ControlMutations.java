package dev.verbena.transfer;

import java.io.IOException;
import java.util.Arrays;
import java.util.Random;

/**
 * Broken forms of good bytes, from a seed: a failure names it, and {@code -Dverbena.seed=N} runs
 * that case alone.
 */
final class ControlMutations {
    /** What must hold for each broken form. */
    interface Property {
        void accept(byte[] bytes) throws IOException;
    }

    private ControlMutations() {}

    static void forEach(byte[] good, int cases, Property property) {
        Long only = Long.getLong("verbena.seed");
        for (long seed = only == null ? 0 : only;
                seed < (only == null ? cases : only + 1);
                seed++) {
            try {
                property.accept(mutate(good, new Random(seed)));
            } catch (IOException | RuntimeException | Error failure) {
                throw new AssertionError("failed with -Dverbena.seed=" + seed, failure);
            }
        }
    }

    private static byte[] mutate(byte[] good, Random random) {
        if (random.nextInt(10) == 0) {
            byte[] noise = new byte[random.nextInt(2 * good.length)];
            random.nextBytes(noise);
            return noise;
        }
        byte[] bytes = good.clone();
        for (int changes = 1 + random.nextInt(4); changes > 0; changes--) {
            // Extremes find the bounds, where noise would not.
            byte[] extremes = {0, 1, -1, Byte.MAX_VALUE, Byte.MIN_VALUE, (byte) random.nextInt()};
            bytes[random.nextInt(bytes.length)] = extremes[random.nextInt(extremes.length)];
        }
        return random.nextInt(3) > 0
                ? bytes
                : Arrays.copyOf(bytes, random.nextInt(bytes.length + 16));
    }
}
