package dev.verbena.tcp;

import dev.verbena.verbs.CompletionEvents;

/** Where the thread that makes progress sleeps; safe for use by several threads. */
public final class TcpEvents implements CompletionEvents {
    private static final long NANOS_A_MILLI = 1_000_000;

    private boolean isAwake;
    private boolean isClosed;

    /** Makes an open one. */
    public TcpEvents() {}

    @Override
    public synchronized boolean await(long timeoutNanos) {
        long deadline = System.nanoTime() + timeoutNanos;
        boolean interrupted = false;
        while (!isAwake && !isClosed) {
            long left = deadline - System.nanoTime();
            if (left <= 0) {
                break;
            }
            try {
                wait(left / NANOS_A_MILLI, (int) (left % NANOS_A_MILLI));
            } catch (InterruptedException stop) {
                interrupted = true;
                break;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        requireOpen();
        boolean woken = isAwake;
        isAwake = false;
        return woken;
    }

    @Override
    public synchronized void wake() {
        requireOpen();
        wakeIfOpen();
    }

    /** As {@link #wake}, for those who may come late. */
    synchronized void wakeIfOpen() {
        isAwake = true;
        notifyAll();
    }

    @Override
    public synchronized void close() {
        isClosed = true;
        notifyAll();
    }

    private void requireOpen() {
        if (isClosed) {
            throw new IllegalStateException("the completion events are closed");
        }
    }
}
