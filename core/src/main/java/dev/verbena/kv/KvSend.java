package dev.verbena.kv;

import dev.verbena.memory.MemoryRegistry;
import dev.verbena.transfer.Peer;
import dev.verbena.transfer.Transfer;
import dev.verbena.transfer.TransferBatch;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.OptionalInt;
import java.util.SequencedSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A request on the prefill side: chunks of pages, written as prefill produces them to every decode
 * rank that takes part; with the last one its state, then its auxiliary data, then the word that it
 * is done.
 *
 * <p>It ends once: done when everything has been acknowledged by all decode ranks, or failed with
 * all of them. Where one decode rank takes part the word follows directly behind the data; where
 * several do, none is told before all are served. If one fails or gives up, what is under way to
 * the others is cancelled, and each is told that the request failed once nothing of it is in flight
 * to that one, so that it may use the slots again. Where a transfer failed, packets of it may still
 * be on the wire: then nothing is said, as the connection has failed with it, and the decode side
 * counts the writer as ended once its own queue pairs are gone.
 *
 * <p>Life: {@link KvSender#begin}, {@link #chunk} any number of times, {@link #last}, {@link
 * #await}, {@link #close}. Chunks are for one thread at a time; the rest is safe for any.
 */
public final class KvSend implements AutoCloseable {
    private static final String CLOSED_EARLY =
            "the prefill side closed the request before its last chunk";

    private final KvSender sender;
    private final long room;

    /** The decode ranks that this side writes to. */
    private final List<KvTarget> targets;

    /** The decode ranks that other prefill ranks write to, for their aborts. */
    private final List<KvTarget> bystanders;

    private final CompletableFuture<KvSend> end = new CompletableFuture<>();

    // Guarded by this, as are the fields of the targets.
    private final SequencedSet<Transfer> active = new LinkedHashSet<>();
    private long bytesDone;
    private int chunksGiven;
    private int pagesGiven;

    /** A chunk is being posted: until it is, the request is not served. */
    private boolean posting;

    /** The last chunk has been begun; it is taken back if it is refused. */
    private boolean lastBegun;

    private @Nullable Last last;
    private @Nullable String failure;
    private @Nullable Throwable failureCause;
    private boolean abortedByDecode;
    private boolean closing;
    private boolean over;

    /** What is posted behind the last chunk, for each target. */
    private record Last(KvChunk chunk, List<Finish> finishes) {}

    /** State and auxiliary data for one target; auxiliary data as a batch, a message, or not. */
    private record Finish(
            KvTarget target, List<TransferBatch> batches, @Nullable KvMessage auxMessage) {}

    /** What is to be done next; decided with the lock, done without. */
    private sealed interface Step {
        record Finishing(Last last, Finish finish) implements Step {}

        record Done(Last last) implements Step {}

        record Tell(KvTarget target, KvMessage message) implements Step {}

        record End(@Nullable Last last, @Nullable KvException failure) implements Step {}
    }

    KvSend(KvSender sender, long room, List<KvTarget> announced) {
        this.sender = sender;
        this.room = room;
        this.targets = announced.stream().filter(KvTarget::isNeeded).toList();
        this.bystanders = announced.stream().filter(target -> !target.isNeeded()).toList();
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
     * Lists the decode nodes that this side writes to.
     *
     * @return the peers, of distinct decode ranks; none if all of them are served by other ranks
     */
    public List<Peer> peers() {
        return targets.stream().map(KvTarget::peer).toList();
    }

    /**
     * Says how many pages the decode side expects.
     *
     * @return pages of this side that all chunks together must have; 0 if this side writes to no
     *     decode rank, whose chunks may then have any number
     */
    public int pages() {
        return targets.isEmpty() ? 0 : KvRoom.pages(targets.getFirst());
    }

    /**
     * Says how far the request has come, for a progress bar.
     *
     * @return bytes known to be in the memory of the decode side
     */
    public synchronized long bytesDone() {
        return bytesDone + active.stream().mapToLong(Transfer::bytesDone).sum();
    }

    /**
     * Writes a chunk, behind those before it. Does not wait.
     *
     * @param prefillPages pages of this side, in the order of the request's tokens; not kept
     * @return the chunk, under way; its pages may be reused once it is done
     * @throws IllegalArgumentException if the request has fewer pages, or a page is in no
     *     registered pool; the request goes on, and nothing of the chunk was posted
     * @throws IndexOutOfBoundsException if a page is outside the pools; the same
     * @throws IllegalStateException if the last chunk was given already
     * @throws KvException if the request has failed
     */
    public KvChunk chunk(int... prefillPages) {
        return post(KvSlots.pages(prefillPages), false);
    }

    /**
     * Writes the last chunk, and behind it state, auxiliary data, and the word that the request is
     * done. Does not wait.
     *
     * @param slots pages as {@link #chunk}, may be none; and what is moved once a request: items of
     *     each state, and the auxiliary slot. Those that this rank need not send, as another does,
     *     may be left out
     * @return the chunk, under way; it is done when all of that is
     * @throws IllegalArgumentException as {@link #chunk}, or if pages of the request are left over,
     *     or items of a state or the auxiliary slot are missing or do not fit those of the decode
     *     side
     * @throws IndexOutOfBoundsException as {@link #chunk}
     * @throws IllegalStateException if the last chunk was given already
     * @throws KvException if the request has failed
     */
    public KvChunk last(KvSlots slots) {
        return post(slots, true);
    }

    /**
     * Gives the request up: no more is posted, what is under way is cancelled, and once nothing is
     * in flight the decode side is told why. Does nothing if it has ended. If the last chunk was
     * given already the decode side may have all of it, and be ready nevertheless.
     *
     * @param reason for the decode side
     */
    public void fail(String reason) {
        fail(reason, null);
    }

    /**
     * Waits until the request has ended. Bounded by the peers' progress deadline, once the last
     * chunk is given, unless chunks wait for the decode side's staging ring.
     *
     * @throws KvException if it failed: a transfer failed, or the decode side aborted
     * @throws InterruptedException if this thread is interrupted; the request goes on
     */
    public void await() throws InterruptedException {
        List<Transfer> pending;
        synchronized (this) {
            pending = List.copyOf(active);
        }
        // A thread that waits for a transfer makes progress by itself, which is quicker.
        for (Transfer transfer : pending) {
            KvChunk.awaitQuietly(transfer);
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
            complete = lastBegun;
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
        return "send of room " + room + " to " + targets;
    }

    // What follows is the sender's.

    /** The decode rank that announced it with this token, as target or bystander. */
    @Nullable KvTarget find(Peer decode, int token) {
        for (KvTarget target : announced()) {
            if (target.isOf(decode, token)) {
                return target;
            }
        }
        return null;
    }

    /** A decode rank gives the request up, and waits for an answer. */
    void aborted(KvTarget target, String reason) {
        boolean answer;
        synchronized (this) {
            answer = over || target.isTold || !target.isNeeded();
            // Else it is answered by the end of the request, when nothing to it is in flight.
            target.isAborted = true;
            target.isTold |= !target.isNeeded();
            abortedByDecode |= !over && failure == null;
        }
        if (answer) {
            KvSender.answer(target.peer(), new KvMessage.Ended(room, target.token()));
        }
        fail(target + ": " + reason, null);
    }

    /** A peer is lost, and nothing to it is in flight. A target that was served does not matter. */
    void lost(Peer peer, String reason) {
        for (KvTarget target : targets) {
            if (target.peer().equals(peer)) {
                synchronized (this) {
                    if (target.isDonePosted && target.inFlight == 0) {
                        return;
                    }
                }
                fail(target + " is lost: " + reason, null);
            }
        }
    }

    /**
     * Posts a batch for one target, unless the request has failed. A refusal fails the request.
     *
     * @return the transfer, or null if it was not posted
     */
    @Nullable Transfer write(
            KvTarget target, KvChunk chunk, TransferBatch batch, OptionalInt immediate) {
        synchronized (this) {
            if (failure != null) {
                return null;
            }
            target.inFlight++;
        }
        chunk.hold();
        Transfer transfer;
        try {
            transfer =
                    immediate.isPresent()
                            ? target.peer().write(batch, immediate.getAsInt())
                            : target.peer().write(batch);
        } catch (RuntimeException | Error refused) {
            ended(target, chunk, refused);
            return null;
        }
        chunk.add(transfer);
        String failedMeanwhile;
        synchronized (this) {
            active.add(transfer);
            failedMeanwhile = failure;
        }
        if (failedMeanwhile != null) {
            transfer.cancel(failedMeanwhile);
        }
        transfer.completion()
                .whenComplete((done, failed) -> {
                    synchronized (this) {
                        active.remove(transfer);
                        bytesDone += transfer.bytesDone();
                    }
                    ended(target, chunk, failed);
                });
        return transfer;
    }

    // What follows posts chunks, on the caller's thread.

    private KvChunk post(KvSlots slots, boolean isLast) {
        int[] pages = slots.pageSlots();
        KvChunk chunk = new KvChunk();
        begin(pages.length, isLast);
        Last lastOne = null;
        List<List<TransferBatch>> plans = new ArrayList<>();
        try {
            // All is planned before anything is posted, and not under the lock.
            slots.checkNames(sender.cache());
            checkRegistered(isLast && slots.hasAux());
            for (KvTarget target : targets) {
                plans.add(planKv(target, pages));
            }
            if (isLast) {
                lastOne = new Last(chunk, planLast(slots, plans));
            }
        } catch (RuntimeException | Error refused) {
            withdraw();
            throw refused;
        }
        for (int i = 0; i < plans.size(); i++) {
            KvTarget target = targets.get(i);
            if (isStaged(target)) {
                writeStaged(target, chunk, pages);
            } else if (!isLast) {
                plans.get(i).forEach(batch -> write(target, chunk, batch, OptionalInt.empty()));
            }
        }
        KvException failed = posted(pages.length, lastOne);
        if (lastOne == null) {
            chunk.release(failed);
        }
        advance();
        if (failed != null) {
            throw failed;
        }
        return chunk;
    }

    private synchronized void begin(int pages, boolean isLast) {
        if (failure != null) {
            throw failedException();
        }
        if (lastBegun) {
            throw new IllegalStateException(this + " was given its last chunk already");
        }
        if (posting) {
            throw new IllegalStateException(this + " is given chunks by two threads at a time");
        }
        int left = pages() - pagesGiven;
        if (!targets.isEmpty() && (pages > left || (isLast && pages < left))) {
            throw new IllegalArgumentException(
                    "%s: a %s of %d pages, but %d of %d pages are left"
                            .formatted(
                                    this, isLast ? "last chunk" : "chunk", pages, left, pages()));
        }
        posting = true;
        lastBegun = isLast;
    }

    /** Takes a chunk back that was refused before anything of it was posted. */
    private void withdraw() {
        synchronized (this) {
            posting = false;
            lastBegun = false;
            if (closing) {
                note(CLOSED_EARLY, null);
            }
        }
        advance();
    }

    /** Counts a chunk, and says if the request has failed. */
    private synchronized @Nullable KvException posted(int pages, @Nullable Last lastOne) {
        posting = false;
        pagesGiven += pages;
        chunksGiven++;
        last = lastOne;
        return failure == null ? null : failedException();
    }

    private void checkRegistered(boolean withAux) {
        KvCache cache = sender.cache();
        MemoryRegistry registry = sender.registry();
        Registered.check("KV", cache.pools(), registry);
        for (KvState state : cache.states()) {
            Registered.check("state '" + state.name() + "'", state.pools(), registry);
        }
        if (withAux && cache.auxBuffers().isPresent()) {
            Registered.check("auxiliary", cache.auxBuffers().get(), registry);
        }
    }

    /** The KV of a chunk; nothing for a target that it is staged for. */
    private List<TransferBatch> planKv(KvTarget target, int[] pages) {
        if (isStaged(target)) {
            PoolPairs.checkAll("prefillPages", pages, "prefill", sender.cache().pools());
            return List.of();
        }
        return target.route().chunk(pagesGiven, pages, target.announce().pages());
    }

    /**
     * What is posted last for each target: the KV unless it is staged, state, auxiliary data. In
     * one list, so that the word that the request is done can be directly behind it.
     */
    private List<Finish> planLast(KvSlots slots, List<List<TransferBatch>> kv) {
        List<Finish> finishes = new ArrayList<>();
        for (int i = 0; i < targets.size(); i++) {
            KvTarget target = targets.get(i);
            KvMessage.Announce announce = target.announce();
            List<TransferBatch> batches = new ArrayList<>(kv.get(i));
            batches.addAll(target.route().states(slots, announce.states()));
            KvMessage auxMessage = null;
            if (announce.auxSlot() >= 0) {
                if (!slots.hasAux()) {
                    throw new IllegalArgumentException(
                            this + " sends the auxiliary data, and there is no aux slot");
                }
                batches.add(target.route().aux(slots.auxSlot(), announce.auxSlot()));
                if (target.isAuxByMessage()) {
                    batches.removeLast();
                    auxMessage = auxMessage(target, slots.auxSlot());
                }
            }
            finishes.add(new Finish(target, batches, auxMessage));
        }
        return finishes;
    }

    private KvMessage auxMessage(KvTarget target, int slot) {
        KvPools buffers = sender.cache().auxBuffers().orElseThrow();
        byte[] bytes = ItemBytes.read(sender.registry(), buffers, slot);
        return new KvMessage.Aux(room, target.token(), bytes);
    }

    private static boolean isStaged(KvTarget target) {
        return target.route().category() == KvRoute.Category.STAGED && target.route().writesKv();
    }

    private void writeStaged(KvTarget target, KvChunk chunk, int[] pages) {
        StagedWriter writer = sender.stagedWriter();
        synchronized (this) {
            if (failure != null || pages.length == 0) {
                return;
            }
            target.inFlight++;
            target.staged++;
        }
        chunk.hold();
        CompletionStage<?> staged;
        try {
            staged = writer.write(this, target, chunk, chunksGiven, pagesGiven, pages);
        } catch (RuntimeException | Error refused) {
            stagedEnded(target, chunk, refused);
            return;
        }
        String failedMeanwhile;
        synchronized (this) {
            failedMeanwhile = failure;
        }
        if (failedMeanwhile != null) {
            writer.cancel(this, target, failedMeanwhile);
        }
        staged.whenComplete((done, failed) -> stagedEnded(target, chunk, failed));
    }

    private void stagedEnded(KvTarget target, KvChunk chunk, @Nullable Throwable failed) {
        synchronized (this) {
            target.staged--;
        }
        ended(target, chunk, failed);
    }

    // What follows decides what is next, on any thread.

    /** Something that was in flight to a target has ended, well or not. */
    private void ended(KvTarget target, KvChunk chunk, @Nullable Throwable failed) {
        boolean noted;
        KvException reason;
        synchronized (this) {
            target.inFlight--;
            // In one step with the count, or another thread might see a quiet, sound request.
            noted = failed != null && note(target + ": " + failed.getMessage(), failed);
            reason = failed == null ? null : failedException();
        }
        if (noted) {
            cancelAll();
        }
        chunk.release(reason);
        advance();
    }

    private void fail(String reason, @Nullable Throwable cause) {
        boolean noted;
        synchronized (this) {
            noted = note(reason, cause);
        }
        if (noted) {
            cancelAll();
            advance();
        }
    }

    /** Notes the first failure, unless the request has ended; with the lock. */
    private boolean note(String reason, @Nullable Throwable cause) {
        if (failure != null || over) {
            return false;
        }
        failure = reason;
        failureCause = cause;
        return true;
    }

    /**
     * Cancels what is under way. The last transfer first: its immediates say that all is there, and
     * must not follow data that was held back.
     */
    private void cancelAll() {
        List<Transfer> underWay;
        String reason;
        synchronized (this) {
            underWay = List.copyOf(active.reversed());
            reason = String.valueOf(failure);
        }
        for (KvTarget target : targets) {
            if (isStaged(target)) {
                sender.stagedWriter().cancel(this, target, reason);
            }
        }
        underWay.forEach(transfer -> transfer.cancel(reason));
    }

    private void advance() {
        Step step;
        while ((step = next()) != null) {
            switch (step) {
                case Step.Finishing finishing -> finish(finishing);
                case Step.Done done ->
                        targets.forEach(target -> {
                            writeDone(target, done.last.chunk);
                            letGo(target);
                        });
                case Step.Tell tell -> KvSender.answer(tell.target.peer(), tell.message);
                case Step.End ending -> end(ending);
            }
        }
    }

    /** Decides what is next, and holds the targets that it will post to. */
    private synchronized @Nullable Step next() {
        if (over) {
            return null;
        }
        return failure != null ? nextOfFailed(failure) : last != null ? nextOfLast(last) : null;
    }

    private @Nullable Step nextOfFailed(String reason) {
        for (KvTarget target : announced()) {
            if (!target.isTold && target.inFlight == 0) {
                target.isTold = true;
                return new Step.Tell(
                        target,
                        target.isAborted
                                ? new KvMessage.Ended(room, target.token())
                                : new KvMessage.Failed(room, target.token(), reason));
            }
        }
        if (posting || !targets.stream().allMatch(target -> target.isTold)) {
            return null;
        }
        over = true;
        return new Step.End(last, failedException());
    }

    private @Nullable Step nextOfLast(Last lastOne) {
        boolean alone = targets.size() == 1;
        for (Finish finish : lastOne.finishes) {
            KvTarget target = finish.target;
            if (!target.isFinished && target.staged == 0) {
                target.isFinished = true;
                target.isDonePosted = alone;
                target.inFlight++;
                return new Step.Finishing(lastOne, finish);
            }
        }
        if (!targets.stream().allMatch(target -> target.isFinished && target.inFlight == 0)) {
            return null;
        }
        if (!targets.stream().allMatch(target -> target.isDonePosted)) {
            for (KvTarget target : targets) {
                target.isDonePosted = true;
                target.inFlight++;
            }
            return new Step.Done(lastOne);
        }
        over = true;
        return new Step.End(lastOne, null);
    }

    /** Posts what is last for a target; if it is the only one, the word that it is done too. */
    private void finish(Step.Finishing finishing) {
        Finish finish = finishing.finish;
        KvTarget target = finish.target;
        KvChunk chunk = finishing.last.chunk;
        if (finish.auxMessage != null) {
            try {
                target.peer().send(KvMessage.TO_DECODE, finish.auxMessage.encode());
            } catch (IOException lost) {
                fail(target + " is lost: " + lost.getMessage(), lost);
            }
        }
        boolean alone = targets.size() == 1;
        for (TransferBatch batch : finish.batches) {
            boolean done = alone && batch == finish.batches.getLast();
            write(
                    target,
                    chunk,
                    batch,
                    done ? OptionalInt.of(target.token()) : OptionalInt.empty());
        }
        if (alone && finish.batches.isEmpty()) {
            writeDone(target, chunk);
        }
        letGo(target);
    }

    private void writeDone(KvTarget target, KvChunk chunk) {
        write(target, chunk, new TransferBatch(0), OptionalInt.of(target.token()));
    }

    private synchronized void letGo(KvTarget target) {
        target.inFlight--;
    }

    private void end(Step.End ending) {
        sender.forget(this);
        if (ending.last != null) {
            ending.last.chunk.release(ending.failure);
        }
        if (ending.failure == null) {
            end.complete(this);
        } else {
            end.completeExceptionally(ending.failure);
        }
    }

    private List<KvTarget> announced() {
        return Stream.concat(targets.stream(), bystanders.stream()).toList();
    }

    private synchronized KvException failedException() {
        String side = abortedByDecode ? "aborted by the decode side: " : "failed: ";
        return new KvException(this + " " + side + failure, failureCause);
    }
}
