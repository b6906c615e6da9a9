package dev.verbena.transfer;

import dev.verbena.memory.Pool;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * One batch on its way: the handle that its poster gives back.
 *
 * <p>It ends exactly once, as done or as failed, and only when no work request of it is
 * outstanding: from then on nothing it posted touches memory, on either side. The one exception, of
 * a device that does not let go, is told by {@link TransferException#deviceLetGo}. While it is
 * under way it holds the local pools it touches, and its batch must not be changed.
 *
 * <p>Safe for use by several threads. The fields that count work requests are the poster's, which
 * touches them under its lock only.
 */
public final class Transfer {
    private final BatchPoster poster;
    private final TransferBatch batch;
    private final Direction direction;
    private final WorkRequestCursor cursor;
    private final int blocks;
    private final long bytes;
    private final List<Pool> heldPools;
    private final OptionalInt immediate;
    private final CompletableFuture<Transfer> ended = new CompletableFuture<>();

    // Guarded by the poster's lock.
    private boolean underWay;
    private boolean allPosted;
    private boolean abandoned;
    private int chainsOutstanding;
    private int immediatesPosted;
    private @Nullable Failure failure;

    /** Written under the lock only, read by anybody. */
    private volatile long bytesDone;

    /** Why a transfer fails, until its last work request has ended. */
    private static final class Failure {
        final FailureReason reason;
        final String message;
        final int block;
        final @Nullable Throwable cause;
        final BlockOutcomes outcomes;

        Failure(
                FailureReason reason,
                String message,
                int block,
                @Nullable Throwable cause,
                BlockOutcomes outcomes) {
            this.reason = reason;
            this.message = message;
            this.block = block;
            this.cause = cause;
            this.outcomes = outcomes;
        }
    }

    Transfer(
            BatchPoster poster,
            TransferBatch batch,
            Direction direction,
            WorkRequestCursor cursor,
            List<Pool> heldPools,
            OptionalInt immediate) {
        this.poster = poster;
        this.batch = batch;
        this.blocks = batch.size();
        this.bytes = batch.bytes();
        this.direction = direction;
        this.cursor = cursor;
        this.heldPools = heldPools;
        this.immediate = Objects.requireNonNull(immediate);
    }

    /**
     * Says whether the transfer has ended, well or not. Makes no progress by itself.
     *
     * @return true once it has ended
     */
    public boolean isDone() {
        return ended.isDone();
    }

    /**
     * Makes progress without waiting, and says whether the transfer is done. Meant to be called
     * again soon: who polls gets no event, so if the calls stop, an end may be told some
     * milliseconds late.
     *
     * @return true if it is done, false if it is under way
     * @throws TransferException if it has failed
     */
    public boolean poll() {
        if (!ended.isDone()) {
            poster.poll();
        }
        return ended.isDone() && result() == this;
    }

    /**
     * Waits until the transfer has ended. Spins for a moment, then sleeps. Bounded by the poster's
     * progress deadline.
     *
     * @throws TransferException if it has failed
     * @throws InterruptedException if this thread is interrupted; the transfer goes on
     */
    public void await() throws InterruptedException {
        poster.await(this, Long.MAX_VALUE);
    }

    /**
     * Waits until the transfer has ended, and fails it if its peer makes no progress for a while: a
     * shorter deadline than the poster's own. As any failure of a peer, this stops the queue pairs
     * and so ends all transfers to the peer.
     *
     * @param withoutProgress longest time without any work request of the peer completing; if
     *     longer than the poster's deadline, that one counts
     * @throws IllegalArgumentException if the time is not above 0
     * @throws TransferException if it has failed
     * @throws InterruptedException if this thread is interrupted; the transfer goes on
     */
    public void await(Duration withoutProgress) throws InterruptedException {
        if (!withoutProgress.isPositive()) {
            throw new IllegalArgumentException(withoutProgress + " is not above 0");
        }
        poster.await(this, PosterOptions.nanos(withoutProgress));
    }

    /**
     * Gives the transfer up, and nothing else: other transfers to the peer go on. Nothing more of
     * it is posted; what is in flight cannot be called back, so it ends, as failed with {@link
     * FailureReason#CANCELLED}, once that has come back, which may be before this returns. Its
     * outcomes then say which blocks were moved, perhaps all of them. An immediate reaches the peer
     * on none, some or all of its queue pairs. Does not wait; may be called from a callback.
     *
     * @param reason why, for the message of the failure: part of a sentence
     * @return true if this call gave it up, and it ends as cancelled; false if it has ended, or is
     *     failing for another cause, and this call changed nothing
     */
    public boolean cancel(String reason) {
        return poster.cancel(this, Objects.requireNonNull(reason));
    }

    /**
     * Gives the end as a stage, which completes with this transfer or with a {@link
     * TransferException}.
     *
     * <p>What hangs on the stage runs on whichever thread finds the end: the node's progress
     * thread, one that waits for a transfer to the same peer, posts one, cancels one or polls one,
     * one that closes or loses the peer; or, if the transfer has ended already, on the one that
     * adds it. It holds no lock of this library, but perhaps one of the caller's, as when it runs
     * within a post. So it should be short, since other peers may wait for that thread; it may
     * post, cancel, wait for other transfers, fill the batch anew, close the pools, and close the
     * peer or the node, which from here wait for less, as {@link Peer#close} and {@link Node#close}
     * say. It must not wait for another thread that closes one of them: that thread may wait for
     * this one.
     *
     * @return the stage
     */
    public CompletionStage<Transfer> completion() {
        return ended.minimalCompletionStage();
    }

    /**
     * Gives the failure.
     *
     * @return why it failed, or null if it is done or under way
     */
    public @Nullable TransferException failure() {
        return ended.isCompletedExceptionally() ? (TransferException) ended.exceptionNow() : null;
    }

    /**
     * Gives the batch that is moved.
     *
     * @return the batch, which refuses to be changed before the end
     */
    public TransferBatch batch() {
        return batch;
    }

    /**
     * Says which way the bytes go.
     *
     * @return the direction
     */
    public Direction direction() {
        return direction;
    }

    /**
     * Says how far the transfer has come, for a progress bar.
     *
     * @return bytes of the work requests known done
     */
    public long bytesDone() {
        return bytesDone;
    }

    @Override
    public String toString() {
        return direction + " of " + blocks + " blocks, " + bytes + " bytes";
    }

    // What follows is the poster's, under its lock.

    WorkRequestCursor cursor() {
        return cursor;
    }

    OptionalInt immediate() {
        return immediate;
    }

    /** Immediates go out on one queue pair after the other, behind all the data. */
    int immediatesPosted() {
        return immediatesPosted;
    }

    void immediatePosted() {
        immediatesPosted++;
    }

    /** Whether the poster counts the transfer as not ended. */
    boolean isUnderWay() {
        return underWay;
    }

    void underWay(boolean now) {
        underWay = now;
    }

    void chainPosted() {
        chainsOutstanding++;
    }

    void chainEnded(long bytes) {
        chainsOutstanding--;
        long before = bytesDone;
        bytesDone = before + bytes;
    }

    /** Nothing more will be posted, whether all was or the rest never will be. */
    void allPosted() {
        allPosted = true;
    }

    /** It has to end, but something of it is in flight on a queue pair that cannot be destroyed. */
    void abandon() {
        abandoned = true;
    }

    boolean isAbandoned() {
        return abandoned;
    }

    boolean isAllPosted() {
        return allPosted;
    }

    boolean isIdle() {
        return allPosted && chainsOutstanding == 0;
    }

    /** Notes the first cause; later ones are consequences of it. */
    void fail(FailureReason reason, String message, int block, @Nullable Throwable cause) {
        if (failure == null) {
            failure = new Failure(reason, message, block, cause, new BlockOutcomes(blocks));
        }
    }

    /**
     * Notes what became of a work request that did not succeed.
     *
     * @param firstOffset where in its first block it began: if not at its start, an earlier request
     *     may have moved the rest, so that the block is unknown at best
     * @param endOffset where in its last block it ended, or 0 at the block's end: if inside, a
     *     later request, on another queue pair, may have moved the rest
     */
    void requestLost(
            int firstBlock, long firstOffset, int endBlock, long endOffset, boolean mayHaveMoved) {
        Failure known = failure;
        if (known == null) {
            throw new IllegalStateException("a work request was lost, but the transfer not failed");
        }
        if (mayHaveMoved) {
            known.outcomes.unknown(firstBlock, endBlock);
            return;
        }
        known.outcomes.notDone(firstBlock, endBlock);
        if (firstOffset > 0) {
            known.outcomes.unknown(firstBlock, firstBlock + 1);
        }
        if (endOffset > 0) {
            known.outcomes.unknown(endBlock - 1, endBlock);
        }
    }

    boolean isFailing() {
        return failure != null;
    }

    /** Lets go of the pools: nothing is outstanding any more. */
    void releasePools() {
        BatchCheck.release(heldPools);
    }

    /** Tells the end; called once, without the lock, when nothing is outstanding. */
    void end() {
        TransferException failed = failure == null ? null : exception(failure);
        // Before the end is told: whoever hears of it may fill the batch anew.
        batch.end(this);
        if (failed == null) {
            ended.complete(this);
        } else {
            ended.completeExceptionally(failed);
        }
    }

    private TransferException exception(Failure failed) {
        requestLost(cursor.block(), cursor.offset(), blocks, 0, false);
        String message;
        try {
            message = describe(failed);
        } catch (RuntimeException unsayable) {
            // As by a batch that somebody changed: the end must be told all the same.
            message = this + " failed: " + failed.message;
        }
        return new TransferException(
                failed.reason, message, failed.block, failed.outcomes, !abandoned, failed.cause);
    }

    private String describe(Failure failed) {
        StringBuilder text = new StringBuilder(toString());
        text.append(" failed");
        if (failed.block >= 0) {
            text.append(" at block ")
                    .append(failed.block)
                    .append(" (")
                    .append(batch.describe(failed.block))
                    .append(')');
        }
        text.append(": ").append(failed.message).append("; ").append(failed.reason.advice());
        if (abandoned) {
            text.append("; its queue pair could not be destroyed, so the device may still move")
                    .append(" blocks whose outcome is unknown, and the pools stay held");
        }
        return text.toString();
    }

    /** Waits for the end for at most so long; does not make progress. */
    boolean awaitEnd(long nanos) throws InterruptedException {
        try {
            ended.get(nanos, TimeUnit.NANOSECONDS);
            return true;
        } catch (TimeoutException notYet) {
            return false;
        } catch (ExecutionException failed) {
            return true;
        }
    }

    /** The transfer if it is done; throws if it failed. Only once it has ended. */
    Transfer result() {
        TransferException failed = failure();
        if (failed != null) {
            throw failed;
        }
        return this;
    }
}
