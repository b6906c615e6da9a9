package dev.verbena.transfer;

/**
 * Knows whether the current thread is inside a callback of the user's. Who is must not wait for a
 * peer or a node to be gone: the thread that sees to that may be waiting for this one, or be this
 * one.
 */
final class Callbacks {
    /**
     * How deep a thread is in callbacks; one cell a thread, as every transfer's end counts here.
     */
    private static final ThreadLocal<int[]> DEPTH = ThreadLocal.withInitial(() -> new int[1]);

    private Callbacks() {}

    /** Runs a callback; what it throws is the caller's. */
    static void run(Runnable callback) {
        int[] depth = DEPTH.get();
        depth[0]++;
        try {
            callback.run();
        } finally {
            depth[0]--;
        }
    }

    static boolean isInside() {
        return DEPTH.get()[0] > 0;
    }
}
