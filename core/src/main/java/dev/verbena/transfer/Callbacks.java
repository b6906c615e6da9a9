package dev.verbena.transfer;

/**
 * Knows whether the current thread is inside a callback of the user's. Who is must not wait for a
 * peer or a node to be gone: the thread that sees to that may be waiting for this one, or be this
 * one.
 */
final class Callbacks {
    private static final ThreadLocal<Integer> DEPTH = ThreadLocal.withInitial(() -> 0);

    private Callbacks() {}

    /** Runs a callback; what it throws is the caller's. */
    static void run(Runnable callback) {
        int depth = DEPTH.get();
        DEPTH.set(depth + 1);
        try {
            callback.run();
        } finally {
            if (depth == 0) {
                DEPTH.remove();
            } else {
                DEPTH.set(depth);
            }
        }
    }

    static boolean isInside() {
        return DEPTH.get() > 0;
    }
}
