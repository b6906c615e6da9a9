package dev.verbena.transfer;

import dev.verbena.verbs.CompletionSource;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.Endpoint;
import dev.verbena.verbs.VerbsException;
import dev.verbena.verbs.WorkCompletions;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * What a {@link BatchPoster} guards by its lock: the queues of one peer, the transfers under way,
 * and the one stop. It posts, takes completions and fails, and tells nobody: what has happened is
 * collected, and handed out by the {@code take} methods.
 *
 * <pre>
 *   admit ---&gt; waiting ---&gt; posted, in flight ---&gt; ended
 *                 \-------------- stop -------------/
 * </pre>
 *
 * <p>Not thread-safe. Calls nothing outside this package's transfer and the verbs.
 */
final class PosterQueues {
    /** Why and when the queue pairs were stopped. */
    record Stop(FailureReason reason, String message, @Nullable Throwable cause, long atNanos) {}

    private static final Logger LOG = System.getLogger(PosterQueues.class.getName());
    private static final int[] NO_IMMEDIATES = {};

    private static final int COMPLETIONS_A_POLL = 64;

    /**
     * Completions taken before others get their turn: a peer that sends immediates without end must
     * cost neither memory nor the deadlines.
     */
    private static final int COMPLETIONS_A_TURN = 1 << 14;

    /** How often a queue pair is tried to be destroyed, over one drain deadline, once it is due. */
    private static final int ATTEMPTS_TO_DESTROY = 8;

    private final PosterOptions options;
    private final CompletionSource completionQueue;
    private final SendQueue[] sends;
    private final ReceiveQueue[] receives;
    private final long maxMessageBytes;
    private final Consumer<Transfer> ended;
    private final WorkCompletions completions = new WorkCompletions(COMPLETIONS_A_POLL);

    /** Transfers with something left to post, in order. */
    private final ArrayDeque<Transfer> waiting = new ArrayDeque<>();

    /** How many transfers have not ended. */
    private int underWay;

    /** Transfers that have ended and hold their pools: a queue pair might still work for them. */
    private final List<Transfer> abandoned = new ArrayList<>();

    private int nextQueue;
    private long lastProgressNanos;

    /** Whether a send has completed since the time was noted, which is once a poll. */
    private boolean progressed;

    private int attemptsToDestroy;
    private long lastAttemptNanos;
    private @Nullable Stop stop;
    private @Nullable Stop stopToTell;
    private boolean closed;

    private int[] arrived = new int[COMPLETIONS_A_POLL];
    private int arrivedCount;

