package dev.verbena.transfer;

import dev.verbena.verbs.Endpoint;
import dev.verbena.verbs.ReceiveRequests;

/**
 * The receive side of one queue pair: receives without memory, each of which takes one immediate of
 * the peer. Half of them used up, they are posted again.
 *
 * <p>Not thread-safe: the poster's lock guards it.
 */
final class ReceiveQueue {
    /** Marks the identity of a receive among those of sends, which are never negative. */
    static final long RECEIVE = Long.MIN_VALUE;

    private final Endpoint queuePair;
    private final ReceiveRequests requests;
    private int used;

    ReceiveQueue(int index, Endpoint queuePair, int count) {
        this.queuePair = queuePair;
        this.requests = new ReceiveRequests(count, 0);
        for (int slot = 0; slot < count; slot++) {
            requests.fill(slot, RECEIVE | index, 0);
        }
    }

    static boolean isReceive(long workRequestId) {
        return workRequestId < 0;
    }

    static int queueOf(long workRequestId) {
        return (int) workRequestId;
    }

    /** Posts all receives; the queue pair must have left RESET. */
    void postAll() {
        queuePair.postReceives(requests, requests.capacity());
    }

    /** Counts one receive as used. */
    void take() {
        used++;
        if (used >= Math.max(1, requests.capacity() / 2)) {
            queuePair.postReceives(requests, used);
            used = 0;
        }
    }

    /** Frees the requests; the queue pair must have been destroyed. */
    void close() {
        requests.close();
    }
}
