package dev.verbena.transfer;

import dev.verbena.bindings.Errno;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.Endpoint;
import dev.verbena.verbs.QueuePair;
import dev.verbena.verbs.VerbsException;
import dev.verbena.verbs.WorkRequests;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The send side of one queue pair: a ring of work requests, and what is in flight in it.
 *
 * <pre>
 *   position   tail                         head
 *     ..done    |  chain 1   |  chain 2  |    |  free ..
 *               +------------+-----------+----+
 *   slot = position mod capacity; wr_id carries the position
 * </pre>
 *
 * <p>Positions only grow. A chain is what one doorbell covered, of one transfer. The last work
 * request of a chain is signalled, one in every so many requests, half a queue at most, and one in
 * every so many bytes, so that large messages show progress too; since a reliable connected queue
 * pair completes in order, a completion at a position retires all before it.
 *
 * <p>Not thread-safe: the poster's lock guards it. Nothing here allocates once it is built.
 */
final class SendQueue {
    /** How a post went. */
    enum Posted {
        /** The driver took all. */
        ALL,
        /** It took some, or none, and may take the rest later. */
        SOME,
        /** It refused for good, or left open what it took. */
        REFUSED
    }

    /** Bits of a work request's identity that hold its position; the queue's index is above. */
    private static final int POSITION_BITS = 48;

    private static final long POSITION_MASK = (1L << POSITION_BITS) - 1;

    /** Most bytes between two signals, roughly: a deadline sees only what is signalled. */
    private static final long SIGNAL_BYTES = 64L << 20;

    private final Endpoint queuePair;
    private final WorkRequests ring;
    private final long identity;
    private final int mask;
    private final int signalMask;

    private long head;
    private long tail;

    // By slot: where in its batch the work request begins. It ends where the next one of its chain
    // begins, or where its chain ends.
    private final int[] firstBlocks;
    private final long[] firstOffsets;
    private final long[] requestBytes;

    private long unsignaledBytes;

    /** Whether the newest request in flight is signalled. */
    private boolean newestSignaled;

    // Chains in flight, oldest first; by number modulo capacity.
    private final @Nullable Transfer[] chainTransfers;
    private final long[] chainEnds;
    private final int[] chainEndBlocks;
    private final long[] chainEndOffsets;

    /** Less those of requests that were lost. */
    private final long[] chainBytes;

    private int chainHead;
    private int chainTail;

    /** Set by the first failure: whether requests flushed behind it may have been carried out. */
    private boolean followersMayHaveMoved = true;

    private boolean failed;
    private boolean destroyed;

    /**
     * Where in its batch the request begins that the last post refused; -1 if that is not known.
     */
    private int refusedBlock = -1;

    SendQueue(int index, Endpoint queuePair, PosterOptions options, int maxSge) {
        int depth = options.sendRequests();
        this.queuePair = queuePair;
        this.ring = new WorkRequests(depth, maxSge);
        this.identity = (long) index << POSITION_BITS;
        this.mask = depth - 1;
        this.signalMask = Math.min(options.signalRequests(), depth / 2) - 1;
        this.firstBlocks = new int[depth];
        this.firstOffsets = new long[depth];
        this.requestBytes = new long[depth];
        this.chainTransfers = new Transfer[depth];
        this.chainEnds = new long[depth];
        this.chainEndBlocks = new int[depth];
        this.chainEndOffsets = new long[depth];
        this.chainBytes = new long[depth];
    }

    static int queueOf(long workRequestId) {
        return (int) (workRequestId >>> POSITION_BITS);
    }

    Endpoint queuePair() {
        return queuePair;
    }

    /** Work requests that can be posted now. */
    int room() {
        return mask + 1 - (int) (head - tail);
    }

    boolean isEmpty() {
        return head == tail;
    }

    /**
     * Whether the newest request in flight is unsignalled, as after a chain that was taken in part:
     * then nothing says that it is done until another one is posted behind it. There is room for
     * that, as what was refused has none.
     */
    boolean endsUnsignaled() {
        return head != tail && !newestSignaled;
    }

    /** Block at which the last post was refused, or -1 if that is not known. */
    int refusedBlock() {
        return refusedBlock;
    }

    /** Posts up to {@code limit} further work requests of a transfer, with one doorbell. */
    Posted post(Transfer transfer, int limit) {
        WorkRequestCursor cursor = transfer.cursor();
        int block = cursor.block();
        long offset = cursor.offset();
        try {
            return post(transfer, cursor, limit);
        } catch (RuntimeException | Error failure) {
            // Nothing of this chain has gone out.
            cursor.seek(block, offset);
            throw failure;
        }
    }

