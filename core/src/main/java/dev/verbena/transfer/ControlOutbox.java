package dev.verbena.transfer;

import java.util.ArrayDeque;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Frames that wait to be written: any thread adds without ever blocking, one writer takes. It is
 * bounded in bytes, since a peer that does not read must cost neither memory nor a sender's time.
 *
 * <p>Life: {@link #offer} and {@link #take}, until {@link #finish} adds the last frame or {@link
 * #discard} drops them all. Safe for any thread.
 */
final class ControlOutbox {
    /** What a waiting frame costs beyond its payload, roughly: so that empty ones are bounded. */
    private static final int OVERHEAD_BYTES = 64;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private final ArrayDeque<ControlFrame> frames = new ArrayDeque<>();
    private final long maxBytes;
    private long bytes;
    private boolean closed;

    ControlOutbox(long maxBytes) {
        this.maxBytes = maxBytes;
    }

    /** Adds a frame, or gives false if there is no room or the outbox is closed. */
    boolean offer(ControlFrame frame) {
        lock.lock();
        try {
            if (closed || bytes + cost(frame) > maxBytes) {
                return false;
            }
            add(frame);
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Adds the last frame, which needs no room. The writer still takes what waits before it. */
    void finish(ControlFrame last) {
        lock.lock();
        try {
            if (!closed) {
                closed = true;
                add(last);
            }
        } finally {
            lock.unlock();
        }
    }

    /** Drops all frames; the writer takes no more. */
    void discard() {
        lock.lock();
        try {
            closed = true;
            frames.clear();
            bytes = 0;
            changed.signal();
        } finally {
            lock.unlock();
        }
    }

    /** Says whether nothing waits at the moment, so that a writer had better flush. */
    boolean isEmpty() {
        lock.lock();
        try {
            return frames.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Takes the next frame, and waits for one.
     *
     * @param idleNanos how long to wait
     * @param whenIdle what to give when none has come until then
     * @return the frame, or null when the outbox is closed and empty
     */
    @Nullable ControlFrame take(long idleNanos, ControlFrame whenIdle) throws InterruptedException {
        lock.lock();
        try {
            long leftNanos = idleNanos;
            while (frames.isEmpty() && !closed) {
                if (leftNanos <= 0) {
                    return whenIdle;
                }
                leftNanos = changed.awaitNanos(leftNanos);
            }
            ControlFrame frame = frames.poll();
            bytes -= frame == null ? 0 : cost(frame);
            return frame;
        } finally {
            lock.unlock();
        }
    }

    private void add(ControlFrame frame) {
        frames.add(frame);
        bytes += cost(frame);
        changed.signal();
    }

    private static long cost(ControlFrame frame) {
        return OVERHEAD_BYTES + (long) frame.payload().length;
    }
}
