package dev.verbena.verbs;

import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QPS_ERR;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QPS_RESET;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QPS_RTS;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_SEND_SIGNALED;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_WC_RDMA_READ;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_WC_RDMA_WRITE;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_WC_RECV_RDMA_WITH_IMM;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_WC_WITH_IMM;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_WR_RDMA_READ;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.verbena.bindings.Errno;
import dev.verbena.bindings.ibverbs.ibv_context;
import dev.verbena.bindings.ibverbs.ibv_context_ops;
import dev.verbena.bindings.ibverbs.ibv_cq;
import dev.verbena.bindings.ibverbs.ibv_qp;
import dev.verbena.bindings.ibverbs.ibv_qp_attr;
import dev.verbena.bindings.ibverbs.ibv_recv_wr;
import dev.verbena.bindings.ibverbs.ibv_send_wr;
import dev.verbena.bindings.ibverbs.ibv_sge;
import dev.verbena.bindings.ibverbs.ibv_wc;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.nio.ByteOrder;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A device in software, for tests of posting and polling without a NIC: real completion queues and
 * queue pairs of this package, whose driver calls end up here.
 *
 * <p>It behaves as the strictest sound driver would:
 *
 * <ul>
 *   <li>it copies work requests at post, and answers ENOMEM, with the first request it did not take
 *       as {@code bad_wr}, once {@link QueuePairOptions#sendRequests} are outstanding; one counts
 *       until a completion of it, or of a later one of its queue pair, has been <em>polled</em>
 *   <li>a request with more pieces than {@link QueuePairOptions#sendSge} is refused with EINVAL
 *   <li>requests of a queue pair are carried out in order, at once unless {@linkplain #hold held};
 *       of those that succeed only the signalled ones complete
 *   <li>when one fails it completes with its status, and all behind it complete as flushed, those
 *       posted later too, until the queue pair has been reset and brought up again
 *   <li>a completion for which the queue has no room is lost, and polling fails from then on
 *   <li>in a failed completion, the fields that the verbs leave undefined hold nonsense
 * </ul>
 *
 * <p>Life: {@link #create}, make queues, script, use, close the queues, {@link #close}. Every
 * method may be called from any thread: one may post and poll while another releases completions.
 * With {@link #recordPosts} off, posting and polling allocate nothing on the double's side either.
 */
public final class VerbsDouble implements AutoCloseable {
    /**
     * A piece of local memory, as a work request named it.
     *
     * @param address first byte
     * @param lengthBytes its length
     * @param localKey its lkey
     */
    public record Piece(long address, int lengthBytes, int localKey) {}

    /**
     * A send work request that the device took, with all that it carried.
     *
     * @param queuePairNumber the queue pair it was posted to
     * @param workRequestId its wr_id
     * @param opcode {@code enum ibv_wr_opcode}
     * @param flags {@code enum ibv_send_flags}
     * @param remoteAddress first byte at the peer
     * @param remoteKey its rkey
     * @param immediate immediate data in this machine's byte order
     * @param pieces its scatter-gather list
     */
    public record PostedRequest(
            int queuePairNumber,
            long workRequestId,
            int opcode,
            int flags,
            long remoteAddress,
            int remoteKey,
            int immediate,
            List<Piece> pieces) {

        /** Says whether success gives a completion. */
        public boolean signaled() {
            return (flags & IBV_SEND_SIGNALED()) != 0;
        }

        /** Says how many bytes it moves. */
        public long lengthBytes() {
            return pieces.stream().mapToLong(p -> Integer.toUnsignedLong(p.lengthBytes)).sum();
        }
    }

    private record Refusal(int accepted, int errno, boolean saysWhich) {}

    private record Memory(MemorySegment segment, int localKey, int remoteKey) {
        boolean holds(long address, long lengthBytes) {
            long offset = address - segment.address();
            return offset >= 0 && offset <= segment.byteSize() - lengthBytes;
        }
    }

    /** Numbers of queue pairs start here, so that none is mistaken for an index. */
    private static final int FIRST_NUMBER = 0x100;

    private static final ValueLayout.OfInt NETWORK_INT = JAVA_INT.withOrder(ByteOrder.BIG_ENDIAN);

    private static final int NONSENSE = 0x5a5a5a5a;
    private static final int SUCCESS = CompletionStatus.SUCCESS.ordinal();
    private static final int FLUSHED = CompletionStatus.FLUSHED.ordinal();

    private static final long REMOTE = ibv_send_wr.wr$offset() + ibv_send_wr.wr.rdma$offset();
    private static final long REMOTE_ADDRESS = REMOTE + ibv_send_wr.wr.rdma.remote_addr$offset();
    private static final long REMOTE_KEY = REMOTE + ibv_send_wr.wr.rdma.rkey$offset();

    /** All of memory: a driver follows pointers. */
    @SuppressWarnings("restricted")
    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private static final FunctionDescriptor POST =
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final FunctionDescriptor POLL =
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_INT, JAVA_LONG);

    private final Arena arena = Arena.ofShared();
    private final List<Queue> queues = new ArrayList<>();
    private final List<Pair> pairs = new ArrayList<>();
    private final List<PostedRequest> log = new ArrayList<>();
    private final List<Memory> memory = new ArrayList<>();
    private final ArrayDeque<Refusal> refusals = new ArrayDeque<>();

    private boolean recording = true;
    private boolean holding;
    private boolean losing;
    private int failingPolls;
    private int failingModifyErrno;
    private int failingDestroys;
    private long failingAt = -1;
    private int failingStatus;
    private long accepted;
    private long doorbells;
    private @Nullable Throwable broken;
    private volatile @Nullable Runnable whilePosting;
    private volatile @Nullable Runnable whilePolling;

    private VerbsDouble() {}

    /**
     * Makes a device that does everything at once and without failure.
     *
     * @return the device
     */
    public static VerbsDouble create() {
        return new VerbsDouble();
    }

    /**
     * Creates a completion queue without a channel.
     *
     * @param entries how many completions it holds; one more is lost and breaks it
     * @return the queue, to be closed by the caller
     */
    public synchronized CompletionQueue createCompletionQueue(int entries) {
        Queue queue = new Queue(entries);
        queues.add(queue);
        return queue.completionQueue;
    }

    /**
     * Creates a queue pair in READY_TO_SEND whose sends and receives complete on one queue.
     *
     * @param options its size, which is enforced
     * @param completions a queue of this device
     * @return the queue pair, to be closed by the caller
     */
    public synchronized QueuePair createQueuePair(
            QueuePairOptions options, CompletionQueue completions) {
        for (Queue queue : queues) {
            if (queue.completionQueue == completions) {
                Pair pair = new Pair(FIRST_NUMBER + pairs.size(), options, queue);
                pairs.add(pair);
                return pair.queuePair;
            }
        }
        throw new IllegalArgumentException("not a completion queue of this device");
    }

    // --- What was posted -------------------------------------------------------------------------

    /**
     * Lists the send work requests taken so far, in order.
     *
     * @return a copy of the log
     */
    public synchronized List<PostedRequest> posted() {
        return List.copyOf(log);
    }

    /**
     * Lists the send work requests that one queue pair took so far, in order.
     *
     * @param queuePair one of this device's
     * @return a copy of that part of the log
     */
    public synchronized List<PostedRequest> posted(QueuePair queuePair) {
        return log.stream().filter(r -> r.queuePairNumber == queuePair.number()).toList();
    }

    /**
     * Gives the send work request that one queue pair took last, with the fields that the log
     * lacks.
     *
     * @param queuePair one of this device's
     * @return the driver's copy, an {@code ibv_send_wr}; overwritten by later ones
     */
    synchronized MemorySegment lastTaken(QueuePair queuePair) {
        Pair pair = pair(queuePair);
        long offset = pair.slot(pair.tail - 1) * ibv_send_wr.sizeof();
        return pair.requests.asSlice(offset, ibv_send_wr.sizeof());
    }

    /** Forgets the log; the counts go on. */
    public synchronized void forgetPosted() {
        log.clear();
    }

    /**
     * Says whether {@link #posted} is kept.
     *
     * @param on false to allocate nothing
     */
    public synchronized void recordPosts(boolean on) {
        recording = on;
    }

    /**
     * Counts the calls of post_send.
     *
     * @return how many, refused ones too
     */
    public synchronized long doorbells() {
        return doorbells;
    }

    /**
     * Counts the send work requests taken.
     *
     * @return how many, over all queue pairs
     */
    public synchronized long accepted() {
        return accepted;
    }

    /**
     * Counts the send work requests taken and neither carried out, failed nor flushed.
     *
     * @param queuePair one of this device's
     * @return how many the device may still act on
     */
    public synchronized int outstanding(QueuePair queuePair) {
        Pair pair = pair(queuePair);
        return (int) (pair.tail - pair.done);
    }

    /**
     * Counts completions that wait to be polled.
     *
     * @param completions a queue of this device
     * @return how many
     */
    public synchronized int pending(CompletionQueue completions) {
        for (Queue queue : queues) {
            if (queue.completionQueue == completions) {
                return queue.pending();
            }
        }
        throw new IllegalArgumentException("not a completion queue of this device");
    }

    /**
     * Says whether a completion was ever lost for want of room in its queue.
     *
     * @return true if a completion queue was too short
     */
    public synchronized boolean overflowed() {
        return queues.stream().anyMatch(queue -> queue.overflowed);
    }

    // --- The script ------------------------------------------------------------------------------

    /**
     * Makes one call of post_send fail: the next, or that after those already scripted.
     *
     * @param count how many of its chain are taken before
     * @param errno what the call returns
     */
    public synchronized void acceptOnly(int count, int errno) {
        refusals.add(new Refusal(count, errno, true));
    }

    /**
     * Makes one call of post_send fail without saying at which request, as no sound driver does.
     *
     * @param count how many of its chain are taken all the same
     * @param errno what the call returns
     */
    public synchronized void refuseSilently(int count, int errno) {
        refusals.add(new Refusal(count, errno, false));
    }

    /**
     * Makes one send work request fail when its turn comes.
     *
     * @param index which, counted from 0 for the next one taken on any queue pair
     * @param status what it completes with
     */
    public synchronized void failRequest(int index, CompletionStatus status) {
        failingAt = accepted + index;
        failingStatus = status.ordinal();
    }

    /** Carries out nothing from now on: what is posted stays outstanding until released. */
    public synchronized void hold() {
        holding = true;
    }

    /** Carries out all that was held back, and all that comes, at once. */
    public synchronized void release() {
        holding = false;
        release(Integer.MAX_VALUE);
    }

    /**
     * Carries out some of the requests held back, in the order they were posted.
     *
     * @param count how many at most
     * @return how many there were
     */
    public synchronized int release(int count) {
        int released = 0;
        while (released < count) {
            Pair oldest = null;
            for (Pair pair : pairs) {
                if (pair.done < pair.tail
                        && (oldest == null || pair.sequence() < oldest.sequence())) {
                    oldest = pair;
                }
            }
            if (oldest == null) {
                return released;
            }
            oldest.carryOutNext();
            released++;
        }
        return released;
    }

    /**
     * Loses completions, those of flushed requests too, as a device does that hangs. Requests are
     * still carried out unless held.
     *
     * @param on whether completions are lost from now on
     */
    public synchronized void loseCompletions(boolean on) {
        losing = on;
    }

    /**
     * Fails the queue pair as when its peer dies: the oldest outstanding send completes with a
     * status, all others as flushed.
     *
     * @param queuePair one of this device's
     * @param status what the oldest completes with
     */
    public synchronized void failQueuePair(QueuePair queuePair, CompletionStatus status) {
        pair(queuePair).fail(status.ordinal());
    }

    /**
     * Makes the next calls of poll_cq fail.
     *
     * @param count how many
     */
    public synchronized void failPolls(int count) {
        failingPolls = count;
    }

    /**
     * Makes the next call of modify_qp fail.
     *
     * @param errno what it returns
     */
    public synchronized void failModify(int errno) {
        failingModifyErrno = errno;
    }

    /**
     * Makes the next calls of destroy_qp fail with EBUSY; the device goes on with what it has.
     *
     * @param count how many
     */
    public synchronized void failDestroys(int count) {
        failingDestroys = count;
    }

    /**
     * Declares memory. From the first such call on bytes are really moved, and a request that names
     * memory not declared, or by another key, fails as on a device: LOCAL_PROTECTION or
     * REMOTE_ACCESS.
     *
     * @param segment native memory, of this side or of the peer, which here is the same process
     * @param localKey its lkey
     * @param remoteKey its rkey
     */
    public synchronized void declare(MemorySegment segment, int localKey, int remoteKey) {
        memory.add(new Memory(segment, localKey, remoteKey));
    }

    /**
     * Completes the oldest receive of a queue pair, as a peer's write with immediate does.
     *
     * @param queuePair one of this device's
     * @param immediate the 32 bits
     * @param byteLength how many bytes the write had
     * @return false if no receive is posted
     */
    public synchronized boolean deliverImmediate(
            QueuePair queuePair, int immediate, int byteLength) {
        Pair pair = pair(queuePair);
        Long workRequestId = pair.receives.poll();
        if (workRequestId == null) {
            return false;
        }
        pair.queue.add(
                pair,
                workRequestId,
                SUCCESS,
                IBV_WC_RECV_RDMA_WITH_IMM(),
                -1,
                immediate,
                byteLength);
        return true;
    }

    /**
     * Runs something within each call of post_send, before it does anything.
     *
     * @param action may wait; null for nothing
     */
    public void whilePosting(@Nullable Runnable action) {
        whilePosting = action;
    }

    /**
     * Runs something within each call of poll_cq, before it does anything.
     *
     * @param action may wait; null for nothing
     */
    public void whilePolling(@Nullable Runnable action) {
        whilePolling = action;
    }

    /**
     * Frees the device's memory; its queues must have been closed.
     *
     * @throws AssertionError if a driver call went wrong inside the double, or came after its queue
     *     pair was destroyed
     */
    @Override
    public void close() {
        Throwable failure = broken;
        if (arena.scope().isAlive()) {
            arena.close();
        }
        if (failure != null) {
            throw new AssertionError("the driver double broke", failure);
        }
    }

    private Pair pair(QueuePair queuePair) {
        for (Pair pair : pairs) {
            if (pair.queuePair == queuePair) {
                return pair;
            }
        }
        throw new IllegalArgumentException("not a queue pair of this device");
    }

    /** An exception must not leave an upcall, which would end the process. */
    private synchronized int broke(Throwable thrown) {
        if (broken == null) {
            broken = thrown;
        }
        return Errno.EIO;
    }

    /** A context whose table leads to one object, so that no call has to look for it. */
    private MemorySegment context(Object target, String[] methods, FunctionDescriptor[] types) {
        MemorySegment context = ibv_context.allocate(arena);
        MemorySegment ops = ibv_context.ops(context);
        for (int i = 0; i < methods.length; i++) {
            MemorySegment stub = stub(target, methods[i], types[i]);
            switch (methods[i]) {
                case "postSend" -> ibv_context_ops.post_send(ops, stub);
                case "postReceive" -> ibv_context_ops.post_recv(ops, stub);
                default -> ibv_context_ops.poll_cq(ops, stub);
            }
        }
        return context;
    }

    @SuppressWarnings("restricted")
    private MemorySegment stub(Object target, String method, FunctionDescriptor type) {
        try {
            MethodHandle handle = MethodHandles.lookup().bind(target, method, type.toMethodType());
            return Linker.nativeLinker().upcallStub(handle, type, arena);
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** A completion queue: a ring of {@code ibv_wc} and what each says of its send queue. */
    private final class Queue {
        final int entries;
        final MemorySegment ring;
        final @Nullable Pair[] owners;
        final long[] positions;
        final CompletionQueue completionQueue;
        long head;
        long tail;
        boolean overflowed;

        Queue(int entries) {
            this.entries = entries;
            ring = ibv_wc.allocateArray(entries, arena);
            owners = new Pair[entries];
            positions = new long[entries];
            MemorySegment cq = ibv_cq.allocate(arena);
            ibv_cq.context(
                    cq, context(this, new String[] {"poll"}, new FunctionDescriptor[] {POLL}));
            ibv_cq.cqe(cq, entries);
            completionQueue = CompletionQueue.wrap(cq, entries);
        }

        int pending() {
            return (int) (tail - head);
        }

        void add(
                Pair owner,
                long workRequestId,
                int status,
                int opcode,
                long position,
                int immediate,
                int byteLength) {
            if (losing) {
                return;
            }
            if (pending() == entries) {
                overflowed = true;
                return;
            }
            int slot = (int) (tail++ % entries);
            long wc = slot * ibv_wc.sizeof();
            boolean ok = status == SUCCESS;
            boolean receive = position < 0;
            ring.set(JAVA_LONG, wc + ibv_wc.wr_id$offset(), workRequestId);
            ring.set(JAVA_INT, wc + ibv_wc.status$offset(), status);
            ring.set(JAVA_INT, wc + ibv_wc.opcode$offset(), ok ? opcode : NONSENSE);
            ring.set(JAVA_INT, wc + ibv_wc.vendor_err$offset(), ok ? 0 : 0x100 + status);
            ring.set(JAVA_INT, wc + ibv_wc.byte_len$offset(), ok ? byteLength : NONSENSE);
            ring.set(
                    NETWORK_INT,
                    wc + ibv_wc.imm_data$offset(),
                    ok && receive ? immediate : NONSENSE);
            ring.set(JAVA_INT, wc + ibv_wc.qp_num$offset(), owner.number);
            ring.set(
                    JAVA_INT,
                    wc + ibv_wc.wc_flags$offset(),
                    !ok ? NONSENSE : receive ? IBV_WC_WITH_IMM() : 0);
            owners[slot] = owner;
            positions[slot] = position;
        }

        @SuppressWarnings("unused") // called by the driver's table
        int poll(long cq, int wanted, long completions) {
            try {
                Runnable action = whilePolling;
                if (action != null) {
                    action.run();
                }
                synchronized (VerbsDouble.this) {
                    return take(wanted, completions);
                }
            } catch (Throwable thrown) {
                return -broke(thrown);
            }
        }

        private int take(int wanted, long completions) {
            if (failingPolls > 0) {
                failingPolls--;
                return -1;
            }
            if (overflowed) {
                return -1;
            }
            int taken = Math.min(wanted, pending());
            for (int i = 0; i < taken; i++) {
                int slot = (int) (head++ % entries);
                MemorySegment.copy(
                        ring,
                        slot * ibv_wc.sizeof(),
                        ALL,
                        completions + i * ibv_wc.sizeof(),
                        ibv_wc.sizeof());
                Pair owner = owners[slot];
                if (owner != null) {
                    owner.retired = Math.max(owner.retired, positions[slot] + 1);
                }
            }
            return taken;
        }
    }

    /**
     * A queue pair. Its send queue holds copies of the requests by position: {@code retired <= done
     * <= tail}, where done is what has been carried out or ended otherwise.
     */
    private final class Pair implements QueuePair.ControlVerbs {
        final int number;
        final Queue queue;
        final QueuePairOptions options;
        final QueuePair queuePair;
        final MemorySegment requests;
        final MemorySegment entries;
        final long[] sequences;
        final ArrayDeque<Long> receives = new ArrayDeque<>();
        int state = IBV_QPS_RTS();
        boolean destroyed;
        long retired;
        long done;
        long tail;

        Pair(int number, QueuePairOptions options, Queue queue) {
            this.number = number;
            this.queue = queue;
            this.options = options;
            requests = ibv_send_wr.allocateArray(options.sendRequests(), arena);
            entries =
                    ibv_sge.allocateArray((long) options.sendRequests() * options.sendSge(), arena);
            sequences = new long[options.sendRequests()];
            MemorySegment qp = ibv_qp.allocate(arena);
            ibv_qp.context(
                    qp,
                    context(
                            this,
                            new String[] {"postSend", "postReceive"},
                            new FunctionDescriptor[] {POST, POST}));
            ibv_qp.qp_num(qp, number);
            queuePair = QueuePair.wrap(qp, options, this);
        }

        int slot(long position) {
            return (int) (position % options.sendRequests());
        }

        /** Which request of the device the oldest one outstanding here is. */
        long sequence() {
            return sequences[slot(done)];
        }

        // --- Driver calls ---

        @SuppressWarnings("unused") // called by the driver's table
        int postSend(long qp, long first, long badRequest) {
            try {
                Runnable action = whilePosting;
                if (action != null) {
                    action.run();
                }
                synchronized (VerbsDouble.this) {
                    return takeSends(first, badRequest);
                }
            } catch (Throwable thrown) {
                return broke(thrown);
            }
        }

        private int takeSends(long first, long badRequest) {
            doorbells++;
            if (destroyed) {
                throw new AssertionError("post to queue pair " + number + ", which is destroyed");
            }
            Refusal refusal = refusals.poll();
            int count = 0;
            for (long wr = first;
                    wr != 0;
                    wr = ALL.get(JAVA_LONG, wr + ibv_send_wr.next$offset())) {
                int errno = errno(wr);
                boolean saysWhich = true;
                if (errno == 0 && refusal != null && count == refusal.accepted) {
                    errno = refusal.errno;
                    saysWhich = refusal.saysWhich;
                }
                if (errno != 0) {
                    if (saysWhich) {
                        ALL.set(JAVA_LONG, badRequest, wr);
                    }
                    return errno;
                }
                take(wr);
                count++;
            }
            return 0;
        }

        private int errno(long wr) {
            if (state != IBV_QPS_RTS() && state != IBV_QPS_ERR()) {
                return Errno.EINVAL;
            }
            if (tail - retired >= options.sendRequests()) {
                return Errno.ENOMEM;
            }
            int pieces = ALL.get(JAVA_INT, wr + ibv_send_wr.num_sge$offset());
            return pieces < 0 || pieces > options.sendSge() ? Errno.EINVAL : 0;
        }

        private void take(long wr) {
            int slot = slot(tail);
            long pieces = ALL.get(JAVA_LONG, wr + ibv_send_wr.sg_list$offset());
            long pieceBytes =
                    ALL.get(JAVA_INT, wr + ibv_send_wr.num_sge$offset()) * ibv_sge.sizeof();
            MemorySegment.copy(
                    ALL, wr, requests, slot * ibv_send_wr.sizeof(), ibv_send_wr.sizeof());
            MemorySegment.copy(ALL, pieces, entries, entryOffset(slot, 0), pieceBytes);
            sequences[slot] = accepted++;
            tail++;
            if (recording) {
                log.add(decode(slot));
            }
            if (state == IBV_QPS_ERR()) {
                flush();
            } else if (!holding) {
                carryOutNext();
            }
        }

        @SuppressWarnings("unused") // called by the driver's table
        int postReceive(long qp, long first, long badRequest) {
            try {
                synchronized (VerbsDouble.this) {
                    return takeReceives(first, badRequest);
                }
            } catch (Throwable thrown) {
                return broke(thrown);
            }
        }

        private int takeReceives(long first, long badRequest) {
            long wr = first;
            while (wr != 0) {
                if (receives.size() >= options.receiveRequests()) {
                    ALL.set(JAVA_LONG, badRequest, wr);
                    return Errno.ENOMEM;
                }
                receives.add(ALL.get(JAVA_LONG, wr + ibv_recv_wr.wr_id$offset()));
                wr = ALL.get(JAVA_LONG, wr + ibv_recv_wr.next$offset());
            }
            if (state == IBV_QPS_ERR()) {
                flush();
            }
            return 0;
        }

        @Override
        public int modify(MemorySegment qp, MemorySegment attr, int mask) {
            synchronized (VerbsDouble.this) {
                if (failingModifyErrno != 0) {
                    int errno = failingModifyErrno;
                    failingModifyErrno = 0;
                    return errno;
                }
                state = ibv_qp_attr.qp_state(attr);
                if (state == IBV_QPS_ERR()) {
                    flush();
                } else if (state == IBV_QPS_RESET()) {
                    done = tail;
                    retired = tail;
                    receives.clear();
                }
                return 0;
            }
        }

        @Override
        public int destroy(MemorySegment qp) {
            synchronized (VerbsDouble.this) {
                if (failingDestroys > 0) {
                    failingDestroys--;
                    return Errno.EBUSY;
                }
                destroyed = true;
                done = tail;
                return 0;
            }
        }

        // --- The device ---

        void carryOutNext() {
            int slot = slot(done);
            int status = sequences[slot] == failingAt ? failingStatus : move(slot);
            if (status != SUCCESS) {
                fail(status);
                return;
            }
            if ((field(slot, ibv_send_wr.send_flags$offset()) & IBV_SEND_SIGNALED()) != 0) {
                complete(status);
            } else {
                done++;
            }
        }

        void fail(int status) {
            state = IBV_QPS_ERR();
            if (done < tail) {
                complete(status);
            }
            flush();
        }

        private void flush() {
            while (done < tail) {
                complete(FLUSHED);
            }
            while (!receives.isEmpty()) {
                queue.add(this, receives.remove(), FLUSHED, 0, -1, 0, 0);
            }
        }

        private void complete(int status) {
            int slot = slot(done);
            boolean read = field(slot, ibv_send_wr.opcode$offset()) == IBV_WR_RDMA_READ();
            queue.add(
                    this,
                    requests.get(
                            JAVA_LONG, slot * ibv_send_wr.sizeof() + ibv_send_wr.wr_id$offset()),
                    status,
                    read ? IBV_WC_RDMA_READ() : IBV_WC_RDMA_WRITE(),
                    done,
                    0,
                    0);
            done++;
        }

        private int move(int slot) {
            if (memory.isEmpty()) {
                return SUCCESS;
            }
            int pieces = field(slot, ibv_send_wr.num_sge$offset());
            long remote = requests.get(JAVA_LONG, slot * ibv_send_wr.sizeof() + REMOTE_ADDRESS);
            int remoteKey = field(slot, REMOTE_KEY);
            boolean read = field(slot, ibv_send_wr.opcode$offset()) == IBV_WR_RDMA_READ();
            long total = 0;
            for (int i = 0; i < pieces; i++) {
                long at = entryOffset(slot, i);
                long address = entries.get(JAVA_LONG, at + ibv_sge.addr$offset());
                long length = length(at);
                int key = entries.get(JAVA_INT, at + ibv_sge.lkey$offset());
                if (!declared(address, length, key, true)) {
                    return CompletionStatus.LOCAL_PROTECTION.ordinal();
                }
                total += length;
            }
            if (total > 0 && !declared(remote, total, remoteKey, false)) {
                return CompletionStatus.REMOTE_ACCESS.ordinal();
            }
            for (int i = 0; i < pieces; i++) {
                long at = entryOffset(slot, i);
                long local = entries.get(JAVA_LONG, at + ibv_sge.addr$offset());
                long length = length(at);
                MemorySegment.copy(ALL, read ? remote : local, ALL, read ? local : remote, length);
                remote += length;
            }
            return SUCCESS;
        }

        private boolean declared(long address, long lengthBytes, int key, boolean local) {
            for (int i = 0; i < memory.size(); i++) {
                Memory range = memory.get(i);
                if (key == (local ? range.localKey : range.remoteKey)
                        && range.holds(address, lengthBytes)) {
                    return true;
                }
            }
            return false;
        }

        private PostedRequest decode(int slot) {
            MemorySegment wr = requests.asSlice(slot * ibv_send_wr.sizeof(), ibv_send_wr.sizeof());
            List<Piece> pieces = new ArrayList<>();
            for (int i = 0; i < ibv_send_wr.num_sge(wr); i++) {
                MemorySegment sge = entries.asSlice(entryOffset(slot, i), ibv_sge.sizeof());
                pieces.add(new Piece(ibv_sge.addr(sge), ibv_sge.length(sge), ibv_sge.lkey(sge)));
            }
            return new PostedRequest(
                    number,
                    ibv_send_wr.wr_id(wr),
                    ibv_send_wr.opcode(wr),
                    ibv_send_wr.send_flags(wr),
                    wr.get(JAVA_LONG, REMOTE_ADDRESS),
                    wr.get(JAVA_INT, REMOTE_KEY),
                    Integer.reverseBytes(ibv_send_wr.imm_data(wr)),
                    List.copyOf(pieces));
        }

        private int field(int slot, long offset) {
            return requests.get(JAVA_INT, slot * ibv_send_wr.sizeof() + offset);
        }

        private long length(long entryOffset) {
            return Integer.toUnsignedLong(
                    entries.get(JAVA_INT, entryOffset + ibv_sge.length$offset()));
        }

        private long entryOffset(int slot, int entry) {
            return ((long) slot * options.sendSge() + entry) * ibv_sge.sizeof();
        }
    }
}
