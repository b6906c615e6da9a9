package dev.verbena.kv;

import java.util.Random;
import java.util.function.Consumer;

/**
 * Runs a property over many random cases. A failure names its seed; {@code -Dverbena.seed=N} runs
 * that case alone.
 */
final class Seeds {
    private Seeds() {}

    static void forEach(int cases, Consumer<Random> property) {
        Long only = Long.getLong("verbena.seed");
        if (only != null) {
            property.accept(new Random(only));
            return;
        }
        for (long seed = 0; seed < cases; seed++) {
            try {
                property.accept(new Random(seed));
            } catch (AssertionError | RuntimeException failure) {
                throw new AssertionError("failed with -Dverbena.seed=" + seed, failure);
            }
        }
    }
}
