package dev.verbena.transfer;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Who waits for the transfers of one poster, and thus whether its completions shall wake the
 * progress thread. A caller who spins finds them by itself, and an event would cost both threads a
 * change of context for each transfer. One who sleeps, or has only left a callback behind, needs
 * the event.
 *
 * <p>Callers who spin for one short transfer after another do not spin in between, and just then
 * the progress thread may look: so that somebody has polled since it looked last counts as well.
 */
final class Waiters {
    private final AtomicInteger spinning = new AtomicInteger();
    private final AtomicInteger sleeping = new AtomicInteger();
    private volatile boolean polled;

    void beginSpin() {
        spinning.incrementAndGet();
    }

    void endSpin() {
        polled();
        spinning.decrementAndGet();
    }

    void beginSleep() {
        sleeping.incrementAndGet();
    }

    void endSleep() {
        sleeping.decrementAndGet();
    }

    /** Somebody has polled for completions, and will probably do so again. */
    void polled() {
        if (!polled) {
            polled = true;
        }
    }

    /** Whether the next completion shall give an event; asked at each turn of the thread. */
    boolean wantEvent() {
        boolean polledSince = polled;
        polled = false;
        return sleeping.get() > 0 || (spinning.get() == 0 && !polledSince);
    }
}
