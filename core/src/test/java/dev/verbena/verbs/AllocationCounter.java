package dev.verbena.verbs;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;

/**
 * Counts the bytes that a thread allocates on the heap, for tests of code that must not allocate.
 *
 * <p>By reflection, so that the module under test need not read the management modules.
 */
public final class AllocationCounter {
    private static final int ROUNDS_MAX = 200;

    private static final MethodHandle THREAD_BYTES;

    static {
        try {
            Object threads =
                    Class.forName("java.lang.management.ManagementFactory")
                            .getMethod("getThreadMXBean")
                            .invoke(null);
            THREAD_BYTES =
                    MethodHandles.publicLookup()
                            .unreflect(
                                    Class.forName("com.sun.management.ThreadMXBean")
                                            .getMethod("getCurrentThreadAllocatedBytes"))
                            .bindTo(threads);
        } catch (ReflectiveOperationException absent) {
            throw new LinkageError("this JVM does not count allocations", absent);
        }
    }

    private AllocationCounter() {}

    /**
     * Runs code again and again until it is compiled and a round of it allocates nothing.
     *
     * @param callsPerRound calls of one round
     * @param code one call
     * @return bytes that a round allocates in the end: the least of all rounds, and 0 as soon as a
     *     round has none
     */
    public static long bytesOnceWarm(int callsPerRound, Runnable code) {
        long least = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS_MAX && least > 0; round++) {
            long before = threadBytes();
            for (int call = 0; call < callsPerRound; call++) {
                code.run();
            }
            least = Math.min(least, threadBytes() - before);
        }
        return least;
    }

    private static long threadBytes() {
        try {
            return (long) THREAD_BYTES.invokeExact();
        } catch (Throwable thrown) {
            throw new AssertionError(thrown);
        }
    }
}
