package dev.verbena.transfer;

import dev.verbena.verbs.CompletionEvents;
import dev.verbena.verbs.VerbsException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The thread of a node that makes progress for all its peers: takes completions, posts what has
 * room, hands on immediates, watches deadlines.
 *
 * <p>It sleeps on the completion channel. While some caller spins on its own transfer, events would
 * only cost both of them, so none are asked for and the thread looks in at every tick instead.
 */
final class ProgressThread implements AutoCloseable {
    private static final Logger LOG = System.getLogger(ProgressThread.class.getName());

    /** Between looks while a caller spins. */
    private static final long SPINNING_TICK_NANOS = Duration.ofMillis(1).toNanos();

    /** Between looks at the deadlines while transfers are under way. */
    private static final long BUSY_TICK_NANOS = Duration.ofMillis(10).toNanos();

    private static final long IDLE_TICK_NANOS = Duration.ofSeconds(1).toNanos();

    private final CompletionEvents channel;
    private final List<BatchPoster> posters = new CopyOnWriteArrayList<>();
    private final AtomicInteger spinning = new AtomicInteger();
    private final Thread thread;
    private volatile boolean stopping;

    ProgressThread(String name, CompletionEvents channel) {
        this.channel = channel;
        this.thread = Thread.ofPlatform().daemon().name(name).start(this::run);
    }

    void add(BatchPoster poster) {
        posters.add(poster);
        poster.progressThread(this);
        channel.wake();
    }

    void remove(BatchPoster poster) {
        posters.remove(poster);
    }

    void beginSpin() {
        spinning.incrementAndGet();
    }

    void endSpin() {
        spinning.decrementAndGet();
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
        if (spinning.get() > 0) {
            channel.await(SPINNING_TICK_NANOS);
            return;
        }
        for (BatchPoster poster : posters) {
            try {
                poster.requestNotify();
            } catch (VerbsException failure) {
                poster.fail(FailureReason.DEVICE, failure.getMessage(), failure);
            }
        }
        // Completions that came before the request give no event.
        busy |= progress();
        channel.await(busy ? BUSY_TICK_NANOS : IDLE_TICK_NANOS);
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
