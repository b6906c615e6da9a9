package dev.verbena.demo;

import java.util.function.LongSupplier;

/**
 * Measures the time during which at least one transfer is under way: from the first post to the
 * last completion, without the gaps in which a slow producer had nothing to send.
 *
 * <p>Safe for use by several threads.
 */
final class TransferClock {
    private final LongSupplier nanoTime;
    private int underWay;
    private long since;
    private long totalNanos;

    TransferClock() {
        this(System::nanoTime);
    }

    TransferClock(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
    }

    /** A transfer is about to be posted. */
    synchronized void begin() {
        if (underWay++ == 0) {
            since = nanoTime.getAsLong();
        }
    }

    /** A transfer has ended. */
    synchronized void end() {
        if (--underWay == 0) {
            totalNanos += nanoTime.getAsLong() - since;
        }
    }

    /** The time so far; what is under way does not count yet. */
    synchronized double seconds() {
        return totalNanos / 1e9;
    }
}
