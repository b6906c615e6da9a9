package dev.verbena.transfer;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Watches what the process takes in memory while something is under way: the most that is resident,
 * native memory too, and all that its threads allocate on the heap.
 *
 * <p>Heap beans by reflection, so that the module under test need not read the management modules.
 */
final class MemoryWatch {
    private static final Path STATUS = Path.of("/proc/self/status");
    private static final MethodHandle ALLOCATED;

    static {
        try {
            Object threads =
                    Class.forName("java.lang.management.ManagementFactory")
                            .getMethod("getThreadMXBean")
                            .invoke(null);
            ALLOCATED =
                    MethodHandles.publicLookup()
                            .unreflect(
                                    Class.forName("com.sun.management.ThreadMXBean")
                                            .getMethod("getTotalThreadAllocatedBytes"))
                            .bindTo(threads);
        } catch (ReflectiveOperationException absent) {
            throw new LinkageError("this JVM does not count allocations", absent);
        }
    }

    private final long residentBefore = residentBytes();
    private final long allocatedBefore = allocatedBytes();
    private long residentMost = residentBefore;
    private int looks;

    /** Looks how much is resident now. */
    void look() {
        residentMost = Math.max(residentMost, residentBytes());
        looks++;
    }

    /** How often it has looked. */
    int looks() {
        return looks;
    }

    /** By how much the process has grown since this was made, at the worst of the looks. */
    long residentGrowth() {
        return residentMost - residentBefore;
    }

    /** What all threads have allocated on the heap since this was made. */
    long allocated() {
        return allocatedBytes() - allocatedBefore;
    }

    private static long allocatedBytes() {
        try {
            return (long) ALLOCATED.invokeExact();
        } catch (Throwable thrown) {
            throw new AssertionError(thrown);
        }
    }

    private static long residentBytes() {
        try {
            for (String line : Files.readAllLines(STATUS)) {
                if (line.startsWith("VmRSS:")) {
                    return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
                }
            }
            throw new AssertionError(STATUS + " does not say VmRSS");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
