package dev.verbena.kv;

import dev.verbena.transfer.Peer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Immediates of a receiver, and who counts their arrivals: requests, and staged chunks. A token has
 * its top bit set, so that the other half of all immediates is the user's.
 *
 * <p>Safe for use by several threads.
 */
final class KvTokens {
    /** Counts the immediates of one token. */
    @FunctionalInterface
    interface Arrivals {
        /**
         * An immediate has come: what the writer wrote before it on that queue pair is in memory.
         * Called on the thread that makes progress.
         */
        void arrived(Peer writer);
    }

    private final AtomicInteger next = new AtomicInteger();
    private final Map<Integer, Arrivals> arrivals = new ConcurrentHashMap<>();

    /** Gives a token that no one else has, to be {@linkplain #retire retired}. */
    int issue(Arrivals counting) {
        int token;
        do {
            token = Integer.MIN_VALUE | next.incrementAndGet();
        } while (arrivals.putIfAbsent(token, counting) != null);
        return token;
    }

    /** Ends a token: what still comes of it is ignored. */
    void retire(int token) {
        arrivals.remove(token);
    }

    /** An immediate has come, of whomever. */
    void arrived(Peer writer, int immediate) {
        Arrivals counting = arrivals.get(immediate);
        if (counting != null) {
            counting.arrived(writer);
        }
    }

    /** How many are not retired. */
    int count() {
        return arrivals.size();
    }
}
