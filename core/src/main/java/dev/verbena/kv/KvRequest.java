package dev.verbena.kv;

import dev.verbena.transfer.Peer;
import java.io.IOException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A request on the decode side: pages set aside, filled by its writers.
 *
 * <p>It ends once, as ready or as failed. Failed does not yet mean that its pages may be used for
 * something else, as a writer may have a write in flight: {@link #close} waits until none has.
 *
 * <p>Life: {@link KvReceiver#expect}, {@link #await}, {@link #close}. Safe for use by several
 * threads.
 */
public final class KvRequest implements AutoCloseable {
    private final KvReceiver receiver;
    private final long room;
    private final int token;
    private final int[] pages;
    private final CompletableFuture<KvRequest> end = new CompletableFuture<>();

    /** Immediates that each writer still owes; a writer that has ended is not in it. */
    private final Map<Peer, Integer> owed = new HashMap<>();

    private boolean aborted;

    KvRequest(KvReceiver receiver, long room, int token, List<Peer> writers, int[] pages) {
        this.receiver = receiver;
        this.room = room;
        this.token = token;
        this.pages = pages.clone();
        for (Peer writer : writers) {
            owed.put(writer, writer.queuePairs());
        }
    }

    /**
     * Gives the identity of the request.
     *
     * @return the room
     */
    public long room() {
        return room;
    }

    /**
     * Waits until all pages are filled.
     *
     * @throws KvException if the request failed: a writer gave it up or is lost, or it was aborted
     * @throws InterruptedException if this thread is interrupted; the request goes on
     */
    public void await() throws InterruptedException {
        try {
            end.get();
        } catch (ExecutionException failure) {
            throw failed();
        }
    }

    /**
     * Waits until all pages are filled, and aborts the request if that takes too long.
     *
     * @param timeout longest wait
     * @throws KvException as {@link #await()}, or if the time was up
     * @throws InterruptedException if this thread is interrupted; the request goes on
     */
    public void await(Duration timeout) throws InterruptedException {
        try {
            end.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException late) {
            abort("not filled within " + timeout);
            await();
        } catch (ExecutionException failure) {
            throw failed();
        }
    }

    /**
     * Gives the end as a stage, which completes with this request when it is ready, or with a
     * {@link KvException}. What hangs on it runs on the thread that makes progress and should be
     * short.
     *
     * @return the stage
     */
    public CompletionStage<KvRequest> completion() {
        return end.minimalCompletionStage();
    }

    /**
     * Gives the request up: it fails here at once, and the writers are told to stop. Does nothing
     * if it has ended.
     *
     * @param reason for the messages on both sides
     */
    public void abort(String reason) {
        fail("aborted by the decode side: " + reason);
    }

    /**
     * Ends the request and waits until no writer has a write to its pages in flight: from then on
     * they may be used for something else. A request that is not ready is aborted.
     *
     * <p>Bounded by the writers' progress deadline, or by the time it takes to notice that one is
     * lost. Interrupting does not shorten it, since the pages would not be safe; the thread's
     * interrupt flag is kept.
     */
    @Override
    public void close() {
        abort("closed");
        boolean interrupted = false;
        synchronized (this) {
            while (!owed.isEmpty()) {
                try {
                    wait();
                } catch (InterruptedException later) {
                    interrupted = true;
                }
            }
        }
        receiver.forget(this);
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public String toString() {
        return "request of room " + room;
    }

    int token() {
        return token;
    }

    int[] pages() {
        return pages;
    }

    /** An immediate of a writer: with the last one all its bytes are in memory. */
    void arrived(Peer writer) {
        boolean ready;
        synchronized (this) {
            Integer left = owed.get(writer);
            if (left == null) {
                return;
            }
            if (left > 1) {
                owed.put(writer, left - 1);
                return;
            }
            owed.remove(writer);
            notifyAll();
            ready = owed.isEmpty() && !aborted;
        }
        if (ready) {
            end.complete(this);
        }
    }

    /** A writer will write no more, whatever it owes. */
    void writerEnded(Peer writer, String reason) {
        synchronized (this) {
            if (owed.remove(writer) == null) {
                return;
            }
            notifyAll();
        }
        fail(reason);
    }

    /** Fails the request, and asks the writers that have not ended to stop. */
    void fail(String reason) {
        List<Peer> writing;
        synchronized (this) {
            if (aborted || end.isDone()) {
                return;
            }
            aborted = true;
            writing = List.copyOf(owed.keySet());
        }
        for (Peer writer : writing) {
            try {
                writer.send(
                        KvMessage.TO_PREFILL, new KvMessage.Abort(room, token, reason).encode());
            } catch (IOException lost) {
                // Its loss is told to the receiver too, and ends it as a writer.
            }
        }
        end.completeExceptionally(new KvException(this + " failed: " + reason, null));
    }

    /** A new exception, so that its stack trace is the waiting thread's. */
    private KvException failed() {
        Throwable cause = end.exceptionNow();
        return new KvException(String.valueOf(cause.getMessage()), cause);
    }
}