    private Posted post(Transfer transfer, WorkRequestCursor cursor, int limit) {
        long end = head;
        long bytes = 0;
        while (end < head + limit) {
            int singles = fillSingles(transfer, cursor, end, (int) (head + limit - end));
            if (singles > 0) {
                end += singles;
                bytes += cursor.singleBytes();
            } else if (cursor.next()) {
                fill(transfer, cursor, end++);
                bytes += cursor.bytes();
            } else {
                break;
            }
        }
        if (end == head) {
            return Posted.ALL;
        }
        ring.signal((int) (end - 1) & mask);
        unsignaledBytes = 0;
        refusedBlock = -1;
        Posted posted = ring(transfer, (int) (end - head), bytes, cursor.block(), cursor.offset());
        if (head != end) {
            int refused = (int) head & mask;
            refusedBlock = firstBlocks[refused];
            cursor.seek(refusedBlock, firstOffsets[refused]);
        }
        return posted;
    }

    /**
     * Fills slots with blocks that are a work request each, up to the next signal and the ring's
     * end. Gives how many; if none, the next block needs a closer look.
     */
    private int fillSingles(Transfer transfer, WorkRequestCursor cursor, long position, int limit) {
        int slot = (int) position & mask;
        int toSignal = signalMask + 1 - ((int) position & signalMask);
        int count = cursor.singles(Math.min(limit, toSignal), SIGNAL_BYTES - 1 - unsignaledBytes);
        if (count == 0) {
            return 0;
        }
        for (int i = 0; i < count; i++) {
            firstBlocks[slot + i] = cursor.block() + i;
        }
        Arrays.fill(firstOffsets, slot, slot + count, 0);
        cursor.takeSingles(
                count,
                ring,
                slot,
                identity | (position & POSITION_MASK),
                transfer.direction(),
                requestBytes);
        unsignaledBytes += cursor.singleBytes();
        if (count == toSignal) {
            ring.signal(slot + count - 1);
            unsignaledBytes = 0;
        }
        return count;
    }

    /** Posts a work request that carries no data and hands 32 bits to the peer. */
    Posted postImmediate(Transfer transfer, int immediate) {
        refusedBlock = -1;
        fillEmpty(WorkRequests.Operation.WRITE_WITH_IMMEDIATE);
        ring.immediate((int) head & mask, immediate);
        return ring(transfer, 1, 0, 0, 0);
    }

    /**
     * Posts a signalled request that moves nothing behind a queue that {@link #endsUnsignaled}:
     * once that comes back, as done or as flushed, all before it that have not failed are done.
     */
    Posted postDrainMarker() {
        refusedBlock = -1;
        fillEmpty(WorkRequests.Operation.WRITE);
        return ring(newest(), 1, 0, 0, 0);
    }

    /** Fills the slot at head with a request that moves nothing. */
    private void fillEmpty(WorkRequests.Operation operation) {
        int slot = (int) head & mask;
        ring.fill(slot, identity | (head & POSITION_MASK), operation, 0, 0, 0, true);
        firstBlocks[slot] = 0;
        firstOffsets[slot] = 0;
        requestBytes[slot] = 0;
    }

    private void fill(Transfer transfer, WorkRequestCursor cursor, long position) {
        int slot = (int) position & mask;
        int pieces = cursor.pieces();
        unsignaledBytes += cursor.bytes();
        boolean signaled = (position & signalMask) == signalMask || unsignaledBytes >= SIGNAL_BYTES;
        unsignaledBytes = signaled ? 0 : unsignaledBytes;
        ring.fill(
                slot,
                identity | (position & POSITION_MASK),
                transfer.direction().operation(),
                cursor.remoteAddress(),
                cursor.remoteKey(),
                pieces,
                signaled);
        for (int piece = 0; piece < pieces; piece++) {
            ring.piece(
                    slot,
                    piece,
                    cursor.pieceAddress(piece),
                    cursor.pieceLength(piece),
                    cursor.pieceKey(piece));
        }
        firstBlocks[slot] = cursor.firstBlock();
        firstOffsets[slot] = cursor.firstOffset();
        requestBytes[slot] = cursor.bytes();
    }

