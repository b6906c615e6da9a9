package dev.verbena.bench;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * What threads and the machine as a whole have used. The work of a software device is charged to no
 * process, so that of the machine is what counts there.
 */
final class ProcessorTime {
    private static final double TICKS_PER_SECOND = 100;

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private ProcessorTime() {}

    /** Nanoseconds for which a processor was at this thread: a busy machine does not spoil them. */
    static long threadNanos() {
        return THREADS.getCurrentThreadCpuTime();
    }

    /** Bytes that this thread has allocated on the heap. */
    static long threadHeapBytes() {
        return THREADS.getCurrentThreadAllocatedBytes();
    }

    /** Busy seconds of all processors since the machine started, to a hundredth. */
    static double busySeconds() throws IOException {
        String all = Files.readAllLines(Path.of("/proc/stat")).getFirst();
        long[] ticks =
                Arrays.stream(all.split(" +", -1)).skip(1).mapToLong(Long::parseLong).toArray();
        // user, nice, system, (idle, waiting for I/O,) interrupts and their second halves
        return (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) / TICKS_PER_SECOND;
    }
}
