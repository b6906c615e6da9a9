package dev.verbena.transfer;

import java.net.InetAddress;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Logs what goes wrong with strangers, so that none of them can flood the log: per kind of trouble
 * and source address, a warning at the first, the 10th, the 100th time and so on. The rest is
 * logged for debugging only.
 *
 * <p>Safe for any thread.
 */
final class ControlComplaints {
    /** Most pairs that are counted one by one; the sources beyond share one count per kind. */
    private static final int MAX_SOURCES = 1024;

    private static final System.Logger LOG = System.getLogger(ControlListener.class.getName());

    private record Source(String kind, @Nullable InetAddress address) {}

    private final Map<Source, Long> counts = new HashMap<>();

    void complain(String kind, @Nullable InetAddress address, String message, Throwable cause) {
        long count = count(kind, address);
        if (isPowerOfTen(count)) {
            String times = count == 1 ? "" : " (" + count + " times by now)";
            LOG.log(System.Logger.Level.WARNING, message + times);
        }
        LOG.log(System.Logger.Level.DEBUG, message, cause);
    }

    /** Counts one more, and gives how many there are by now. */
    synchronized long count(String kind, @Nullable InetAddress address) {
        Source source = new Source(kind, address);
        boolean known = counts.size() < MAX_SOURCES || counts.containsKey(source);
        return counts.merge(known ? source : new Source(kind, null), 1L, Long::sum);
    }

    static boolean isPowerOfTen(long count) {
        long rest = count;
        while (rest > 1 && rest % 10 == 0) {
            rest /= 10;
        }
        return rest == 1;
    }
}
