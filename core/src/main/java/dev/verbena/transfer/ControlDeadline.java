package dev.verbena.transfer;

import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;

/**
 * Does something at a point in time, unless called off before: what bounds an exchange as a whole,
 * however slowly its bytes drip in, where the time-out of a socket bounds one read only.
 *
 * <p>Life: make, {@link #start}, {@link #close}. A virtual thread waits, so one costs little. Once
 * {@link #close} has returned, the action has either begun or never will. Safe for any thread.
 */
final class ControlDeadline implements AutoCloseable {
    private enum State {
        WAITING,
        STRUCK,
        CALLED_OFF
    }

    private final AtomicReference<State> state = new AtomicReference<>(State.WAITING);
    private final long deadlineNanos;
    private final Runnable action;
    private final Thread thread;

    /**
     * Makes a deadline that does not run yet.
     *
     * @param deadlineNanos when to act, by the clock of {@link System#nanoTime}
     */
    ControlDeadline(long deadlineNanos, Runnable action) {
        this.deadlineNanos = deadlineNanos;
        this.action = action;
        thread = Thread.ofVirtual().name("verbena-control-deadline").unstarted(this::run);
    }

    ControlDeadline start() {
        thread.start();
        return this;
    }

    /** Says whether the time was up before the deadline was called off. */
    boolean struck() {
        return state.get() == State.STRUCK;
    }

    /** Calls the action off, if it has not begun. */
    @Override
    public void close() {
        if (state.compareAndSet(State.WAITING, State.CALLED_OFF)) {
            LockSupport.unpark(thread);
        }
    }

    private void run() {
        while (state.get() == State.WAITING) {
            long leftNanos = deadlineNanos - System.nanoTime();
            if (leftNanos > 0) {
                LockSupport.parkNanos(this, leftNanos);
            } else if (state.compareAndSet(State.WAITING, State.STRUCK)) {
                action.run();
            }
        }
    }
}
