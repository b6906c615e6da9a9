package dev.verbena.transfer;

import java.util.concurrent.atomic.AtomicInteger;

/** Counts how often the end of a transfer is told. */
final class Ends {
    private final AtomicInteger ends = new AtomicInteger();

    Ends(Transfer transfer) {
        transfer.completion().whenComplete((done, failure) -> ends.incrementAndGet());
    }

    int count() {
        return ends.get();
    }
}
