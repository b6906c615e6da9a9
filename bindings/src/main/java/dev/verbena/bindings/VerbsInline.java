package dev.verbena.bindings;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.verbena.bindings.ibverbs.ibv_context;
import dev.verbena.bindings.ibverbs.ibv_context_ops;
import dev.verbena.bindings.ibverbs.ibv_gid_entry;
import dev.verbena.bindings.ibverbs.ibv_mr;
import dev.verbena.bindings.ibverbs.ibv_mw;
import dev.verbena.bindings.ibverbs.ibv_mw_bind;
import dev.verbena.bindings.ibverbs.ibv_mw_bind_info;
import dev.verbena.bindings.ibverbs.ibv_port_attr;
import dev.verbena.bindings.ibverbs.ibv_wc;
import dev.verbena.bindings.ibverbs.ibv_wq;
import dev.verbena.bindings.ibverbs.ibverbs_constants;
import dev.verbena.bindings.ibverbs.verbs_context;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * The functions that C inlines over the classic context: posting, polling and arming above all,
 * which call the provider through the function table of the object's context.
 *
 * <p>Posting, polling and arming come twice. With segments, the call checks that they are alive and
 * keeps them so until it returns. With addresses, nothing is checked and nothing is allocated: a
 * bad or freed address ends the process. Both do one native call and neither captures errno, since
 * these functions return their status; {@link VerbsCalls#errno()} says nothing about them.
 *
 * <p>No handle here is a {@code critical} one, which would save some nanoseconds of a thread state
 * transition but would hold up the JVM's safepoints for as long as the call takes. A provider may
 * ring its doorbell by a system call (soft-RoCE does in {@code ibv_post_send}), and every provider
 * takes a lock, on which {@code ibv_poll_cq} too may wait for another thread.
 *
 * <p>Safe for use by many threads, as libibverbs is. Calls on one queue by several threads wait for
 * each other.
 */
@SuppressWarnings("MemberName") // C names
public final class VerbsInline {
    private static final long OPS = ibv_context.ops$offset();
    private static final long POST_SEND = OPS + ibv_context_ops.post_send$offset();
    private static final long POST_RECV = OPS + ibv_context_ops.post_recv$offset();
    private static final long POST_SRQ_RECV = OPS + ibv_context_ops.post_srq_recv$offset();
    private static final long POLL_CQ = OPS + ibv_context_ops.poll_cq$offset();
    private static final long REQ_NOTIFY_CQ = OPS + ibv_context_ops.req_notify_cq$offset();
    private static final long ALLOC_MW = OPS + ibv_context_ops.alloc_mw$offset();
    private static final long BIND_MW = OPS + ibv_context_ops.bind_mw$offset();
    private static final long DEALLOC_MW = OPS + ibv_context_ops.dealloc_mw$offset();
    private static final long WQ_POST_RECV = ibv_wq.post_recv$offset();
    private static final long WC_BYTES = ibv_wc.sizeof();

    private static final MethodHandle POST_ADDRESSES =
            Dispatch.byAddress(FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle POLL_ADDRESSES =
            Dispatch.byAddress(FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_INT, JAVA_LONG));
    private static final MethodHandle NOTIFY_ADDRESSES =
            Dispatch.byAddress(FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_INT));

    /**
     * Linked when first used: linking is most of what it takes to open a device, and programs call
     * the data path either by segments or by addresses.
     */
    private static final class BySegments {
        static final MethodHandle POST =
                Dispatch.handle(FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS));
        static final MethodHandle POLL =
                Dispatch.handle(FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, ADDRESS));
        static final MethodHandle NOTIFY =
                Dispatch.handle(FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
    }

    private VerbsInline() {}

    // --- Posting ---------------------------------------------------------------------------------

    /**
     * Posts a chain of work requests to a send queue. C calls {@code post_send} of the context's
     * table.
     *
     * <p>A failure does not mean that nothing was posted: the requests before the one at {@code
     * badWr} were. The chain itself may be reused at once; the memory that it points to may not,
     * until its completion is polled, unless it was sent inline.
     *
     * <p>Verb: ibv_post_send(3)
     *
     * @param qp the queue pair
     * @param wr the first {@code ibv_send_wr} of the chain
     * @param badWr room for one pointer, filled with the first request not posted if the call fails
     * @return 0, or a positive errno value: ENOMEM if the queue is full, EINVAL for a bad request
     */
    public static int ibv_post_send(MemorySegment qp, MemorySegment wr, MemorySegment badWr) {
        return post(POST_SEND, qp, wr, badWr);
    }

    /**
     * Posts a chain of work requests to a send queue, by addresses: unchecked, without allocation.
     *
     * <p>Verb: ibv_post_send(3)
     *
     * @param qp address of the queue pair
     * @param wr address of the first {@code ibv_send_wr} of the chain
     * @param badWr address of room for one pointer
     * @return 0, or a positive errno value
     * @see #ibv_post_send(MemorySegment, MemorySegment, MemorySegment)
     */
    public static int ibv_post_send(long qp, long wr, long badWr) {
        return post(POST_SEND, qp, wr, badWr);
    }

    /**
     * Posts a chain of work requests to a receive queue. C calls {@code post_recv} of the context's
     * table.
     *
     * <p>Verb: ibv_post_recv(3)
     *
     * @param qp the queue pair
     * @param wr the first {@code ibv_recv_wr} of the chain
     * @param badWr room for one pointer, filled with the first request not posted if the call fails
     * @return 0, or a positive errno value
     */
    public static int ibv_post_recv(MemorySegment qp, MemorySegment wr, MemorySegment badWr) {
        return post(POST_RECV, qp, wr, badWr);
    }

    /**
     * Posts a chain of work requests to a receive queue, by addresses: unchecked, without
     * allocation.
     *
     * <p>Verb: ibv_post_recv(3)
     *
     * @param qp address of the queue pair
     * @param wr address of the first {@code ibv_recv_wr} of the chain
     * @param badWr address of room for one pointer
     * @return 0, or a positive errno value
     * @see #ibv_post_recv(MemorySegment, MemorySegment, MemorySegment)
     */
    public static int ibv_post_recv(long qp, long wr, long badWr) {
        return post(POST_RECV, qp, wr, badWr);
    }

    /**
     * Posts a chain of work requests to a shared receive queue. C calls {@code post_srq_recv} of
     * the context's table.
     *
     * <p>Verb: ibv_post_srq_recv(3)
     *
     * @param srq the shared receive queue
     * @param wr the first {@code ibv_recv_wr} of the chain
     * @param badWr room for one pointer, filled with the first request not posted if the call fails
     * @return 0, or a positive errno value
     */
    public static int ibv_post_srq_recv(MemorySegment srq, MemorySegment wr, MemorySegment badWr) {
        return post(POST_SRQ_RECV, srq, wr, badWr);
    }

    /**
     * Posts a chain of work requests to a shared receive queue, by addresses: unchecked, without
     * allocation.
     *
     * <p>Verb: ibv_post_srq_recv(3)
     *
     * @param srq address of the shared receive queue
     * @param wr address of the first {@code ibv_recv_wr} of the chain
     * @param badWr address of room for one pointer
     * @return 0, or a positive errno value
     * @see #ibv_post_srq_recv(MemorySegment, MemorySegment, MemorySegment)
     */
    public static int ibv_post_srq_recv(long srq, long wr, long badWr) {
        return post(POST_SRQ_RECV, srq, wr, badWr);
    }

    /**
     * Posts a chain of work requests to a work queue of its own. C calls {@code post_recv} of the
     * work queue itself.
     *
     * <p>Verb: ibv_post_wq_recv, see ibv_create_wq(3)
     *
     * @param wq the work queue
     * @param wr the first {@code ibv_recv_wr} of the chain
     * @param badWr room for one pointer, filled with the first request not posted if the call fails
     * @return 0, or a positive errno value
     */
    public static int ibv_post_wq_recv(MemorySegment wq, MemorySegment wr, MemorySegment badWr) {
        try {
            MemorySegment function = Dispatch.function(wq.address() + WQ_POST_RECV);
            return Dispatch.positive((int) BySegments.POST.invokeExact(function, wq, wr, badWr));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    private static int post(
            long offset, MemorySegment queue, MemorySegment wr, MemorySegment badWr) {
        try {
            MemorySegment function = Dispatch.function(Dispatch.contextOf(queue) + offset);
            return Dispatch.positive((int) BySegments.POST.invokeExact(function, queue, wr, badWr));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    private static int post(long offset, long queue, long wr, long badWr) {
        try {
            long function = Dispatch.pointer(Dispatch.pointer(queue) + offset);
            return Dispatch.positive((int) POST_ADDRESSES.invokeExact(function, queue, wr, badWr));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Completions -----------------------------------------------------------------------------

    /**
     * Takes completions off a queue. C calls {@code poll_cq} of the context's table.
     *
     * <p>Fewer than asked for means that the queue was empty for a moment. Only {@code wr_id},
     * {@code status}, {@code qp_num} and {@code vendor_err} are set when the status is not success.
     *
     * <p>Verb: ibv_poll_cq(3)
     *
     * @param cq the completion queue
     * @param entries completions wanted at most, at least 1
     * @param wc array with room for as many {@code ibv_wc}
     * @return completions taken, or a negative value: the provider's, seldom an errno value
     * @throws IndexOutOfBoundsException if the array is too short for {@code entries}
     */
    public static int ibv_poll_cq(MemorySegment cq, int entries, MemorySegment wc) {
        if (wc.byteSize() < entries * WC_BYTES) {
            throw new IndexOutOfBoundsException(
                    entries + " completions do not fit into " + wc.byteSize() + " bytes");
        }
        try {
            MemorySegment function = Dispatch.function(Dispatch.contextOf(cq) + POLL_CQ);
            return (int) BySegments.POLL.invokeExact(function, cq, entries, wc);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Takes completions off a queue, by addresses: unchecked, without allocation.
     *
     * <p>Verb: ibv_poll_cq(3)
     *
     * @param cq address of the completion queue
     * @param entries completions wanted at most, at least 1
     * @param wc address of an array with room for as many {@code ibv_wc}
     * @return completions taken, or a negative value
     * @see #ibv_poll_cq(MemorySegment, int, MemorySegment)
     */
    public static int ibv_poll_cq(long cq, int entries, long wc) {
        try {
            long function = Dispatch.pointer(Dispatch.pointer(cq) + POLL_CQ);
            return (int) POLL_ADDRESSES.invokeExact(function, cq, entries, wc);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Asks for one event on the queue's channel when the next completion arrives. C calls {@code
     * req_notify_cq} of the context's table. A completion that arrived before gives no event, so
     * poll once more after arming and before waiting.
     *
     * <p>Verb: ibv_req_notify_cq(3)
     *
     * @param cq the completion queue
     * @param solicitedOnly whether only solicited and failed completions count, 0 or 1
     * @return 0, or a positive errno value
     */
    public static int ibv_req_notify_cq(MemorySegment cq, int solicitedOnly) {
        try {
            MemorySegment function = Dispatch.function(Dispatch.contextOf(cq) + REQ_NOTIFY_CQ);
            return Dispatch.positive(
                    (int) BySegments.NOTIFY.invokeExact(function, cq, solicitedOnly));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Asks for one event when the next completion arrives, by address: unchecked, without
     * allocation.
     *
     * <p>Verb: ibv_req_notify_cq(3)
     *
     * @param cq address of the completion queue
     * @param solicitedOnly whether only solicited and failed completions count, 0 or 1
     * @return 0, or a positive errno value
     * @see #ibv_req_notify_cq(MemorySegment, int)
     */
    public static int ibv_req_notify_cq(long cq, int solicitedOnly) {
        try {
            long function = Dispatch.pointer(Dispatch.pointer(cq) + REQ_NOTIFY_CQ);
            return Dispatch.positive(
                    (int) NOTIFY_ADDRESSES.invokeExact(function, cq, solicitedOnly));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Memory windows --------------------------------------------------------------------------

    /** Linked when first used, as few programs have windows. */
    private static final class Windows {
        static final MethodHandle ALLOC =
                Dispatch.capturing(FunctionDescriptor.of(ADDRESS, ADDRESS, JAVA_INT));
        static final MethodHandle BIND =
                Dispatch.capturing(FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS));
        static final MethodHandle DEALLOC =
                Dispatch.capturing(FunctionDescriptor.of(JAVA_INT, ADDRESS));
    }

    /**
     * Allocates a memory window. C fails with EOPNOTSUPP if the context's table has no {@code
     * alloc_mw}, and else calls it.
     *
     * <p>Verb: ibv_alloc_mw(3)
     *
     * @param pd the protection domain
     * @param type {@code IBV_MW_TYPE_1} or {@code IBV_MW_TYPE_2}
     * @return the window, {@code ibv_mw}, or {@code NULL} with {@link VerbsCalls#errno()}
     */
    public static MemorySegment ibv_alloc_mw(MemorySegment pd, int type) {
        MemorySegment function = Dispatch.function(Dispatch.contextOf(pd) + ALLOC_MW);
        if (function.address() == 0) {
            ThreadState.errno(Errno.EOPNOTSUPP);
            return MemorySegment.NULL;
        }
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            Windows.ALLOC.invokeExact(function, ThreadState.capture(), pd, type),
                    ibv_mw.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Binds a window of type 1 to part of a memory region. C refuses a window of another type
     * (EINVAL), an address or a length without a region (EINVAL) and a region of another protection
     * domain (EPERM), and else calls {@code bind_mw} of the context's table. Windows of type 2 are
     * bound by a work request.
     *
     * <p>Verb: ibv_bind_mw(3)
     *
     * @param qp the queue pair whose send queue the bind goes through
     * @param mw the window; its {@code rkey} changes
     * @param bind an {@code ibv_mw_bind}
     * @return 0, or a positive errno value; EOPNOTSUPP where C would call a function that is not
     *     there
     */
    public static int ibv_bind_mw(MemorySegment qp, MemorySegment mw, MemorySegment bind) {
        MemorySegment window = Dispatch.view(mw, ibv_mw.sizeof());
        if (ibv_mw.type(window) != ibverbs_constants.IBV_MW_TYPE_1()) {
            return ThreadState.status(Errno.EINVAL);
        }
        MemorySegment info = ibv_mw_bind.bind_info(Dispatch.view(bind, ibv_mw_bind.sizeof()));
        MemorySegment mr = ibv_mw_bind_info.mr(info);
        if (mr.address() == 0) {
            if (ibv_mw_bind_info.addr(info) != 0 || ibv_mw_bind_info.length(info) != 0) {
                return ThreadState.status(Errno.EINVAL);
            }
        } else if (ibv_mw.pd(window).address() != ibv_mr.pd(mr).address()) {
            return ThreadState.status(Errno.EPERM);
        }
        MemorySegment function = Dispatch.function(Dispatch.contextOf(mw) + BIND_MW);
        if (function.address() == 0) {
            return ThreadState.status(Errno.EOPNOTSUPP);
        }
        try {
            return ThreadState.status(
                    (int) Windows.BIND.invokeExact(function, ThreadState.capture(), qp, mw, bind));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Frees a memory window. C calls {@code dealloc_mw} of the context's table.
     *
     * <p>Verb: ibv_dealloc_mw(3)
     *
     * @param mw the window
     * @return 0, or a positive errno value; EOPNOTSUPP where C would call a function that is not
     *     there
     */
    public static int ibv_dealloc_mw(MemorySegment mw) {
        MemorySegment function = Dispatch.function(Dispatch.contextOf(mw) + DEALLOC_MW);
        if (function.address() == 0) {
            return ThreadState.status(Errno.EOPNOTSUPP);
        }
        try {
            return ThreadState.status(
                    (int) Windows.DEALLOC.invokeExact(function, ThreadState.capture(), mw));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Gives the next key of a window of type 2, as each bind must use a new one: C counts up the
     * lowest byte, which wraps, and leaves the rest.
     *
     * <p>Verb: ibv_inc_rkey(3)
     *
     * @param rkey the window's key
     * @return the key for the next bind
     */
    public static int ibv_inc_rkey(int rkey) {
        return (rkey & ~0xff) | ((rkey + 1) & 0xff);
    }

    // --- Macros over exported functions ----------------------------------------------------------

    /** The entry of the extended context that {@link #ibv_query_port} prefers. */
    private static final ExtendedOp QUERY_PORT =
            new ExtendedOp(
                    verbs_context.query_port$offset(), verbs_context.query_port.descriptor());

    /**
     * Reads the state of a port. The C macro of this name calls {@code query_port} of the extended
     * context with the size of the struct; without that entry it zeroes the struct and calls the
     * exported function, which fills the older, shorter part.
     *
     * <p>Verb: ibv_query_port(3)
     *
     * @param context the device's {@code ibv_context}
     * @param portNum port of the device, counted from 1
     * @param attr an {@code ibv_port_attr}, filled on success
     * @return 0, or a positive errno value
     */
    public static int ibv_query_port(MemorySegment context, byte portNum, MemorySegment attr) {
        MemorySegment struct = attr.asSlice(0, ibv_port_attr.sizeof());
        MemorySegment function = QUERY_PORT.in(context.address());
        if (function.address() == 0) {
            struct.fill((byte) 0);
            return VerbsCalls.ibv_query_port(context, portNum, struct);
        }
        try {
            return ThreadState.status(
                    (int)
                            QUERY_PORT
                                    .handle()
                                    .invokeExact(
                                            function,
                                            ThreadState.capture(),
                                            context,
                                            portNum,
                                            struct,
                                            struct.byteSize()));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Registers memory. The C macro of this name takes the exported {@code ibv_reg_mr}, or {@code
     * ibv_reg_mr_iova2} for access flags of the optional range, as only that drops flags which the
     * kernel does not know. A library without the latter gets the flags dropped here.
     *
     * <p>Verb: ibv_reg_mr(3)
     *
     * @param pd the protection domain
     * @param address first byte of the memory, which must stay allocated until it is deregistered
     * @param length bytes
     * @param access {@code IBV_ACCESS_*} flags, or-ed
     * @return the memory region, {@code ibv_mr}, or {@code NULL} with {@link VerbsCalls#errno()}
     */
    public static MemorySegment ibv_reg_mr(
            MemorySegment pd, MemorySegment address, long length, int access) {
        int optional = ibverbs_constants.IBV_ACCESS_OPTIONAL_RANGE();
        if ((access & optional) == 0) {
            return VerbsCalls.ibv_reg_mr(pd, address, length, access);
        }
        if (!VerbsLibrary.has("ibv_reg_mr_iova2")) {
            return VerbsCalls.ibv_reg_mr(pd, address, length, access & ~optional);
        }
        return VerbsCalls.ibv_reg_mr_iova2(pd, address, length, address.address(), access);
    }

    /**
     * Registers memory under addresses of the caller's choice. The C macro of this name chooses
     * between two exported functions as {@link #ibv_reg_mr} does.
     *
     * <p>Verb: ibv_reg_mr(3)
     *
     * @param pd the protection domain
     * @param address first byte of the memory, which must stay allocated until it is deregistered
     * @param length bytes
     * @param iova address that work requests use for the first byte
     * @param access {@code IBV_ACCESS_*} flags, or-ed
     * @return the memory region, {@code ibv_mr}, or {@code NULL} with {@link VerbsCalls#errno()}
     */
    public static MemorySegment ibv_reg_mr_iova(
            MemorySegment pd, MemorySegment address, long length, long iova, int access) {
        int optional = ibverbs_constants.IBV_ACCESS_OPTIONAL_RANGE();
        if ((access & optional) == 0) {
            return VerbsCalls.ibv_reg_mr_iova(pd, address, length, iova, access);
        }
        if (!VerbsLibrary.has("ibv_reg_mr_iova2")) {
            return VerbsCalls.ibv_reg_mr_iova(pd, address, length, iova, access & ~optional);
        }
        return VerbsCalls.ibv_reg_mr_iova2(pd, address, length, iova, access);
    }

    /**
     * Reads one entry of the GID table with its type. C passes the size of its struct to the
     * exported function whose name starts with an underscore.
     *
     * <p>Verb: ibv_query_gid_ex(3)
     *
     * @param context the device's {@code ibv_context}
     * @param portNum port of the device, counted from 1
     * @param gidIndex index in the GID table, from 0
     * @param entry an {@code ibv_gid_entry}, filled on success
     * @param flags must be 0
     * @return 0, or a positive errno value: ENODATA for an empty entry
     */
    public static int ibv_query_gid_ex(
            MemorySegment context, int portNum, int gidIndex, MemorySegment entry, int flags) {
        return VerbsCalls._ibv_query_gid_ex(
                context, portNum, gidIndex, entry, flags, ibv_gid_entry.sizeof());
    }

    /**
     * Reads the valid entries of all GID tables of a device. C passes the size of its struct to the
     * exported function whose name starts with an underscore.
     *
     * <p>Verb: ibv_query_gid_table(3)
     *
     * @param context the device's {@code ibv_context}
     * @param entries array of {@code ibv_gid_entry}; its size says how many
     * @param flags must be 0
     * @return entries filled, or a negative errno value
     */
    public static long ibv_query_gid_table(
            MemorySegment context, MemorySegment entries, int flags) {
        long size = ibv_gid_entry.sizeof();
        return VerbsCalls._ibv_query_gid_table(
                context, entries, entries.byteSize() / size, flags, size);
    }

    // --- Arithmetic ------------------------------------------------------------------------------

    /**
     * Tells whether a set of queue pair types, as the capability structs hold it, has one type. C
     * tests the bit with the type's number.
     *
     * <p>Verb: ibv_is_qpt_supported, which has no manual page
     *
     * @param types the set
     * @param type an {@code IBV_QPT_*} value
     * @return 1 if so, else 0
     */
    public static int ibv_is_qpt_supported(int types, int type) {
        return (types >>> type) & 1;
    }

    /**
     * Gives the UDP source port that RoCE v2 derives from a flow label. C folds the upper 6 bits of
     * the 20 onto the lower 14 and sets the two bits that make a dynamic port.
     *
     * <p>Verb: ibv_flow_label_to_udp_sport(3)
     *
     * @param flowLabel the flow label, 20 bits
     * @return the port, unsigned in 16 bits
     */
    public static short ibv_flow_label_to_udp_sport(int flowLabel) {
        int folded = (flowLabel & 0x3fff) ^ ((flowLabel & 0xfc000) >>> 14);
        return (short) (folded | ibverbs_constants.IB_ROCE_UDP_ENCAP_VALID_PORT_MIN());
    }
}
