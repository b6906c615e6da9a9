package dev.verbena.transfer;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import dev.verbena.memory.RemotePool;
import dev.verbena.verbs.CompletionSource;
import dev.verbena.verbs.Endpoint;
import dev.verbena.verbs.QueuePairOptions;
import dev.verbena.verbs.VerbsException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.Queue;
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
 * does not give them back in time the queue pairs are destroyed, which has the same effect. If not
 * even that is possible it is tried again for as long once more, and the transfers that are left
 * then end with {@link TransferException#deviceLetGo} false. A failed poster takes no more batches.
 *
 * <p>Life: made over connected queue pairs, which it takes over; {@link #post}; {@link #close}.
 * Safe for use by several threads. Somebody must call {@link #progress}: a waiting thread does, and
 * a {@link Node} has a thread that does.
 */
public final class BatchPoster implements AutoCloseable {
    private static final Logger LOG = System.getLogger(BatchPoster.class.getName());
    private static final int REFUSALS_IN_A_PLAN = 16;

    /**
     * Longest message. Nothing is seen of a message until all of it is done, so one that takes as
     * long as the progress deadline would fail; and no device gains by longer ones.
     */
    private static final long LONGEST_MESSAGE = 64L << 20;

    /** Between looks while closing waits for the device. */
    private static final long CLOSING_TICK_NANOS = 50_000;

    private final PosterOptions options;
    private final long maxMessageBytes;
    private final int maxSge;
    private final Listener listener;

    private final ReentrantLock lock = new ReentrantLock();

    /** Guarded by the lock. */
    private final PosterQueues queues;

    /**
     * Transfers that have ended, to be told by whoever has given up the lock. Shared, so that a
     * callback that waits for another transfer finds the end of that one here.
     */
    private final Queue<Transfer> ended = new ConcurrentLinkedQueue<>();

    /**
     * Transfers in the order of posting, from the oldest whose end may not have been told. Guarded
     * by the lock.
     */
    private final Deque<Transfer> untold = new ArrayDeque<>();

    private final Waiters waiters = new Waiters();

    /** Whether a thread of the node makes progress, so that who waits may sleep. */
    private volatile boolean watched;

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

    /**
     * Makes a poster and posts its receives.
     *
     * @param queuePairs connected, or at least initialised and connected before the first post; at
     *     least one, all of the same {@link QueuePairOptions#sendSge}, each with room for the
     *     options' send and receive requests. The poster closes them; if this throws, the caller
     *     does
     * @param completionQueue of all their sends and receives, with room for {@link
     *     #completionsNeeded}; closed by the caller, after the poster
     * @param maxMessageBytes longest message of the port, above 0
     * @param options how to post; with more pieces in a work request than the queue pairs allow,
     *     what those allow counts
     * @param listener told of the peer's immediates and of failure
     * @throws IllegalArgumentException if something of that is not so; nothing was posted
     * @throws VerbsException if the receives cannot be posted. Verb: ibv_post_recv(3)
     */
    public BatchPoster(
            List<? extends Endpoint> queuePairs,
            CompletionSource completionQueue,
            long maxMessageBytes,
            PosterOptions options,
            Listener listener) {
        check(queuePairs, completionQueue, maxMessageBytes, options);
        this.options = options;
        this.maxMessageBytes = Math.min(maxMessageBytes, LONGEST_MESSAGE);
        this.maxSge = Math.min(options.maxSge(), queuePairs.getFirst().options().sendSge());
        this.listener = Objects.requireNonNull(listener);
        this.queues =
                new PosterQueues(
                        queuePairs, completionQueue, this.maxMessageBytes, options, ended::add);
    }

    private static void check(
            List<? extends Endpoint> queuePairs,
            CompletionSource completionQueue,
            long maxMessageBytes,
            PosterOptions options) {
        int count = queuePairs.size();
        if (count == 0 || new HashSet<>(queuePairs).size() != count) {
            throw new IllegalArgumentException(
                    "a poster needs one queue pair at least, and each once, not " + queuePairs);
        }
        if (maxMessageBytes <= 0) {
            throw new IllegalArgumentException(
                    "maxMessageBytes=" + maxMessageBytes + " must be above 0");
        }
        int sge = queuePairs.getFirst().options().sendSge();
        for (Endpoint pair : queuePairs) {
            QueuePairOptions size = pair.options();
            if (size.sendSge() != sge) {
                throw new IllegalArgumentException(
                        "%s has sendSge=%d and %s %d: a batch is cut alike for all queue pairs"
                                .formatted(queuePairs.getFirst(), sge, pair, size.sendSge()));
            }
            if (size.sendRequests() < options.sendRequests()
                    || size.receiveRequests() < options.receiveRequests()) {
                throw new IllegalArgumentException(
                        "%s has room for %d sends and %d receives, and the options ask for %d and %d"
                                .formatted(
                                        pair,
                                        size.sendRequests(),
                                        size.receiveRequests(),
                                        options.sendRequests(),
                                        options.receiveRequests()));
            }
        }
        int needed = completionsNeeded(count, options);
        if (completionQueue.entries() < needed) {
            throw new IllegalArgumentException(
                    "%s has room for %d completions, but %d queue pairs may have %d at once"
                            .formatted(completionQueue, completionQueue.entries(), count, needed));
        }
    }

    /**
     * Says how much room a poster's completion queue must have: for all work requests and receives
     * that may be outstanding, as each of them completes if its queue pair fails.
     *
     * @param queuePairs their number, at least 1
     * @param options how to post
     * @return entries of the completion queue
     * @throws IllegalArgumentException if there is no queue pair, or no queue has that many entries
     */
    public static int completionsNeeded(int queuePairs, PosterOptions options) {
        long needed = queuePairs * ((long) options.sendRequests() + options.receiveRequests());
        if (queuePairs <= 0 || needed > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "%d queue pairs of sendRequests=%d and receiveRequests=%d need %d completions"
                            .formatted(
                                    queuePairs,
                                    options.sendRequests(),
                                    options.receiveRequests(),
                                    needed));
        }
        return (int) needed;
    }

    /**
     * Posts a batch: as much as the send queues take now, the rest as they empty.
     *
     * <p>Cost: one pass over the batch to check it, then about one work request a run. Allocates
     * the handle and a cursor, nothing a block.
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
        Transfer transfer;
        try {
            WorkRequestCursor cursor = cursor(batch, local, remote);
            transfer = new Transfer(this, batch, direction, cursor, held, immediate);
        } catch (RuntimeException | Error failure) {
            BatchCheck.release(held);
            throw failure;
        }
        lock.lock();
        try {
            PosterQueues.Stop stopped = queues.stopped();
            if (stopped != null) {
                BatchCheck.release(held);
                throw new IllegalStateException(
                        "the connection has failed and takes no more transfers: "
                                + stopped.message(),
                        stopped.cause());
            }
            batch.begin(transfer);
            untold.add(transfer);
            queues.admit(transfer);
            pump();
        } finally {
            unlock();
        }
        return transfer;
    }

    /**
     * Posts what has room. Whatever that runs into, as a queue pair that somebody else has closed,
     * fails the transfers and not the caller, who may have nothing to do with them.
     */
    private void pump() {
        try {
            queues.pump();
        } catch (RuntimeException | Error failure) {
            queues.stop(FailureReason.DEVICE, "posting failed: " + failure, failure);
        }
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
        long doorbells =
                Math.ceilDiv(
                        requests, (long) Math.min(queues.share(batch), options.sendRequests()));
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
     * Takes completions, posts what has room now, and looks at the deadline. Does nothing if
     * another thread is at it.
     *
     * @return true while transfers are under way, or completions wait
     */
    public boolean progress() {
        if (!lock.tryLock()) {
            return true;
        }
        boolean more;
        try {
            boolean completionsWait = queues.takeCompletions();
            pump();
            queues.checkDeadlines(System.nanoTime());
            more = completionsWait || !queues.isIdle();
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
            // What has ended already keeps its own end, and a request that has failed is the cause.
            queues.takeCompletions();
            queues.stop(reason, message, cause);
            queues.takeCompletions();
        } finally {
            unlock();
        }
    }

    /** Gives one transfer up, as {@link Transfer#cancel} says. */
    boolean cancel(Transfer transfer, String reason) {
        lock.lock();
        try {
            // What has ended already keeps its own end.
            queues.takeCompletions();
            boolean gaveUp = queues.giveUp(transfer, FailureReason.CANCELLED, reason, null);
            // Others may have waited behind it.
            pump();
            return gaveUp;
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
            return queues.stopped() == null;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Fails the transfers under way, waits until they have ended, and destroys the queue pairs.
     * Takes at most the drain deadline. Does nothing if done already, but for a queue pair that
     * could not be destroyed, which is tried again.
     */
    @Override
    public void close() {
        fail(FailureReason.CLOSED, "this side closed the connection", null);
        long start = System.nanoTime();
        long limit = PosterOptions.nanos(options.drainDeadline());
        while (progress() && System.nanoTime() - start < limit) {
            LockSupport.parkNanos(CLOSING_TICK_NANOS);
        }
        List<Transfer> left;
        lock.lock();
        try {
            queues.close();
            left = List.copyOf(untold);
        } finally {
            unlock();
        }
        // Another thread may be about to tell an end. It waits for nobody until it has.
        for (Transfer transfer : left) {
            while (!transfer.isDone()) {
                progress();
                LockSupport.parkNanos(CLOSING_TICK_NANOS);
            }
        }
    }

    /** A thread makes progress from now on, and asks {@link #wantsEvent} before it sleeps. */
    void watched() {
        watched = true;
    }

    /** Whether the next completion must wake the thread that makes progress. */
    boolean wantsEvent() {
        return waiters.wantEvent();
    }

    /** Asks for an event at the next completion. */
    void requestNotify() {
        lock.lock();
        try {
            queues.requestNotify();
        } finally {
            lock.unlock();
        }
    }

    /** Makes progress for a caller who polls, so that no event need tell it. */
    void poll() {
        waiters.polled();
        progress();
    }

    void await(Transfer transfer, long withoutProgressNanos) throws InterruptedException {
        long patience =
                Math.min(withoutProgressNanos, PosterOptions.nanos(options.progressDeadline()));
        if (!spin(transfer)) {
            sleep(transfer, patience);
        }
        transfer.result();
    }

    private boolean spin(Transfer transfer) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        waiters.beginSpin();
        try {
            long start = System.nanoTime();
            long limit = PosterOptions.nanos(options.spin());
            while (!transfer.isDone()) {
                progress();
                if (System.nanoTime() - start > limit) {
                    return transfer.isDone();
                }
                Thread.onSpinWait();
            }
            return true;
        } finally {
            waiters.endSpin();
        }
    }

    private void sleep(Transfer transfer, long patience) throws InterruptedException {
        waiters.beginSleep();
        try {
            // The thread may be asleep since a time when somebody polled, without an event to come.
            if (watched) {
                askForEvent();
            }
            // The progress thread ends the transfer; without one this thread does, at each turn.
            long turn = watched ? Math.min(patience, 5_000_000) : 50_000;
            while (!transfer.awaitEnd(turn)) {
                progress();
                failWithoutProgress(patience);
            }
        } finally {
            waiters.endSleep();
        }
    }

    /** Asks for an event at the next completion, and takes those that came before and give none. */
    private void askForEvent() {
        lock.lock();
        try {
            queues.requestNotify();
        } catch (VerbsException failure) {
            queues.stop(FailureReason.DEVICE, failure.getMessage(), failure);
        } finally {
            unlock();
        }
        progress();
    }

    private WorkRequestCursor cursor(
            TransferBatch batch, AddressMap<Pool> local, AddressMap<RemotePool> remote) {
        return new WorkRequestCursor(batch, local, remote, maxSge, maxMessageBytes);
    }

    private void failWithoutProgress(long patienceNanos) {
        lock.lock();
        try {
            // The completions that show progress may not have been taken yet.
            queues.takeCompletions();
            pump();
            queues.stopWithoutProgress(System.nanoTime(), patienceNanos);
        } finally {
            unlock();
        }
    }

    /** Gives up the lock, then tells what happened under it: nobody is called with it held. */
    private void unlock() {
        int[] immediates = queues.takeArrived();
        PosterQueues.Stop stop = queues.takeStop();
        forgetTold();
        lock.unlock();
        for (int immediate : immediates) {
            tell(() -> listener.immediate(immediate));
        }
        if (stop != null) {
            tell(() -> listener.stopped(stop.reason(), stop.message()));
        }
        Transfer transfer;
        while ((transfer = ended.poll()) != null) {
            try {
                Callbacks.run(transfer::end);
            } catch (RuntimeException | Error failure) {
                // As when memory has run out: it is told by a later turn, behind the others.
                ended.add(transfer);
                throw failure;
            }
        }
    }

    /** A transfer that has ended stays reachable until then, for a turn of the node's thread. */
    private void forgetTold() {
        Transfer oldest;
        while ((oldest = untold.peek()) != null && oldest.isDone()) {
            untold.remove();
        }
    }

    /** Whatever a listener throws, an error too, must not keep others from being told. */
    private static void tell(Runnable listening) {
        try {
            Callbacks.run(listening);
        } catch (Throwable failure) {
            LOG.log(Level.ERROR, "a listener failed", failure);
        }
    }
}
