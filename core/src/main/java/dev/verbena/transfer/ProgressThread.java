package dev.verbena.transfer;

import dev.verbena.verbs.CompletionEvents;
import dev.verbena.verbs.VerbsException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * The thread of a node that makes progress for all its peers: takes completions, posts what has
 * room, hands on immediates, watches deadlines.
 *
 * <p>It sleeps on the completion channel, where the next completion of each peer wakes it; but not
 * those of a peer for whose transfers a caller polls by itself, where it looks in at every tick
 * instead.
 */
final class ProgressThread implements AutoCloseable {
    private static final Logger LOG = System.getLogger(ProgressThread.class.getName());

    /** Between looks while a caller polls, and no event comes from that peer. */
    private static final long POLLED_TICK_NANOS = Duration.ofMillis(1).toNanos();

    /** Between looks at the deadlines while transfers are under way. */
    private static final long BUSY_TICK_NANOS = Duration.ofMillis(10).toNanos();

    private static final long IDLE_TICK_NANOS = Duration.ofSeconds(1).toNanos();

    private final CompletionEvents channel;
    private final List<BatchPoster> posters = new CopyOnWriteArrayList<>();
    private final Thread thread;
    private volatile boolean stopping;

    ProgressThread(String name, CompletionEvents channel) {
        this.channel = channel;
        this.thread = Thread.ofPlatform().daemon().name(name).start(this::run);
    }

    void add(BatchPoster poster) {
        posters.add(poster);
        poster.watched();
        channel.wake();
    }

    void remove(BatchPoster poster) {
        posters.remove(poster);
    }

    /** Ends the thread and waits for it; the channel is the caller's to close. */
    @Override
    public void close() {
        stopping = true;
        channel.wake();
        awaitEnd(thread);
    }

    /**
     * Waits until a thread has ended, whatever interrupts; the flag is kept. A thread does not wait
     * for itself.
     */
    static void awaitEnd(Thread thread) {
        boolean interrupted = false;
        while (thread.isAlive() && thread != Thread.currentThread()) {
            try {
                thread.join();
            } catch (InterruptedException later) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void run() {
        while (!stopping) {
            try {
                turn();
            } catch (Throwable failure) {
                // An error too: without this thread nothing of the node would end.
                if (!stopping) {
                    LOG.log(Level.ERROR, "making progress failed", failure);
                    pause();
                }
            }
        }
    }

    private void turn() {
        boolean busy = progress();
        boolean polled = false;
        for (BatchPoster poster : posters) {
            if (poster.wantsEvent()) {
                requestNotify(poster);
            } else {
                polled = true;
            }
        }
        // Completions that came before the request give no event.
        busy |= progress();
        channel.await(polled ? POLLED_TICK_NANOS : busy ? BUSY_TICK_NANOS : IDLE_TICK_NANOS);
    }

    private static void requestNotify(BatchPoster poster) {
        try {
            poster.requestNotify();
        } catch (VerbsException failure) {
            poster.fail(FailureReason.DEVICE, failure.getMessage(), failure);
        }
    }

    private boolean progress() {
        boolean busy = false;
        for (BatchPoster poster : posters) {
            try {
                busy |= poster.progress();
            } catch (RuntimeException failure) {
                // The other peers must not suffer from what one of them ran into.
                LOG.log(Level.ERROR, "making progress failed", failure);
                poster.fail(FailureReason.DEVICE, "making progress failed: " + failure, failure);
            }
        }
        return busy;
    }

    private static void pause() {
        try {
            Thread.sleep(Duration.ofNanos(BUSY_TICK_NANOS));
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
    }
}
