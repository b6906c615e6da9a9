package dev.verbena.tcp;

import dev.verbena.verbs.CompletionSource;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.WorkCompletions;

/**
 * Completions of the lanes to one peer, in a ring with room for all that can be outstanding. Safe
 * for use by several threads; allocates nothing once made.
 */
public final class TcpCompletions implements CompletionSource {
    private final TcpEvents events;
    private final long[] workRequestIds;
    private final CompletionStatus[] statuses;

    /** Whether it is a receive that took an immediate, and which. */
    private final boolean[] haveImmediate;

    private final int[] immediates;

    private long head;
    private long tail;
    private boolean isNotifying;
    private boolean isClosed;

    /**
     * Makes an empty one.
     *
     * @param events where completions are announced
     * @param entries most completions at a time, at least 1
     */
    public TcpCompletions(TcpEvents events, int entries) {
        this.events = events;
        this.workRequestIds = new long[entries];
        this.statuses = new CompletionStatus[entries];
        this.haveImmediate = new boolean[entries];
        this.immediates = new int[entries];
    }

    @Override
    public int entries() {
        return workRequestIds.length;
    }

    @Override
    public synchronized int poll(WorkCompletions completions) {
        requireOpen();
        completions.clear();
        int count = (int) Math.min(head - tail, completions.capacity());
        for (int i = 0; i < count; i++) {
            int at = (int) (tail % entries());
            if (haveImmediate[at]) {
                completions.addImmediate(workRequestIds[at], immediates[at]);
            } else {
                completions.add(workRequestIds[at], statuses[at]);
            }
            tail++;
        }
        return count;
    }

    @Override
    public synchronized void requestNotify() {
        requireOpen();
        isNotifying = true;
    }

    @Override
    public synchronized void close() {
        isClosed = true;
    }

    /** A work request has ended, or a receive was flushed. */
    void add(long workRequestId, CompletionStatus status) {
        add(workRequestId, status, false, 0);
    }

    /** A receive has taken an immediate. */
    void addImmediate(long workRequestId, int immediate) {
        add(workRequestId, CompletionStatus.SUCCESS, true, immediate);
    }

    private void add(long workRequestId, CompletionStatus status, boolean hasImmediate, int bits) {
        synchronized (this) {
            if (head - tail == entries()) {
                throw new IllegalStateException(
                        "more than " + entries() + " completions: more was posted than fits");
            }
            int at = (int) (head % entries());
            workRequestIds[at] = workRequestId;
            statuses[at] = status;
            haveImmediate[at] = hasImmediate;
            immediates[at] = bits;
            head++;
            if (!isNotifying) {
                return;
            }
            isNotifying = false;
        }
        events.wakeIfOpen();
    }

    private void requireOpen() {
        if (isClosed) {
            throw new IllegalStateException("the completions are closed");
        }
    }
}