    /**
     * Rings the doorbell for the filled slots behind head, and accounts for what was taken.
     *
     * @param bytes of all of them
     * @param endBlock block at which the last of them ends
     * @param endOffset where in that block
     */
    private Posted ring(Transfer transfer, int count, long bytes, int endBlock, long endOffset) {
        int accepted = queuePair.post(ring, (int) head & mask, count);
        // What cannot be known must be taken as in flight: its memory may be touched.
        int inFlight = accepted == QueuePair.ACCEPTED_UNKNOWN ? count : accepted;
        if (inFlight > 0) {
            int chain = chainHead++ & mask;
            int behind = (int) (head + inFlight) & mask;
            chainTransfers[chain] = transfer;
            chainEnds[chain] = head + inFlight;
            chainBytes[chain] = inFlight == count ? bytes : bytes(inFlight);
            chainEndBlocks[chain] = inFlight == count ? endBlock : firstBlocks[behind];
            chainEndOffsets[chain] = inFlight == count ? endOffset : firstOffsets[behind];
            head += inFlight;
            newestSignaled = ring.isSignaled((int) (head - 1) & mask);
            transfer.chainPosted();
        }
        if (accepted == count) {
            return Posted.ALL;
        }
        return accepted >= 0 && isTransient(queuePair.postErrno()) ? Posted.SOME : Posted.REFUSED;
    }

    /** Bytes of the first slots behind head. */
    private long bytes(int count) {
        long bytes = 0;
        for (int i = 0; i < count; i++) {
            bytes += requestBytes[(int) (head + i) & mask];
        }
        return bytes;
    }

    /** ENOMEM and EAGAIN say that the queue is full, which passes; anything else does not. */
    private static boolean isTransient(int errno) {
        return errno == Errno.ENOMEM || errno == Errno.EAGAIN;
    }

    /**
     * The position that a completion speaks of.
     *
     * @return the position, or -1 if nothing with this identity is in flight
     */
    long positionOf(long workRequestId) {
        long position = tail + ((workRequestId - tail) & POSITION_MASK);
        return position < head ? position : -1;
    }

    /** Retires as done everything before a position. */
    void retireBefore(long position) {
        tail = Math.max(tail, position);
    }

    /** The transfer whose work request is the oldest in flight. */
    Transfer oldest() {
        return Objects.requireNonNull(chainTransfers[chainTail & mask]);
    }

    /** The transfer whose work request is the newest in flight. */
    Transfer newest() {
        return Objects.requireNonNull(chainTransfers[(chainHead - 1) & mask]);
    }

    /** The block in which the oldest work request in flight begins, or -1 if it moves none. */
    int oldestBlock() {
        int slot = (int) tail & mask;
        return requestBytes[slot] == 0 ? -1 : firstBlocks[slot];
    }

    /** Retires the oldest work request as failed; its transfer must be failing. */
    void loseOldest(CompletionStatus status) {
        boolean mayHaveMoved = !failed || followersMayHaveMoved;
        if (!failed) {
            failed = true;
            followersMayHaveMoved = !status.stopsFollowers();
        }
        lose(mayHaveMoved);
    }

    /** Retires the oldest work request as lost, of which the device will say nothing more. */
    void loseOldestUnseen() {
        lose(true);
    }

    private void lose(boolean mayHaveMoved) {
        int slot = (int) tail & mask;
        int chain = chainTail & mask;
        boolean last = tail + 1 == chainEnds[chain];
        int next = (slot + 1) & mask;
        int endBlock = last ? chainEndBlocks[chain] : firstBlocks[next];
        long endOffset = last ? chainEndOffsets[chain] : firstOffsets[next];
        oldest().requestLost(
                        firstBlocks[slot],
                        firstOffsets[slot],
                        endOffset == 0 ? endBlock : endBlock + 1,
                        endOffset,
                        mayHaveMoved);
        chainBytes[chain] -= requestBytes[slot];
        tail++;
    }

    /** Takes the oldest chain if all of it is retired: its transfer, or null. */
    @Nullable Transfer takeEndedChain() {
        int chain = chainTail & mask;
        if (chainTail == chainHead || chainEnds[chain] > tail) {
            return null;
        }
        Transfer transfer = Objects.requireNonNull(chainTransfers[chain]);
        chainTransfers[chain] = null;
        chainTail++;
        transfer.chainEnded(chainBytes[chain]);
        return transfer;
    }

    /** Work requests in flight. */
    int inFlight() {
        return (int) (head - tail);
    }

    /** Whether the queue pair is gone, so that it touches no memory. */
    boolean isDestroyed() {
        return destroyed;
    }

    /**
     * Destroys the queue pair, then frees the ring, which the device no longer reads. What is in
     * flight is still to be retired.
     *
     * @throws VerbsException if the queue pair cannot be destroyed; then the ring stays as well
     */
    void close() {
        queuePair.close();
        destroyed = true;
        ring.close();
    }
}
