package dev.verbena.kv;

import dev.verbena.transfer.TransferBatch;

/** Refusals that several classes share. Each names the offender, its value and the limit. */
final class Checks {
    private Checks() {}

    static int positive(String name, int value) {
        return (int) positive(name, (long) value);
    }

    static long positive(String name, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(name + " is " + value + ", must be at least 1");
        }
        return value;
    }

    static int notNegative(String name, int value) {
        return (int) notNegative(name, (long) value);
    }

    static long notNegative(String name, long value) {
        if (value < 0) {
            throw new IllegalArgumentException(name + " is " + value + ", must not be negative");
        }
        return value;
    }

    static int rank(String name, int rank, int size) {
        if (rank < 0 || rank >= size) {
            throw new IndexOutOfBoundsException(
                    "%s %d is outside 0..%d: the TP size is %d"
                            .formatted(name, rank, size - 1, size));
        }
        return rank;
    }

    static void tpSizes(int prefill, int decode) {
        if (prefill % decode != 0 && decode % prefill != 0) {
            throw new IllegalArgumentException(
                    "prefill TP size %d and decode TP size %d: neither divides the other"
                            .formatted(prefill, decode));
        }
    }

    /** Multiplies, for a result that {@code what} describes. */
    static long product(String what, long a, long b) {
        try {
            return Math.multiplyExact(a, b);
        } catch (ArithmeticException overflow) {
            throw new IllegalArgumentException(
                    "%s: %d x %d exceeds 64 bits".formatted(what, a, b), overflow);
        }
    }

    /** Adds, for a result that {@code what} describes. */
    static long sum(String what, long a, long b) {
        try {
            return Math.addExact(a, b);
        } catch (ArithmeticException overflow) {
            throw new IllegalArgumentException(
                    "%s: %d + %d exceeds 64 bits".formatted(what, a, b), overflow);
        }
    }

    /** Refuses a plan that does not fit, before its first block is added. */
    static void room(TransferBatch batch, long blocks) {
        if (blocks > TransferBatch.MAX_BLOCKS - batch.size()) {
            throw new IllegalArgumentException(
                    "the plan has %d blocks, and the batch holds %d of at most %d"
                            .formatted(blocks, batch.size(), TransferBatch.MAX_BLOCKS));
        }
    }

    /** Makes an empty batch with room for exactly that many blocks. */
    static TransferBatch newBatch(long blocks) {
        if (blocks > TransferBatch.MAX_BLOCKS) {
            throw new IllegalArgumentException(
                    "the plan has %d blocks, and a batch holds at most %d"
                            .formatted(blocks, TransferBatch.MAX_BLOCKS));
        }
        return new TransferBatch((int) blocks);
    }
}
