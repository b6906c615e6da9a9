package dev.verbena.kv;

import dev.verbena.transfer.Peer;
import dev.verbena.transfer.Transfer;
import dev.verbena.transfer.TransferBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * A request on the prefill side: chunks of pages, written as prefill produces them.
 *
 * <p>It ends once: done when the last chunk has been acknowledged, or failed. The decode side is
 * told that it failed only when all that was written has been acknowledged, so that it may use the
 * pages again. Where a transfer failed, packets of it may still be on the wire: then nothing is
 * said, as the connection has failed with it, and the decode side counts the writer as ended once
 * its own queue pairs are gone.
 *
 * <p>Life: {@link KvSender#begin}, {@link #chunk} any number of times, {@link #last}, {@link
 * #await}, {@link #close}. Chunks are for one thread at a time; the rest is safe for any.
 */
public final class KvSend implements AutoCloseable {
    private static final String CLOSED_EARLY =
            "the prefill side closed the request before its last chunk";

    private final KvSender sender;
    private final Peer peer;
    private final KvPools prefillPools;
    private final KvPools decodePools;
    private final long room;
    private final int token;
    private final int[] decodePages;
    private final CompletableFuture<KvSend> end = new CompletableFuture<>();

    // Guarded by this.
    private final List<Transfer> transfers = new ArrayList<>();
    private int pagesGiven;
    private boolean lastGiven;
    private int inFlight;
    private @Nullable String failure;
    private @Nullable Throwable failureCause;
    private boolean abortedByDecode;
    private boolean transferFailed;
    private boolean closing;
    private boolean told;

    KvSend(
            KvSender sender,
            Peer peer,
            KvPools prefillPools,
            KvPools decodePools,
            KvMessage.Announce announce) {
        this.sender = sender;
        this.peer = peer;
        this.prefillPools = prefillPools;
        this.decodePools = decodePools;
        this.room = announce.room();
        this.token = announce.token();
        this.decodePages = announce.pages();
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
     * Gives the decode node that waits for the request.
     *
     * @return the peer
     */
    public Peer peer() {
        return peer;
    }

    /**
     * Says how many pages the decode side has set aside.
     *
     * @return pages that all chunks together must have
     */
    public int pages() {
        return decodePages.length;
    }

    /**
     * Writes a chunk, behind those before it. Does not wait.
     *
     * @param prefillPages pages of this side, in the order of the request's tokens; not kept
     * @return the transfer
     * @throws IllegalArgumentException if the request has fewer pages, or a page is outside the
     *     pools; the request goes on
     * @throws IllegalStateException if the last chunk was given already
     * @throws KvException if the request has failed
     */
    public Transfer chunk(int[] prefillPages) {
        return post(prefillPages, false);
    }

    /**
     * Writes the last chunk, and behind it the word that the request is ready. Does not wait.
     *
     * @param prefillPages as {@link #chunk}; may be empty
     * @return the transfer
     * @throws IllegalArgumentException as {@link #chunk}, or if pages of the request are left over
     * @throws IllegalStateException if the last chunk was given already
     * @throws KvException if the request has failed
     */
    public Transfer last(int[] prefillPages) {
        return post(prefillPages, true);
    }

    /**
     * Gives the request up: no more is posted, and once nothing is in flight the decode side is
     * told why. Does nothing if it has ended.
     *
     * @param reason for the decode side
     */
    public void fail(String reason) {
        fail(reason, null);
    }

    /**
     * Waits until the request has ended. Bounded by the peer's progress deadline, once the last
     * chunk is given.
     *
     * @throws KvException if it failed: a transfer failed, or the decode side aborted
     * @throws InterruptedException if this thread is interrupted; the request goes on
     */
    public void await() throws InterruptedException {
        List<Transfer> pending;
        synchronized (this) {
            pending = List.copyOf(transfers);
        }
        for (Transfer transfer : pending) {
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
     * Ends the request: one that has not been given its last chunk is failed. Waits until nothing
     * of it is in flight, bounded as {@link #await}; this thread's interrupt flag is kept.
     */
    @Override
    public void close() {
        boolean complete;
        synchronized (this) {
            complete = lastGiven;
            closing = true;
        }
        if (!complete) {
            fail(CLOSED_EARLY);
        }
        boolean interrupted = false;
        while (!end.isDone()) {
            try {
                await();
            } catch (KvException ended) {
                break;
            } catch (InterruptedException later) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public String toString() {
        return "send of room " + room + " to " + peer;
    }

    boolean isOf(Peer decode, int announcedToken) {
        return peer.equals(decode) && token == announcedToken;
    }

    /** The decode side gives the request up, and waits for an answer. */
    void aborted(String reason) {
        boolean over;
        synchronized (this) {
            over = told;
            abortedByDecode |= !over && failure == null;
        }
        if (over) {
            // It ended before it heard of this, and nothing of it is in flight.
            KvSender.answer(peer, new KvMessage.Ended(room, token));
        } else {
            fail(reason, null);
        }
    }

    /** The peer is lost, and nothing to it is in flight: a complete request has its end already. */
    void lost(String reason) {
        synchronized (this) {
            if (lastGiven) {
                return;
            }
        }
        fail(peer + " is lost: " + reason, null);
    }

    private Transfer post(int[] prefillPages, boolean last) {
        int first;
        synchronized (this) {
            checkOpen(prefillPages.length, last);
            first = pagesGiven;
            pagesGiven += prefillPages.length;
            lastGiven = last;
            // From here on the request does not end before the transfer that is about to begin.
            inFlight++;
        }
        // Not under the lock: posting may tell the ends of other requests' transfers, which take
        // their locks.
        Transfer transfer;
        try {
            transfer = write(first, prefillPages, last);
        } catch (IllegalStateException lost) {
            postEnded(lost, false);
            throw failedException();
        } catch (RuntimeException | Error refused) {
            withdraw(prefillPages.length);
            throw refused;
        }
        synchronized (this) {
            transfers.removeIf(Transfer::isDone);
            transfers.add(transfer);
        }
        transfer.completion().whenComplete((done, failed) -> postEnded(failed, true));
        return transfer;
    }

    private Transfer write(int first, int[] prefillPages, boolean last) {
        int[] slots = Arrays.copyOfRange(decodePages, first, first + prefillPages.length);
        TransferBatch batch = PagePlanner.plan(prefillPools, decodePools, prefillPages, slots);
        return last ? peer.write(batch, token) : peer.write(batch);
    }

    /** Takes a chunk back that was refused before anything of it was posted. */
    private void withdraw(int pages) {
        synchronized (this) {
            pagesGiven -= pages;
            lastGiven = false;
            inFlight--;
            if (closing) {
                note(CLOSED_EARLY, null);
            }
        }
        endIfQuiet();
    }

    private void checkOpen(int pages, boolean last) {
        if (failure != null) {
            throw failedException();
        }
        if (lastGiven) {
            throw new IllegalStateException(this + " was given its last chunk already");
        }
        int left = decodePages.length - pagesGiven;
        if (pages > left || (last && pages < left)) {
            throw new IllegalArgumentException(
                    "%s: a %s of %d pages, but %d of %d pages are left"
                            .formatted(
                                    this,
                                    last ? "last chunk" : "chunk",
                                    pages,
                                    left,
                                    decodePages.length));
        }
    }

    private void postEnded(@Nullable Throwable failed, boolean posted) {
        synchronized (this) {
            inFlight--;
            if (failed != null) {
                // In one step with the count, or another thread might see a quiet, sound request.
                transferFailed |= posted;
                note(String.valueOf(failed.getMessage()), failed);
            }
        }
        endIfQuiet();
    }

    private void fail(String reason, @Nullable Throwable cause) {
        synchronized (this) {
            note(reason, cause);
        }
        endIfQuiet();
    }

    /** Notes the first failure, unless the request has ended; with the lock. */
    private void note(String reason, @Nullable Throwable cause) {
        if (failure == null && !told) {
            failure = reason;
            failureCause = cause;
        }
    }

    /** Ends the request once nothing is in flight, and tells the decode side if it failed. */
    private void endIfQuiet() {
        String reason;
        boolean answer;
        boolean aborted;
        synchronized (this) {
            boolean over = failure != null || lastGiven;
            if (!over || inFlight > 0 || told) {
                return;
            }
            told = true;
            reason = failure;
            answer = !transferFailed;
            aborted = abortedByDecode;
        }
        answer |= peer.isOpen();
        sender.forget(this);
        if (reason == null) {
            end.complete(this);
            return;
        }
        if (answer) {
            KvSender.answer(
                    peer,
                    aborted
                            ? new KvMessage.Ended(room, token)
                            : new KvMessage.Failed(room, token, reason));
        }
        end.completeExceptionally(failedException());
    }

    private synchronized KvException failedException() {
        String side = abortedByDecode ? "aborted by the decode side: " : "failed: ";
        return new KvException(this + " " + side + failure, failureCause);
    }

    private static void awaitQuietly(Transfer transfer) throws InterruptedException {
        try {
            transfer.await();
        } catch (RuntimeException failed) {
            // Told by the end of the request.
        }
    }
}
