package dev.verbena.kv;

import java.time.Duration;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Rooms that failed before all decode ranks had announced them. A rank whose announcement was on
 * its way meanwhile is told at once, as nobody will ever complete the room; each rank once, since
 * what it announces next is another request. Bounded in number and time, for ranks that never come.
 *
 * <p>Guarded by the lock of its {@link KvSender}.
 */
final class KvFailedRooms {
    /** Most rooms that are remembered; the oldest goes. */
    static final int MAX_ROOMS = 4096;

    /** How long a room is remembered: far longer than an announcement is on its way. */
    static final long KEPT_NANOS = Duration.ofSeconds(30).toNanos();

    private record Failed(
            String reason, TensorParallel decode, Set<Integer> missing, long atNanos) {}

    /** In the order of failing. */
    private final Map<Long, Failed> rooms = new LinkedHashMap<>();

    /**
     * Remembers a room, if a rank is missing.
     *
     * @param decode ranks of the decode side
     * @param missing those that have not announced it
     */
    void add(long id, TensorParallel decode, Set<Integer> missing, String reason, long nowNanos) {
        if (missing.isEmpty()) {
            return;
        }
        rooms.remove(id);
        rooms.put(id, new Failed(reason, decode, new HashSet<>(missing), nowNanos));
        Iterator<Failed> oldest = rooms.values().iterator();
        while (isOver(oldest.next(), nowNanos) || rooms.size() > MAX_ROOMS) {
            oldest.remove();
        }
    }

    /** How many are remembered. */
    int count() {
        return rooms.size();
    }

    /**
     * Says why the request that a rank announces has failed already.
     *
     * @param decode cache of the rank
     * @param connectedNanos when its connection was made: what comes on one that was made after the
     *     failure is another request
     * @return the reason, or null if it has not failed
     */
    @Nullable String take(long id, KvCache decode, long connectedNanos, long nowNanos) {
        Failed failed = rooms.get(id);
        if (failed == null
                || isOver(failed, nowNanos)
                || connectedNanos - failed.atNanos > 0
                || !failed.decode.equals(decode.tensorParallel())
                || !failed.missing.remove(decode.rank())) {
            return null;
        }
        if (failed.missing.isEmpty()) {
            rooms.remove(id);
        }
        return failed.reason;
    }

    private static boolean isOver(Failed failed, long nowNanos) {
        return nowNanos - failed.atNanos > KEPT_NANOS;
    }
}