    /**
     * Makes the queues and posts the receives.
     *
     * @param ended is given each transfer once it has ended; it may only put it aside
     */
    PosterQueues(
            List<? extends Endpoint> queuePairs,
            CompletionSource completionQueue,
            long maxMessageBytes,
            PosterOptions options,
            Consumer<Transfer> ended) {
        this.options = options;
        this.completionQueue = completionQueue;
        this.maxMessageBytes = maxMessageBytes;
        this.ended = ended;
        this.sends = new SendQueue[queuePairs.size()];
        this.receives = new ReceiveQueue[queuePairs.size()];
        int made = 0;
        try {
            for (Endpoint pair : queuePairs) {
                int sge = pair.options().sendSge();
                sends[made] = new SendQueue(made, pair, options, sge);
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

    /**
     * Takes a transfer, to be posted by {@link #pump}; the caller has looked whether it is {@link
     * #stopped}.
     */
    void admit(Transfer transfer) {
        if (underWay == 0) {
            lastProgressNanos = System.nanoTime();
        }
        underWay++;
        transfer.underWay(true);
        waiting.add(transfer);
    }

    @Nullable Stop stopped() {
        return stop;
    }

    boolean isIdle() {
        return underWay == 0;
    }

    /** Asks for an event at the next completion. */
    void requestNotify() {
        if (!closed) {
            completionQueue.requestNotify();
        }
    }

    /** The immediates that have arrived since they were taken last. */
    int[] takeArrived() {
        if (arrivedCount == 0) {
            return NO_IMMEDIATES;
        }
        int[] values = Arrays.copyOf(arrived, arrivedCount);
        arrivedCount = 0;
        return values;
    }

    /** The stop, if it has not been taken yet. */
    @Nullable Stop takeStop() {
        Stop taken = stopToTell;
        stopToTell = null;
        return taken;
    }

    /** Destroys the queue pairs, those left over from last time too, and ends what is under way. */
    void close() {
        destroyQueuePairs();
        abandon();
        if (!closed) {
            closed = true;
            completions.close();
        }
    }

    // --- Posting ---

    /** Posts as much of the waiting transfers as there is room for. */
    void pump() {
        signalGivenUp();
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
            // Its blocks are no longer those that were checked.
            giveUp(transfer, FailureReason.BATCH_CHANGED, "the batch is not what it was", changed);
            return true;
        }
        return accepted(transfer, queue, posted);
    }

    /**
     * Fails one transfer and lets the others go on: nothing more of it is posted, and it ends once
     * what is in flight has come back.
     *
     * @return false if it has ended, or is failing already, as all are once this has stopped
     */
    boolean giveUp(
            Transfer transfer, FailureReason reason, String message, @Nullable Throwable cause) {
        if (stop != null || transfer.isFailing() || !transfer.isUnderWay()) {
            return false;
        }
        transfer.fail(reason, message, -1, cause);
        waiting.remove(transfer);
        transfer.allPosted();
        signalGivenUp();
        endIfIdle(transfer);
        return true;
    }

    /**
     * Sees to it that the end of what was given up is told. A chain that was taken in part ends
     * unsignalled, and waits for the rest of its transfer to come behind: here none will. If there
     * is no room now the next turn tries again.
     */
    private void signalGivenUp() {
        for (SendQueue queue : sends) {
            if (stop == null && queue.endsUnsignaled() && queue.newest().isAllPosted()) {
                accepted(queue.newest(), queue, queue.postDrainMarker());
            }
        }
    }

    /** With several queue pairs a batch is dealt out in shares, so that all of them work on it. */
    int share(TransferBatch batch) {
        if (sends.length == 1) {
            return options.chainRequests();
        }
        long requests = batch.size() + batch.bytes() / maxMessageBytes;
        long share = Math.ceilDiv(requests, (long) sends.length);
        return (int) Math.min(options.chainRequests(), Math.max(share, 1));
    }

    /**
     * Goes round the queues, so that each gets its turn; but first one whose last chain was taken
     * in part, as what it took completes with what comes behind.
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
            Endpoint pair = queue.queuePair();
            VerbsException cause =
                    new VerbsException("ibv_post_send", pair.postErrno(), pair.toString());
            transfer.fail(
                    FailureReason.POST_REFUSED, cause.getMessage(), queue.refusedBlock(), cause);
            stop(FailureReason.POST_REFUSED, cause.getMessage(), cause);
        }
        return posted == SendQueue.Posted.ALL;
    }

    // --- Completions ---

    /** True if it left some for the next turn. */
    boolean takeCompletions() {
        if (closed) {
            return false;
        }
        try {
            int taken = 0;
            while (completionQueue.poll(completions) > 0) {
                for (int i = 0; i < completions.count(); i++) {
                    take(i);
                }
                if (progressed) {
                    lastProgressNanos = System.nanoTime();
                    progressed = false;
                }
                taken += completions.count();
                if (taken >= COMPLETIONS_A_TURN) {
                    return true;
                }
            }
        } catch (VerbsException | IllegalStateException failure) {
            stop(FailureReason.DEVICE, "polling failed: " + failure.getMessage(), failure);
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
        progressed = true;
        if (status == CompletionStatus.SUCCESS) {
            queue.retireBefore(position + 1);
        } else {
            // Requests complete in order, and a failed one always does: all before it are done.
            queue.retireBefore(position);
            endChains(queue);
            if (stop == null) {
                FailureReason reason = FailureReason.of(status);
                String message = describe(index, status, queue);
                queue.oldest().fail(reason, message, queue.oldestBlock(), null);
                stop(reason, message, null);
            }
            failWithStop(queue.oldest());
            queue.loseOldest(status);
        }
        endChains(queue);
    }

    private void takeReceive(int queue, int index, CompletionStatus status) {
        if (status != CompletionStatus.SUCCESS) {
            // By a queue pair that has stopped; over TCP the first says why, if no send does.
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
        if (transfer.isIdle() && transfer.isUnderWay()) {
            underWay--;
            transfer.underWay(false);
            if (transfer.isAbandoned()) {
                abandoned.add(transfer);
            } else {
                // Before the end is told: whoever hears of it may close the pools.
                release(transfer);
            }
            ended.accept(transfer);
        }
    }

    /** A pool that somebody else has released must not keep the end from being told. */
    private static void release(Transfer transfer) {
        try {
            transfer.releasePools();
        } catch (IllegalStateException released) {
            LOG.log(Level.ERROR, "the pools of " + transfer + " were not all held", released);
        }
    }

    // --- Failure ---

    /** Stops the queue pairs and takes nothing more; what is in flight comes back as flushed. */
    void stop(FailureReason reason, String message, @Nullable Throwable cause) {
        if (stop != null) {
            return;
        }
        stop = new Stop(reason, message, cause, System.nanoTime());
        stopToTell = stop;
        for (SendQueue queue : sends) {
            try {
                queue.queuePair().stop();
                if (queue.endsUnsignaled()) {
                    queue.postDrainMarker();
                }
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

    void checkDeadlines(long now) {
        Stop stopped = stop;
        long drain = PosterOptions.nanos(options.drainDeadline());
        if (stopped == null) {
            stopWithoutProgress(now, PosterOptions.nanos(options.progressDeadline()));
        } else if (attemptsToDestroy == 0) {
            if (underWay > 0 && now - stopped.atNanos > drain) {
                destroyQueuePairs();
            }
        } else if (!allDestroyed() && now - lastAttemptNanos > drain / ATTEMPTS_TO_DESTROY) {
            destroyQueuePairs();
            if (attemptsToDestroy > ATTEMPTS_TO_DESTROY) {
                abandon();
            }
        }
    }

    void stopWithoutProgress(long now, long patienceNanos) {
        if (underWay > 0 && now - lastProgressNanos > patienceNanos) {
            stop(
                    FailureReason.DEADLINE,
                    "no work request completed for " + Duration.ofNanos(patienceNanos),
                    null);
        }
    }

    /**
     * Destroys the queue pairs that are left. After that the device touches no memory for them,
     * whatever it still had to do; so what is in flight on one that cannot be destroyed stays so.
     */
    private void destroyQueuePairs() {
        for (int i = 0; i < sends.length; i++) {
            SendQueue queue = sends[i];
            if (!queue.isDestroyed() && destroyed(queue)) {
                receives[i].close();
                loseAll(queue);
            }
        }
        attemptsToDestroy++;
        lastAttemptNanos = System.nanoTime();
        if (allDestroyed()) {
            abandoned.forEach(PosterQueues::release);
            abandoned.clear();
        }
    }

    private boolean destroyed(SendQueue queue) {
        try {
            queue.close();
            return true;
        } catch (VerbsException failure) {
            Level level = attemptsToDestroy == 0 ? Level.WARNING : Level.DEBUG;
            LOG.log(level, "could not destroy a queue pair, which is tried again", failure);
            return false;
        }
    }

    private boolean allDestroyed() {
        for (SendQueue queue : sends) {
            if (!queue.isDestroyed()) {
                return false;
            }
        }
        return true;
    }

    /**
     * Ends what is in flight on queue pairs that nothing could destroy, as somebody waits for it.
     * The device may still act on it, so its pools stay held and the rings are not freed, until one
     * of the attempts that go on succeeds.
     */
    private void abandon() {
        for (SendQueue queue : sends) {
            if (!queue.isDestroyed() && !queue.isEmpty()) {
                LOG.log(
                        Level.ERROR,
                        "{0} cannot be destroyed and has {1} work requests in flight: the pools of"
                                + " their transfers stay held, and its rings are not freed",
                        queue.queuePair(),
                        queue.inFlight());
                while (!queue.isEmpty()) {
                    queue.oldest().abandon();
                    loseOldest(queue);
                }
            }
        }
    }

    private void loseAll(SendQueue queue) {
        while (!queue.isEmpty()) {
            loseOldest(queue);
        }
    }

    private void loseOldest(SendQueue queue) {
        failWithStop(queue.oldest());
        queue.loseOldestUnseen();
        endChains(queue);
    }
}
