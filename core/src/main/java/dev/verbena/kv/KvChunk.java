package dev.verbena.kv;

import dev.verbena.transfer.Transfer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * A chunk of a request on its way to every decode rank that takes part: the handle that {@link
 * KvSend} gives back.
 *
 * <p>It ends once, when nothing of it is in flight: from then on its source pages may be reused.
 *
 * <p>Safe for use by several threads.
 */
public final class KvChunk {
    private final CompletableFuture<KvChunk> end = new CompletableFuture<>();

    // Guarded by this.
    private final List<Transfer> transfers = new ArrayList<>();

    /** What keeps it from ending: what is under way, and the request while it posts it. */
    private int holds = 1;

    private @Nullable KvException failure;

    KvChunk() {}

    /**
     * Says whether the chunk has ended, well or not.
     *
     * @return true once its source pages may be reused
     */
    public boolean isDone() {
        return end.isDone();
    }

    /**
     * Waits until the chunk has ended. Bounded by the peers' progress deadline.
     *
     * @throws KvException if it failed
     * @throws InterruptedException if this thread is interrupted; the chunk goes on
     */
    public void await() throws InterruptedException {
        // A thread that waits for a transfer makes progress by itself, which is quicker.
        for (Transfer transfer : transfers()) {
            awaitQuietly(transfer);
        }
        try {
            end.get();
        } catch (ExecutionException failed) {
            Throwable cause = end.exceptionNow();
            throw new KvException(String.valueOf(cause.getMessage()), cause);
        }
    }

    /**
     * Gives the end as a stage, which completes with this chunk, or with a {@link KvException}.
     * What hangs on it runs on any thread that makes progress for a peer, and should be short.
     *
     * @return the stage
     */
    public CompletionStage<KvChunk> completion() {
        return end.minimalCompletionStage();
    }

    /**
     * Lists the transfers that move the chunk: one a batch and decode rank.
     *
     * @return those posted so far
     */
    public synchronized List<Transfer> transfers() {
        return List.copyOf(transfers);
    }

    synchronized void add(Transfer transfer) {
        transfers.add(transfer);
    }

    synchronized void hold() {
        holds++;
    }

    /** Gives a hold up, with a failure if there was one; the last one ends the chunk. */
    void release(@Nullable KvException failed) {
        KvException first;
        synchronized (this) {
            if (failure == null) {
                failure = failed;
            }
            if (--holds > 0) {
                return;
            }
            first = failure;
        }
        if (first == null) {
            end.complete(this);
        } else {
            end.completeExceptionally(first);
        }
    }

    static void awaitQuietly(Transfer transfer) throws InterruptedException {
        try {
            transfer.await();
        } catch (RuntimeException failed) {
            // Told by the end of what it is part of.
        }
    }
}
