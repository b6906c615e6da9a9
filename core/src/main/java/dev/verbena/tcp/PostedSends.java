package dev.verbena.tcp;

import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.WorkRequests;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The send queue of a lane: which slots of which ring were posted, how many of them have been sent,
 * and how many are done. Counted from 0; the peer counts alike.
 *
 * <p>One thread posts, another sends and retires; the counts are how they meet.
 */
final class PostedSends {
    private final TcpCompletions completions;
    private final int[] slots;
    private volatile @Nullable WorkRequests ring;
    private volatile long posted;
    private volatile long done;

    /** Touched by the sending thread alone. */
    private long sent;

    PostedSends(TcpCompletions completions, int capacity) {
        this.completions = completions;
        this.slots = new int[capacity];
    }

    /** Posts as many of the slots as there is room for, and says how many. */
    int post(WorkRequests requests, int firstSlot, int count) {
        ring = requests;
        long first = posted;
        int taken = (int) Math.min(count, slots.length - (first - done));
        for (int i = 0; i < taken; i++) {
            slots[(int) ((first + i) % slots.length)] = (firstSlot + i) & (requests.capacity() - 1);
        }
        posted = first + taken;
        return taken;
    }

    boolean hasUnsent() {
        return sent < posted;
    }

    long sent() {
        return sent;
    }

    long done() {
        return done;
    }

    /** Counts the next unsent one as sent; gives its slot. */
    int send() {
        return slot(sent++);
    }

    int slot(long request) {
        return slots[(int) (request % slots.length)];
    }

    WorkRequests ring() {
        return Objects.requireNonNull(ring);
    }

    /** Completes all before a request. */
    void retireBefore(long request) {
        WorkRequests requests = ring();
        for (long i = done; i < request; i++) {
            int slot = slot(i);
            boolean signaled = requests.isSignaled(slot);
            long identity = requests.workRequestId(slot);
            // First: who sees the completion may post to its place.
            done = i + 1;
            if (signaled) {
                completions.add(identity, CompletionStatus.SUCCESS);
            }
        }
    }

    /** Completes a chain as flushed that is not to be posted any more. */
    void flushUnposted(WorkRequests requests, int firstSlot, int count) {
        for (int i = 0; i < count; i++) {
            int slot = (firstSlot + i) & (requests.capacity() - 1);
            completions.add(requests.workRequestId(slot), CompletionStatus.FLUSHED);
        }
    }

    /**
     * Completes all that are outstanding: the first with a status, the others as flushed. False if
     * there were none.
     */
    boolean flush(CompletionStatus first) {
        boolean some = done < posted;
        CompletionStatus status = first;
        for (long i = done; i < posted; i++) {
            completions.add(ring().workRequestId(slot(i)), status);
            status = CompletionStatus.FLUSHED;
        }
        done = posted;
        sent = posted;
        return some;
    }
}
