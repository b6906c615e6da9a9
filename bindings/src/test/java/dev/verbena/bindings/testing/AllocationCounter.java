package dev.verbena.bindings.testing;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.util.concurrent.TimeUnit;

/**
 * Counts the bytes that a thread allocates on the heap, for tests of code that must not allocate.
 *
 * <p>By reflection, so that the module under test need not read the management modules.
 */
public final class AllocationCounter {
    /** Long for any machine: how soon the code is compiled is the compiler's affair. */
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(60);

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
     * Runs code again and again, as it allocates less once it is compiled.
     *
     * @param callsPerRound calls of one round
     * @param enough bytes of a round that are few enough to end
     * @param code one call
     * @return bytes that a round allocates in the end: the least of all rounds, which is more than
     *     enough only if a minute has not sufficed
     */
    public static long bytesOnceWarm(int callsPerRound, long enough, Runnable code) {
        long start = System.nanoTime();
        long least = Long.MAX_VALUE;
        do {
            long before = threadBytes();
            for (int call = 0; call < callsPerRound; call++) {
                code.run();
            }
            least = Math.min(least, threadBytes() - before);
        } while (least > enough && System.nanoTime() - start < PATIENCE_NANOS);
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
