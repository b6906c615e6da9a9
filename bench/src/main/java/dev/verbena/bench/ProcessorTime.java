package dev.verbena.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * The time for which this machine's processors were busy, the kernel's own work included: what a
 * software device does is charged to no process.
 */
final class ProcessorTime {
    private static final double TICKS_PER_SECOND = 100;

    private ProcessorTime() {}

    /** Busy seconds of all processors since the machine started, to a hundredth. */
    static double busySeconds() throws IOException {
        String all = Files.readAllLines(Path.of("/proc/stat")).getFirst();
        long[] ticks =
                Arrays.stream(all.split(" +", -1)).skip(1).mapToLong(Long::parseLong).toArray();
        // user, nice, system, (idle, waiting for I/O,) interrupts and their second halves
        return (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) / TICKS_PER_SECOND;
    }

    /** All processors of this machine, those too on which this process may not run. */
    static int processors() throws IOException {
        return (int)
                Files.readAllLines(Path.of("/proc/stat")).stream()
                        .filter(line -> line.matches("cpu[0-9]+ .*"))
                        .count();
    }
}
