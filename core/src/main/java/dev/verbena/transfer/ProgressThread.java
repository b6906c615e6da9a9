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

    /**
     * Between looks while a caller polls, and no event comes from that peer: twice as long each
     * time, as the look takes the caller's time where processors are few. So what nobody polls for
     * any more waits no longer than the polling has lasted.
     */
    private static final long SHORTEST_POLLED_TICK_NANOS = Duration.ofMillis(1).toNanos();

    private static final long LONGEST_POLLED_TICK_NANOS = Duration.ofMillis(8).toNanos();

    /** Between looks at the deadlines while transfers are under way. */
    private static final long BUSY_TICK_NANOS = Duration.ofMillis(10).toNanos();

    private static final long IDLE_TICK_NANOS = Duration.ofSeconds(1).toNanos();

    private final CompletionEvents channel;
    private final List<BatchPoster> posters = new CopyOnWriteArrayList<>();
    private final Thread thread;
    private volatile boolean stopping;

    /** The thread's own. */
    private long polledTickNanos = SHORTEST_POLLED_TICK_NANOS;

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
        boolean busy = false;
        boolean polled = false;
        for (BatchPoster poster : posters) {
            busy |= progress(poster);
            if (poster.wantsEvent()) {
                requestNotify(poster);
                // Completions that came before the request give no event.
                busy |= progress(poster);
            } else {
                polled = true;
            }
        }
        channel.await(polled ? polledTickNanos : busy ? BUSY_TICK_NANOS : IDLE_TICK_NANOS);
        polledTickNanos =
                polled
                        ? Math.min(2 * polledTickNanos, LONGEST_POLLED_TICK_NANOS)
                        : SHORTEST_POLLED_TICK_NANOS;
    }

    /** True while the poster has transfers under way, or completions to be taken. */
    private static boolean progress(BatchPoster poster) {
        try {
            return poster.progress();
        } catch (RuntimeException failure) {
            // The other peers must not suffer from what one of them ran into.
            LOG.log(Level.ERROR, "making progress failed", failure);
            poster.fail(FailureReason.DEVICE, "making progress failed: " + failure, failure);
            return false;
        }
    }

    private static void requestNotify(BatchPoster poster) {
        try {
            poster.requestNotify();
        } catch (VerbsException failure) {
            poster.fail(FailureReason.DEVICE, failure.getMessage(), failure);
        }
    }

    private static void pause() {
        try {
            Thread.sleep(Duration.ofNanos(BUSY_TICK_NANOS));
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
    }
}
