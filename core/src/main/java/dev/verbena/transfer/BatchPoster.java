package dev.verbena.transfer;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import dev.verbena.memory.RemotePool;
import dev.verbena.verbs.CompletionQueue;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.QueuePair;
import dev.verbena.verbs.VerbsException;
import dev.verbena.verbs.WorkCompletions;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Posts batches of any size to one peer over its queue pairs, and brings each to exactly one end.
 *
 * <p>A batch is cut into work requests as the send queues have room, so memory stays flat however
 * long it is. Batches are posted in the order of handing over; those under way share the queues.
 *
 * <p>Failure: the first work request that fails, the first post that is refused for good, a lack of
 * progress, or {@link #fail} stops all queue pairs. Every transfer under way then fails with that
 * cause, each as soon as its last work request has come back; none is told before. If the device
 * does not give them back in time the queue pairs are destroyed, which has the same effect. A failed
 * poster takes no more batches.
 *
 * <p>Life: made over connected queue pairs, which it takes over; {@link #post}; {@link #close}. Safe
 * for use by several threads. Somebody must call {@link #progress}: a waiting thread does, and a
 * {@link Node} has a thread that does.
 */
public final class BatchPoster implements AutoCloseable {
    private static final Logger LOG = System.getLogger(BatchPoster.class.getName());
    private static final int[] NO_IMMEDIATES = {};

    private static final int COMPLETIONS_A_POLL = 64;
    private static final int REFUSALS_IN_A_PLAN = 16;

    /**
     * Completions taken before others get their turn: a peer that sends immediates without end must
     * cost neither memory nor the deadlines.
     */
    private static final int COMPLETIONS_A_TURN = 1 << 14;

    /**
     * Longest message. Nothing is seen of a message until all of it is done, so one that takes as
     * long as the progress deadline would fail; and no device gains by longer ones.
     */
    private static final long LONGEST_MESSAGE = 64L << 20;

    /** Between looks while closing waits for the device. */
    private static final long CLOSING_TICK_NANOS = 50_000;

    private final PosterOptions options;
    private final CompletionQueue completionQueue;
    private final SendQueue[] sends;
    private final ReceiveQueue[] receives;
    private final long maxMessageBytes;
    private final Listener listener;

    private final ReentrantLock lock = new ReentrantLock();
    private final WorkCompletions completions = new WorkCompletions(COMPLETIONS_A_POLL);

    /** Transfers with something left to post, in order. */
    private final ArrayDeque<Transfer> waiting = new ArrayDeque<>();

    /** Transfers that have not ended. */
    private final Set<Transfer> underWay = new HashSet<>();

    /**
     * Transfers that have ended, to be told by whoever has given up the lock. Shared, so that a
     * callback that waits for another transfer finds the end of that one here.
     */
    private final Queue<Transfer> ended = new ConcurrentLinkedQueue<>();

    /** Transfers whose end has not been told. */
    private final Set<Transfer> untold = ConcurrentHashMap.newKeySet();

    private int nextQueue;
    private long lastProgressNanos;
    private @Nullable Stop stop;
    private @Nullable Stop stopToTell;
    private boolean closed;

    private int[] arrived = new int[COMPLETIONS_A_POLL];
    private int arrivedCount;

    private volatile @Nullable ProgressThread progressThread;

    /** Told what happens apart from transfers, on the thread that makes progress. */
    public interface Listener {
        /**
         * The peer has sent an immediate.
         *
         * @param immediate the 32 bits
         */
        void immediate(int immediate);

        /**
         * The poster has failed, for the first cause. Called once; transfers may still be ending.
         *
         * @param reason coarse cause
         * @param message what happened
         */
        void stopped(FailureReason reason, String message);
    }

    /** Why and when the queue pairs were stopped. */
    private record Stop(
            FailureReason reason, String message, @Nullable Throwable cause, long atNanos) {}

    /**
     * Makes a poster and posts its receives.
     *
     * @param queuePairs connected, or at least initialised and connected before the first post; the
     *     poster closes them
     * @param completionQueue of all their sends and receives, with room for all of them; closed by
     *     the caller, after the poster
     * @param maxMessageBytes longest message of the port
     * @param options how to post
     * @param listener told of the peer's immediates and of failure
     */
    public BatchPoster(
            List<QueuePair> queuePairs,
            CompletionQueue completionQueue,
            long maxMessageBytes,
            PosterOptions options,
            Listener listener) {
        this.options = options;
        this.completionQueue = completionQueue;
        this.maxMessageBytes = Math.min(maxMessageBytes, LONGEST_MESSAGE);
        this.listener = listener;
        this.sends = new SendQueue[queuePairs.size()];
        this.receives = new ReceiveQueue[queuePairs.size()];
        int made = 0;
        try {
            for (QueuePair pair : queuePairs) {
                int sge = pair.options().sendSge();
                sends[made] = new SendQueue(made, pair, options.sendRequests(), sge);
                receives[made] = new ReceiveQueue(made, pair, options.receiveRequests());
                made++;
                receives[made - 1].postAll();
            }
        } catch (RuntimeException failure) {
            // The queue pairs go first, as receives of theirs may be posted.
            for (int i = 0; i < made; i++) {
                sends[i].close();
                receives[i].close();
            }
            completions.close();
            throw failure;
        }
    }

    /** How many completions the queue of so many queue pairs must have room for. */
    static int completionsNeeded(int queuePairs, PosterOptions options) {
        return queuePairs * (options.sendRequests() + options.receiveRequests());
    }

    /**
     * Posts a batch: as much as the send queues take now, the rest as they empty.
     *
     * <p>Cost: one pass over the batch to check it, then about one work request a run. Allocates the
     * handle and a cursor, nothing a block.
     *
     * @param direction which way the bytes go
     * @param batch the blocks; unchanged by the caller until the transfer has ended
     * @param local table of this side's pools
     * @param remote table of the peer's pools
     * @param immediate if present, sent to the peer on every queue pair behind all data
     * @return the transfer, under way or already ended
     * @throws IllegalArgumentException if a block is refused; the message names it, and nothing was
     *     posted
     * @throws IllegalStateException if the poster has failed or is closed, or a pool was closed
     */
    public Transfer post(
            Direction direction,
            TransferBatch batch,
            AddressMap<Pool> local,
            AddressMap<RemotePool> remote,
            OptionalInt immediate) {
        List<Pool> held = new BatchCheck(batch, direction, local, remote).holdPools();
        WorkRequestCursor cursor = cursor(batch, local, remote);
        Transfer transfer = new Transfer(this, batch, direction, cursor, held, immediate);
        lock.lock();
        try {
            Stop stopped = stop;
            if (stopped != null) {
                BatchCheck.release(held);
                throw new IllegalStateException(
                        "the connection has failed and takes no more transfers: "
                                + stopped.message,
                        stopped.cause);
            }
            if (underWay.isEmpty()) {
                lastProgressNanos = System.nanoTime();
            }
            underWay.add(transfer);
            untold.add(transfer);
            waiting.add(transfer);
            pump();
        } finally {
            unlock();
        }
        return transfer;
    }

    /**
     * Says what posting a batch would do, without posting.
     *
     * @param direction which way the bytes would go
     * @param batch the blocks
     * @param local table of this side's pools
     * @param remote table of the peer's pools
     * @return the plan, which also names blocks that would be refused
     */
    public TransferPlan plan(
            Direction direction,
            TransferBatch batch,
            AddressMap<Pool> local,
            AddressMap<RemotePool> remote) {
        List<TransferPlan.Refusal> refused =
                new BatchCheck(batch, direction, local, remote).refusals(REFUSALS_IN_A_PLAN);
        if (!refused.isEmpty()) {
            return new TransferPlan(batch.size(), 0, 0, 0, 0, batch.bytes(), 0, refused);
        }
        WorkRequestCursor cursor = cursor(batch, local, remote);
        long requests = 0;
        long pieces = 0;
        long longest = 0;
        while (cursor.next()) {
            requests++;
            pieces += cursor.pieces();
            longest = Math.max(longest, cursor.bytes());
        }
        long doorbells = Math.ceilDiv(requests, (long) Math.min(share(batch), options.sendRequests()));
        return new TransferPlan(
                batch.size(),
                batch.runs(),
                requests,
                pieces,
                doorbells,
                batch.bytes(),
                longest,
                List.of());
    }

    /**
     * Takes completions, posts what has room now, and looks at the deadline. Does nothing if another
     * thread is at it.
     *
     * @return true while transfers are under way, or completions wait
     */
    public boolean progress() {
        if (!lock.tryLock()) {
            return true;
        }
        boolean more;
        try {
            boolean completionsWait = takeCompletions();
            pump();
            checkDeadlines(System.nanoTime());
            more = completionsWait || !underWay.isEmpty();
        } finally {
            unlock();
        }
        return more;
    }

    /**
     * Stops the queue pairs and fails all transfers under way, with a cause that the caller knows.
     * Does nothing if the poster has failed already.
     *
     * @param reason coarse cause
     * @param message what happened, part of a sentence
     * @param cause the exception behind it, or null
     */
    public void fail(FailureReason reason, String message, @Nullable Throwable cause) {
        lock.lock();
        try {
            stop(reason, message, cause);
            takeCompletions();
        } finally {
            unlock();
        }
    }

    /**
     * Says whether the poster takes batches.
     *
     * @return false once it has failed or is closed
     */
    public boolean isOpen() {
        lock.lock();
        try {
            return stop == null;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Fails the transfers under way, waits until they have ended, and destroys the queue pairs. Takes
     * at most the drain deadline. Does nothing if done already.
     */
    @Override
    public void close() {
        fail(FailureReason.CLOSED, "this side closed the connection", null);
        long deadline = System.nanoTime() + options.drainDeadline().toNanos();
        while (progress() && System.nanoTime() - deadline < 0) {
            LockSupport.parkNanos(CLOSING_TICK_NANOS);
        }
        lock.lock();
        try {
            if (!closed) {
                closed = true;
                destroyQueuePairs();
                for (ReceiveQueue receive : receives) {
                    receive.close();
                }
                completions.close();
            }
        } finally {
            unlock();
        }
        // Another thread may be about to tell an end. It waits for nobody until it has.
        for (Transfer transfer : untold) {
            while (!transfer.isDone()) {
                progress();
                LockSupport.parkNanos(CLOSING_TICK_NANOS);
            }
        }
    }

    void progressThread(ProgressThread thread) {
        progressThread = thread;
    }

    /** Asks for an event at the next completion. */
    void requestNotify() {
        lock.lock();
        try {
            if (!closed) {
                completionQueue.requestNotify();
            }
        } finally {
            lock.unlock();
        }
    }

    void await(Transfer transfer, long withoutProgressNanos) throws InterruptedException {
        long patience = Math.min(withoutProgressNanos, options.progressDeadline().toNanos());
        ProgressThread thread = progressThread;
        if (!spin(transfer, thread)) {
            // The progress thread ends the transfer; without one this thread does, at each turn.
            long turn = thread == null ? 50_000 : Math.min(patience, 5_000_000);
            while (!transfer.awaitEnd(turn)) {
                progress();
                failWithoutProgress(patience);
            }
        }
        transfer.result();
    }

    private boolean spin(Transfer transfer, @Nullable ProgressThread thread)
            throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        if (thread != null) {
            thread.beginSpin();
        }
        try {
            long start = System.nanoTime();
            long limit = options.spin().toNanos();
            while (!transfer.isDone()) {
                progress();
                if (System.nanoTime() - start > limit) {
                    return transfer.isDone();
                }
                Thread.onSpinWait();
            }
            return true;
        } finally {
            if (thread != null) {
                thread.endSpin();
            }
        }
    }

    private WorkRequestCursor cursor(
            TransferBatch batch, AddressMap<Pool> local, AddressMap<RemotePool> remote) {
        int sge = sends[0].queuePair().options().sendSge();
        return new WorkRequestCursor(batch, local, remote, sge, maxMessageBytes);
    }

    // --- Posting; the lock is held ---

    /** Posts as much of the waiting transfers as there is room for. */
    private void pump() {
        while (stop == null && !waiting.isEmpty()) {
            Transfer transfer = waiting.element();
            if (!transfer.cursor().atEnd()) {
                SendQueue queue = queueWithRoom();
                if (queue == null || !posted(transfer, queue)) {
                    return;
                }
            } else if (owesImmediates(transfer)) {
                SendQueue queue = sends[transfer.immediatesPosted()];
                if (queue.room() == 0) {
                    return;
                }
                int immediate = transfer.immediate().getAsInt();
                if (!accepted(transfer, queue, queue.postImmediate(transfer, immediate))) {
                    return;
                }
                transfer.immediatePosted();
            } else {
                waiting.remove();
                transfer.allPosted();
                endIfIdle(transfer);
            }
        }
    }

    /** Posts to one queue. False if posting must pause. */
    private boolean posted(Transfer transfer, SendQueue queue) {
        int limit = Math.min(queue.room(), share(transfer.batch()));
        SendQueue.Posted posted;
        try {
            posted = queue.post(transfer, limit);
        } catch (IndexOutOfBoundsException changed) {
            giveUp(transfer, queue, changed);
            return true;
        }
        return accepted(transfer, queue, posted);
    }

    /** Fails one transfer whose blocks are no longer those that were checked; others go on. */
    private void giveUp(Transfer transfer, SendQueue queue, RuntimeException changed) {
        String message = "the batch was changed while it was under way";
        transfer.fail(FailureReason.POST_REFUSED, message, -1, changed);
        queue.postDrainMarker();
        waiting.remove(transfer);
        transfer.allPosted();
        endIfIdle(transfer);
    }

    /** With several queue pairs a batch is dealt out in shares, so that all of them work on it. */
    private int share(TransferBatch batch) {
        if (sends.length == 1) {
            return options.chainRequests();
        }
        long requests = batch.size() + batch.bytes() / maxMessageBytes;
        long share = Math.ceilDiv(requests, (long) sends.length);
        return (int) Math.min(options.chainRequests(), Math.max(share, 1));
    }

    /**
     * Goes round the queues, so that each gets its turn; but first one whose last chain was taken in
     * part, as what it took completes with what comes behind.
     */
    private @Nullable SendQueue queueWithRoom() {
        for (SendQueue queue : sends) {
            if (queue.endsUnsignaled()) {
                return queue;
            }
        }
        for (int i = 0; i < sends.length; i++) {
            SendQueue queue = sends[nextQueue];
            nextQueue = (nextQueue + 1) % sends.length;
            if (queue.room() > 0) {
                return queue;
            }
        }
        return null;
    }

    private boolean owesImmediates(Transfer transfer) {
        return transfer.immediate().isPresent() && transfer.immediatesPosted() < sends.length;
    }

    /** False if posting must pause: the driver's queue is full, or it refused for good. */
    private boolean accepted(Transfer transfer, SendQueue queue, SendQueue.Posted posted) {
        if (posted == SendQueue.Posted.REFUSED) {
            QueuePair pair = queue.queuePair();
            VerbsException cause =
                    new VerbsException("ibv_post_send", pair.postErrno(), pair.toString());
            transfer.fail(
                    FailureReason.POST_REFUSED, cause.getMessage(), queue.refusedBlock(), cause);
            stop(FailureReason.POST_REFUSED, cause.getMessage(), cause);
        }
        return posted == SendQueue.Posted.ALL;
    }

    // --- Completions; the lock is held ---

    /** True if it left some for the next turn. */
    private boolean takeCompletions() {
        if (closed) {
            return false;
        }
        try {
            int taken = 0;
            while (completionQueue.poll(completions) > 0) {
                for (int i = 0; i < completions.count(); i++) {
                    take(i);
                }
                taken += completions.count();
                if (taken >= COMPLETIONS_A_TURN) {
                    return true;
                }
            }
        } catch (VerbsException failure) {
            stop(FailureReason.DEVICE, failure.getMessage(), failure);
        }
        return false;
    }

    private void take(int index) {
        long identity = completions.workRequestId(index);
        CompletionStatus status = completions.status(index);
        if (ReceiveQueue.isReceive(identity)) {
            takeReceive(ReceiveQueue.queueOf(identity), index, status);
            return;
        }
        SendQueue queue = sends[SendQueue.queueOf(identity)];
        long position = queue.positionOf(identity);
        if (position < 0) {
            return;
        }
        lastProgressNanos = System.nanoTime();
        if (status == CompletionStatus.SUCCESS) {
            queue.retireBefore(position + 1);
        } else {
            // Requests complete in order, and a failed one always does: all before it are done.
            queue.retireBefore(position);
            endChains(queue);
            if (stop == null) {
                String message = describe(index, status, queue);
                int block = queue.oldestBlock();
                queue.oldest().fail(FailureReason.WORK_REQUEST, message, block, null);
                stop(FailureReason.WORK_REQUEST, message, null);
            }
            failWithStop(queue.oldest());
            queue.loseOldest(status);
        }
        endChains(queue);
    }

    private void takeReceive(int queue, int index, CompletionStatus status) {
        if (status != CompletionStatus.SUCCESS) {
            // Receives are only flushed, by a queue pair that has stopped.
            String message = "the queue pair stopped: " + status.explanation();
            stop(FailureReason.PEER_LOST, message, null);
            return;
        }
        if (completions.hasImmediate(index)) {
            if (arrivedCount == arrived.length) {
                arrived = Arrays.copyOf(arrived, 2 * arrivedCount);
            }
            arrived[arrivedCount++] = completions.immediate(index);
        }
        if (stop == null) {
            try {
                receives[queue].take();
            } catch (VerbsException failure) {
                stop(FailureReason.DEVICE, failure.getMessage(), failure);
            }
        }
    }

    private String describe(int index, CompletionStatus status, SendQueue queue) {
        return "work request completed with %s (status %d, vendor code 0x%x) on %s: %s"
                .formatted(
                        status,
                        completions.statusNumber(index),
                        completions.vendorError(index),
                        queue.queuePair(),
                        status.explanation());
    }

    private void endChains(SendQueue queue) {
        Transfer transfer;
        while ((transfer = queue.takeEndedChain()) != null) {
            endIfIdle(transfer);
        }
    }

    /** Ends a transfer that has nothing in flight and nothing left to post. */
    private void endIfIdle(Transfer transfer) {
        if (transfer.isIdle() && underWay.remove(transfer)) {
            // Before the end is told: whoever hears of it may close the pools.
            transfer.releasePools();
            ended.add(transfer);
        }
    }

    // --- Failure; the lock is held ---

    /** Stops the queue pairs and takes nothing more; what is in flight comes back as flushed. */
    private void stop(FailureReason reason, String message, @Nullable Throwable cause) {
        if (stop != null) {
            return;
        }
        stop = new Stop(reason, message, cause, System.nanoTime());
        stopToTell = stop;
        for (SendQueue queue : sends) {
            try {
                queue.queuePair().stop();
                queue.postDrainMarker();
            } catch (VerbsException | IllegalStateException failure) {
                // The drain deadline then destroys the queue pair, which stops it as well.
                LOG.log(Level.WARNING, "could not stop a queue pair", failure);
            }
        }
        while (!waiting.isEmpty()) {
            Transfer transfer = waiting.remove();
            failWithStop(transfer);
            transfer.allPosted();
            endIfIdle(transfer);
        }
    }

    private void failWithStop(Transfer transfer) {
        Stop stopped = Objects.requireNonNull(stop);
        transfer.fail(stopped.reason, stopped.message, -1, stopped.cause);
    }

    private void checkDeadlines(long now) {
        Stop stopped = stop;
        if (stopped == null) {
            stopWithoutProgress(now, options.progressDeadline().toNanos());
        } else if (!underWay.isEmpty()
                && now - stopped.atNanos > options.drainDeadline().toNanos()) {
            destroyQueuePairs();
        }
    }

    private void stopWithoutProgress(long now, long patienceNanos) {
        if (!underWay.isEmpty() && now - lastProgressNanos > patienceNanos) {
            stop(
                    FailureReason.DEADLINE,
                    "no work request completed for " + Duration.ofNanos(patienceNanos),
                    null);
        }
    }

    private void failWithoutProgress(long patienceNanos) {
        lock.lock();
        try {
            // The completions that show progress may not have been taken yet.
            takeCompletions();
            pump();
            stopWithoutProgress(System.nanoTime(), patienceNanos);
        } finally {
            unlock();
        }
    }

    /** After this the device touches no memory for them, whatever it still had to do. */
    private void destroyQueuePairs() {
        for (SendQueue queue : sends) {
            try {
                queue.close();
            } catch (VerbsException failure) {
                LOG.log(Level.ERROR, "could not destroy a queue pair", failure);
            }
            while (!queue.isEmpty()) {
                failWithStop(queue.oldest());
                queue.loseOldestUnseen();
                endChains(queue);
            }
        }
    }

    /** Gives up the lock, then tells what happened under it: nobody is called with it held. */
    private void unlock() {
        int[] values = NO_IMMEDIATES;
        if (arrivedCount > 0) {
            values = Arrays.copyOf(arrived, arrivedCount);
            arrivedCount = 0;
        }
        Stop newStop = stopToTell;
        stopToTell = null;
        lock.unlock();
        for (int value : values) {
            tell(() -> listener.immediate(value));
        }
        if (newStop != null) {
            tell(() -> listener.stopped(newStop.reason, newStop.message));
        }
        Transfer transfer;
        while ((transfer = ended.poll()) != null) {
            transfer.end();
            untold.remove(transfer);
        }
    }

    /** Whatever a listener throws, an error too, must not keep others from being told. */
    private static void tell(Runnable listening) {
        try {
            listening.run();
        } catch (Throwable failure) {
            LOG.log(Level.ERROR, "a listener failed", failure);
        }
    }
}
