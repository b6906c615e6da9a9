package dev.verbena.bindings.testing;

import dev.verbena.bindings.Errno;
import dev.verbena.bindings.ibverbs.ibv_context;
import dev.verbena.bindings.ibverbs.ibv_context_ops;
import dev.verbena.bindings.ibverbs.ibv_cq;
import dev.verbena.bindings.ibverbs.ibv_cq_ex;
import dev.verbena.bindings.ibverbs.ibv_device;
import dev.verbena.bindings.ibverbs.ibv_mr;
import dev.verbena.bindings.ibverbs.ibv_mw;
import dev.verbena.bindings.ibverbs.ibv_pd;
import dev.verbena.bindings.ibverbs.ibv_qp;
import dev.verbena.bindings.ibverbs.ibv_qp_ex;
import dev.verbena.bindings.ibverbs.ibv_send_wr;
import dev.verbena.bindings.ibverbs.ibv_srq;
import dev.verbena.bindings.ibverbs.ibv_wc;
import dev.verbena.bindings.ibverbs.ibv_wq;
import dev.verbena.bindings.ibverbs.ibverbs_constants;
import dev.verbena.bindings.ibverbs.verbs_context;
import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A device without hardware: a context whose function table leads back into Java, and objects that
 * belong to it. Tests post to and poll these through the very code that drives a real device.
 *
 * <pre>{@code
 * try (DriverDouble driver = new DriverDouble()) {
 *     driver.onPostSend((qp, wr, badWr) -> 0);
 *     VerbsInline.ibv_post_send(driver.newQp(), wr, badWr);
 * }
 * }</pre>
 *
 * <p>A function that nobody set fails with EOPNOTSUPP. A function that throws fails with EIO, as an
 * exception must not pass through native code, and {@link #close} throws what it threw.
 *
 * <p>Its structs must not be passed to exported functions of libibverbs that look behind the public
 * struct, {@code ibv_destroy_qp} for one: a real provider has more there.
 *
 * <p>Functions run on the thread that calls them. Setting them is not synchronised with calls.
 */
public final class DriverDouble implements AutoCloseable {
    /** Posts a chain, and on failure stores the first request not posted. */
    @FunctionalInterface
    public interface Post {
        /**
         * Posts a chain of work requests.
         *
         * @param queue the queue pair or shared receive queue
         * @param wr the first work request, readable with the generated accessors
         * @param badWr room for one pointer
         * @return 0 or an errno value
         */
        int post(MemorySegment queue, MemorySegment wr, MemorySegment badWr);
    }

    /** Fills completions. */
    @FunctionalInterface
    public interface Poll {
        /**
         * Fills completions.
         *
         * @param cq the completion queue
         * @param entries completions wanted at most
         * @param wc array of {@code ibv_wc}
         * @return completions filled, or a negative value
         */
        int poll(MemorySegment cq, int entries, MemorySegment wc);
    }

    /** Arms a completion queue. */
    @FunctionalInterface
    public interface Notify {
        /**
         * Arms a completion queue.
         *
         * @param cq the completion queue
         * @param solicitedOnly 0 or 1
         * @return 0 or an errno value
         */
        int notify(MemorySegment cq, int solicitedOnly);
    }

    private static final Post NO_POST = (queue, wr, badWr) -> Errno.EOPNOTSUPP;
    private static final Poll NO_POLL = (cq, entries, wc) -> -Errno.EOPNOTSUPP;
    private static final Notify NO_NOTIFY = (cq, solicitedOnly) -> Errno.EOPNOTSUPP;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment extended = verbs_context.allocate(arena);
    private final MemorySegment context = verbs_context.context(extended);

    private volatile Post postSend = NO_POST;
    private volatile Post postRecv = NO_POST;
    private volatile Post postSrqRecv = NO_POST;
    private volatile Poll pollCq = NO_POLL;
    private volatile Notify reqNotifyCq = NO_NOTIFY;
    private volatile @Nullable Throwable failure;
    private int lastNumber;

    /** Makes a device with a classic context; {@link #extend} makes it an extended one. */
    public DriverDouble() {
        ibv_context.device(context, ibv_device.allocate(arena));
        ibv_context.num_comp_vectors(context, 1);
        ibv_context.async_fd(context, -1);
        ibv_context.cmd_fd(context, -1);
        MemorySegment ops = ops();
        ibv_context_ops.post_send(
                ops,
                ibv_context_ops.post_send.allocate(
                        (qp, wr, badWr) -> post(postSend, qp, wr, badWr), arena));
        ibv_context_ops.post_recv(
                ops,
                ibv_context_ops.post_recv.allocate(
                        (qp, wr, badWr) -> post(postRecv, qp, wr, badWr), arena));
        ibv_context_ops.post_srq_recv(
                ops,
                ibv_context_ops.post_srq_recv.allocate(
                        (srq, wr, badWr) -> post(postSrqRecv, srq, wr, badWr), arena));
        ibv_context_ops.poll_cq(ops, ibv_context_ops.poll_cq.allocate(this::poll, arena));
        ibv_context_ops.req_notify_cq(
                ops, ibv_context_ops.req_notify_cq.allocate(this::reqNotify, arena));
    }

    private int post(Post function, MemorySegment queue, MemorySegment wr, MemorySegment badWr) {
        try {
            return function.post(queue, wr, badWr);
        } catch (Throwable thrown) {
            failure = thrown;
            return Errno.EIO;
        }
    }

    private int poll(MemorySegment cq, int entries, MemorySegment wc) {
        try {
            return pollCq.poll(cq, entries, wc);
        } catch (Throwable thrown) {
            failure = thrown;
            return -Errno.EIO;
        }
    }

    private int reqNotify(MemorySegment cq, int solicitedOnly) {
        try {
            return reqNotifyCq.notify(cq, solicitedOnly);
        } catch (Throwable thrown) {
            failure = thrown;
            return Errno.EIO;
        }
    }

    /**
     * Sets what {@code ibv_post_send} does.
     *
     * @param function the function
     */
    public void onPostSend(Post function) {
        postSend = function;
    }

    /**
     * Sets what {@code ibv_post_recv} does.
     *
     * @param function the function
     */
    public void onPostRecv(Post function) {
        postRecv = function;
    }

    /**
     * Sets what {@code ibv_post_srq_recv} does.
     *
     * @param function the function
     */
    public void onPostSrqRecv(Post function) {
        postSrqRecv = function;
    }

    /**
     * Sets what {@code ibv_poll_cq} does.
     *
     * @param function the function
     */
    public void onPollCq(Poll function) {
        pollCq = function;
    }

    /**
     * Sets what {@code ibv_req_notify_cq} does.
     *
     * @param function the function
     */
    public void onReqNotifyCq(Notify function) {
        reqNotifyCq = function;
    }

    /**
     * Replaces the five functions of the data path by one of the C library that does nothing much
     * and returns 0, {@code sched_yield}. Calls then come back without a trip through Java, whose
     * upcalls allocate: for tests that count allocations and for timing.
     */
    public void useNativeNoOp() {
        MemorySegment nothing = Linker.nativeLinker().defaultLookup().findOrThrow("sched_yield");
        MemorySegment ops = ops();
        ibv_context_ops.post_send(ops, nothing);
        ibv_context_ops.post_recv(ops, nothing);
        ibv_context_ops.post_srq_recv(ops, nothing);
        ibv_context_ops.poll_cq(ops, nothing);
        ibv_context_ops.req_notify_cq(ops, nothing);
    }

    /**
     * Marks the context as an extended one.
     *
     * @param sizeBytes what it claims as its size; {@code verbs_context.sizeof()} for one of our
     *     header's version, less for an older provider
     */
    public void extend(long sizeBytes) {
        verbs_context.sz(extended, sizeBytes);
        ibv_context.abi_compat(context, ibverbs_constants.__VERBS_ABI_IS_EXTENDED());
    }

    /** The arena of all structs and stubs, closed with this object. */
    public Arena arena() {
        return arena;
    }

    /** The device's {@code ibv_context}. */
    public MemorySegment context() {
        return context;
    }

    /** The {@code verbs_context} around it, for setting entries by the generated accessors. */
    public MemorySegment extendedContext() {
        return extended;
    }

    /** The context's {@code ibv_context_ops}, for setting entries by the generated accessors. */
    public MemorySegment ops() {
        return ibv_context.ops(context);
    }

    /** Makes an {@code ibv_pd}. */
    public MemorySegment newPd() {
        MemorySegment pd = ibv_pd.allocate(arena);
        ibv_pd.context(pd, context);
        return pd;
    }

    /**
     * Makes an {@code ibv_mr} with keys of its own.
     *
     * @param pd its protection domain
     * @param memory what it covers
     */
    public MemorySegment newMr(MemorySegment pd, MemorySegment memory) {
        MemorySegment mr = ibv_mr.allocate(arena);
        ibv_mr.context(mr, context);
        ibv_mr.pd(mr, pd);
        ibv_mr.addr(mr, memory);
        ibv_mr.length(mr, memory.byteSize());
        int number = ++lastNumber;
        ibv_mr.lkey(mr, number);
        ibv_mr.rkey(mr, number);
        return mr;
    }

    /**
     * Makes an {@code ibv_mw}.
     *
     * @param pd its protection domain
     * @param type {@code IBV_MW_TYPE_1} or {@code IBV_MW_TYPE_2}
     */
    public MemorySegment newMw(MemorySegment pd, int type) {
        MemorySegment mw = ibv_mw.allocate(arena);
        ibv_mw.context(mw, context);
        ibv_mw.pd(mw, pd);
        ibv_mw.type(mw, type);
        return mw;
    }

    /**
     * Makes an {@code ibv_cq}.
     *
     * @param entries its capacity
     */
    public MemorySegment newCq(int entries) {
        MemorySegment cq = ibv_cq.allocate(arena);
        ibv_cq.context(cq, context);
        ibv_cq.cqe(cq, entries);
        return cq;
    }

    /** Makes an {@code ibv_cq_ex}, with a table of functions that a test fills in. */
    public MemorySegment newCqEx() {
        MemorySegment cq = ibv_cq_ex.allocate(arena);
        ibv_cq_ex.context(cq, context);
        return cq;
    }

    /** Makes an {@code ibv_qp} of type RC in the state RTS, with a number of its own. */
    public MemorySegment newQp() {
        return initQp(ibv_qp.allocate(arena));
    }

    /** Makes an {@code ibv_qp_ex}, with a table of functions that a test fills in. */
    public MemorySegment newQpEx() {
        MemorySegment qp = ibv_qp_ex.allocate(arena);
        initQp(ibv_qp_ex.qp_base(qp));
        return qp;
    }

    private MemorySegment initQp(MemorySegment qp) {
        ibv_qp.context(qp, context);
        ibv_qp.qp_num(qp, ++lastNumber);
        ibv_qp.qp_type(qp, ibverbs_constants.IBV_QPT_RC());
        ibv_qp.state(qp, ibverbs_constants.IBV_QPS_RTS());
        return qp;
    }

    /** Makes an {@code ibv_srq}. */
    public MemorySegment newSrq() {
        MemorySegment srq = ibv_srq.allocate(arena);
        ibv_srq.context(srq, context);
        return srq;
    }

    /** Makes an {@code ibv_wq}, with a {@code post_recv} that a test fills in. */
    public MemorySegment newWq() {
        MemorySegment wq = ibv_wq.allocate(arena);
        ibv_wq.context(wq, context);
        return wq;
    }

    /**
     * Fills one completion.
     *
     * @param wc array of {@code ibv_wc}, as {@link Poll} gets it
     * @param index which one
     * @param wrId id of the work request
     * @param status {@code IBV_WC_*} status
     * @param opcode {@code IBV_WC_*} opcode
     * @param qpNum number of its queue pair
     */
    public static void complete(
            MemorySegment wc, int index, long wrId, int status, int opcode, int qpNum) {
        // Not ibv_wc.asSlice, whose slices reach to the end of all memory here.
        MemorySegment entry = wc.asSlice(index * ibv_wc.sizeof(), ibv_wc.sizeof());
        entry.fill((byte) 0);
        ibv_wc.wr_id(entry, wrId);
        ibv_wc.status(entry, status);
        ibv_wc.opcode(entry, opcode);
        ibv_wc.qp_num(entry, qpNum);
    }

    /**
     * Walks a chain of send work requests.
     *
     * @param first the first {@code ibv_send_wr}, as {@link Post} gets it
     * @return all of them, in order, each of the struct's size
     */
    public static List<MemorySegment> chain(MemorySegment first) {
        List<MemorySegment> chain = new ArrayList<>();
        for (MemorySegment wr = first; wr.address() != 0; wr = ibv_send_wr.next(wr)) {
            chain.add(wr.asSlice(0, ibv_send_wr.sizeof()));
        }
        return chain;
    }

    /** Frees everything, and throws an {@link AssertionError} if a function had thrown. */
    @Override
    public void close() {
        arena.close();
        Throwable thrown = failure;
        if (thrown != null) {
            throw new AssertionError("a function of the driver double threw", thrown);
        }
    }
}
