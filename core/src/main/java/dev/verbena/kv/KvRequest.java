package dev.verbena.kv;

import dev.verbena.transfer.Peer;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * A request on the decode side: slots set aside, filled by its writers.
 *
 * <p>It ends once, as ready or as failed. Ready means that all of it is in memory: KV, state, and
 * auxiliary data. Failed does not yet mean that its slots may be used for something else, as a
 * writer may have a write in flight: {@link #close} waits until none has.
 *
 * <p>Life: {@link KvReceiver#expect}, {@link #await}, {@link #close}. Safe for use by several
 * threads.
 */
public final class KvRequest implements AutoCloseable {
    /** What a writer has not done yet; it leaves the table when it has, or will do no more. */
    private static final class Owed {
        int immediates;
        boolean aux;

        Owed(int immediates, boolean aux) {
            this.immediates = immediates;
            this.aux = aux;
        }

        boolean isNothing() {
            return immediates == 0 && !aux;
        }
    }

    private final KvReceiver receiver;
    private final long room;
    private final int token;
    private final KvSlots slots;

    /** Prefill ranks that have nothing to write; they are told of an abort all the same. */
    private final List<Peer> dummies;

    /** Caches of the ranks that write. */
    private final Map<Peer, KvCache> writers;

    private final CompletableFuture<KvRequest> end = new CompletableFuture<>();

    // Guarded by this.
    private final Map<Peer, Owed> owed = new HashMap<>();

    /** Staged chunks that are being copied into their slots. */
    private int scatters;

    /** Pages that come through the staging ring and have not been copied, once for each stage. */
    private int stagedPages;

    /** All peers have been told of the request: an abort must not be ahead of that. */
    private boolean isAnnounced;

    private @Nullable String failure;

    /**
     * Makes a request that has not been announced.
     *
     * @param writers those that write to it, with their caches
     * @param auxByMessage who of them sends auxiliary data by message, or null if none does
     * @param dummies the other prefill ranks
     * @param stagedPages pages that come through the staging ring, once for each pipeline stage
     * @param lost why it has failed already, or null
     */
    KvRequest(
            KvReceiver receiver,
            long room,
            KvSlots slots,
            Map<Peer, KvCache> writers,
            @Nullable Peer auxByMessage,
            List<Peer> dummies,
            int stagedPages,
            @Nullable String lost) {
        this.receiver = receiver;
        this.room = room;
        this.slots = slots;
        this.writers = Map.copyOf(writers);
        this.dummies = List.copyOf(dummies);
        this.stagedPages = stagedPages;
        for (Peer writer : writers.keySet()) {
            owed.put(writer, new Owed(writer.queuePairs(), writer.equals(auxByMessage)));
        }
        this.token = receiver.tokens().issue(this::arrived);
        if (lost != null) {
            this.failure = lost;
            end.completeExceptionally(exception(lost));
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
     * Waits until all slots are filled.
     *
     * @throws KvException if the request failed: a writer gave it up or is lost, or it was aborted
     * @throws InterruptedException if this thread is interrupted; the request goes on
     */
    public void await() throws InterruptedException {
        try {
            end.get();
        } catch (ExecutionException failed) {
            throw failed();
        }
    }

    /**
     * Waits until all slots are filled, and aborts the request if that takes too long.
     *
     * @param timeout longest wait
     * @throws KvException as {@link #await()}, or if the time was up
     * @throws InterruptedException if this thread is interrupted; the request goes on
     */
    public void await(Duration timeout) throws InterruptedException {
        try {
            end.get(TimeUnit.NANOSECONDS.convert(timeout), TimeUnit.NANOSECONDS);
        } catch (TimeoutException late) {
            abort("not filled within " + timeout);
            await();
        } catch (ExecutionException failed) {
            throw failed();
        }
    }

    /**
     * Gives the end as a stage, which completes with this request when it is ready, or with a
     * {@link KvException}. What hangs on it runs on the thread that brought the end: the one that
     * makes progress, any that posts or waits for a transfer of the node, one that reads a control
     * connection, or one that aborts. It should be short, and not wait.
     *
     * @return the stage
     */
    public CompletionStage<KvRequest> completion() {
        return end.minimalCompletionStage();
    }

    /**
     * Gives the request up: it fails here at once, and all prefill ranks are told to stop. Does
     * nothing if it has ended.
     *
     * @param reason for the messages on both sides
     */
    public void abort(String reason) {
        fail("aborted by the decode side: " + reason);
    }

    /**
     * Ends the request and waits until no writer has a write to its slots in flight: from then on
     * they may be used for something else. A request that is not ready is aborted.
     *
     * <p>Bounded by the writers' progress deadline, or by the time it takes to notice that one is
     * lost. Interrupting does not shorten it, since the slots would not be safe; the thread's
     * interrupt flag is kept.
     */
    @Override
    public void close() {
        abort("closed");
        boolean interrupted = false;
        synchronized (this) {
            while (!isQuiet()) {
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

    // What follows is the receiver's.

    int token() {
        return token;
    }

    KvSlots slots() {
        return slots;
    }

    /** The cache of a rank that writes, or null of one that does not. */
    @Nullable KvCache writer(Peer peer) {
        return writers.get(peer);
    }

    /** Whether a rank may still write to it. */
    synchronized boolean isOwedBy(Peer peer) {
        return owed.containsKey(peer);
    }

    synchronized boolean hasFailed() {
        return failure != null;
    }

    /** The ranks that write to it. */
    List<Peer> writers() {
        return List.copyOf(writers.keySet());
    }

    /** All peers have been told, as far as they could be. */
    void announced() {
        String failed;
        synchronized (this) {
            isAnnounced = true;
            failed = failure;
        }
        if (failed != null) {
            tellAbort(failed);
        }
    }

    /** An immediate of a writer: with the last one all its bytes are in memory. */
    void arrived(Peer writer) {
        boolean ended;
        synchronized (this) {
            Owed left = owed.get(writer);
            if (left == null || left.immediates == 0) {
                return;
            }
            left.immediates--;
            ended = settle(writer, left);
        }
        if (ended) {
            receiver.writerEnded(this, writer);
        }
        endIfReady();
    }

    /** Auxiliary data of a writer, by message. */
    void auxArrived(Peer writer, byte[] bytes) {
        boolean ended;
        try {
            synchronized (this) {
                Owed left = owed.get(writer);
                if (left == null || !left.aux || failure != null) {
                    return;
                }
                // With the lock: once the request is closed the slot is another's.
                receiver.writeAux(slots.auxSlot(), bytes);
                left.aux = false;
                ended = settle(writer, left);
            }
        } catch (RuntimeException refused) {
            fail("auxiliary data of " + writer.name() + ": " + refused.getMessage());
            return;
        }
        if (ended) {
            receiver.writerEnded(this, writer);
        }
        endIfReady();
    }

    /** A peer says that it gives the request up, or is lost: it will write no more. */
    void writerEnded(Peer writer, String reason) {
        boolean noted;
        synchronized (this) {
            if (!owed.containsKey(writer)) {
                return;
            }
            // In one step, or a request without its last writer would look ready.
            noted = note(reason);
            owed.remove(writer);
            notifyAll();
        }
        if (noted) {
            endFailed(reason);
        }
        receiver.writerEnded(this, writer);
    }

    /** A prefill rank gives the request up, whether or not it writes to this rank. */
    void failedBy(Peer peer, String reason) {
        writerEnded(peer, reason);
        if (writers.containsKey(peer) || dummies.contains(peer)) {
            fail(reason);
        }
    }

    /**
     * A staged chunk is about to be copied into its slots.
     *
     * @return false if the request has ended, and must not be touched
     */
    synchronized boolean beginScatter() {
        if (failure != null || end.isDone()) {
            return false;
        }
        scatters++;
        return true;
    }

    /** A staged chunk of so many pages has been copied, or could not be. */
    void endScatter(int pages, @Nullable String problem) {
        if (problem != null) {
            fail(problem);
        }
        synchronized (this) {
            scatters--;
            stagedPages -= pages;
            notifyAll();
        }
        endIfReady();
    }

    /** Fails the request, and asks the prefill ranks to stop. */
    void fail(String reason) {
        boolean noted;
        synchronized (this) {
            noted = note(reason);
        }
        if (noted) {
            endFailed(reason);
        }
    }

    /** Notes the first failure, unless the request has ended. With the lock. */
    private boolean note(String reason) {
        if (failure != null || isReady()) {
            return false;
        }
        failure = reason;
        return true;
    }

    private void endFailed(String reason) {
        boolean tell;
        synchronized (this) {
            tell = isAnnounced;
        }
        if (tell) {
            tellAbort(reason);
        }
        end.completeExceptionally(exception(reason));
    }

    private KvException exception(String reason) {
        return new KvException(this + " failed: " + reason, null);
    }

    /** Those that have done all they had to do need no word. */
    private void tellAbort(String reason) {
        List<Peer> told = new ArrayList<>(dummies);
        synchronized (this) {
            told.addAll(owed.keySet());
        }
        byte[] abort = new KvMessage.Abort(room, token, reason).encode();
        for (Peer peer : told) {
            try {
                peer.send(KvMessage.TO_PREFILL, abort);
            } catch (IOException lost) {
                // Its loss is told to the receiver too, and ends it as a writer.
            }
        }
    }

    /** Takes a writer that owes nothing more out of the table. With the lock. */
    private boolean settle(Peer writer, Owed left) {
        if (!left.isNothing()) {
            return false;
        }
        owed.remove(writer);
        notifyAll();
        return true;
    }

    private void endIfReady() {
        boolean ready;
        synchronized (this) {
            ready = isReady();
        }
        if (ready) {
            end.complete(this);
        }
    }

    /** With the lock. */
    private boolean isReady() {
        return isQuiet() && failure == null && stagedPages == 0;
    }

    /** Nothing touches the slots any more. With the lock. */
    private boolean isQuiet() {
        return owed.isEmpty() && scatters == 0;
    }

    /** A new exception, so that its stack trace is the waiting thread's. */
    private KvException failed() {
        Throwable cause = end.exceptionNow();
        return new KvException(String.valueOf(cause.getMessage()), cause);
    }
}
