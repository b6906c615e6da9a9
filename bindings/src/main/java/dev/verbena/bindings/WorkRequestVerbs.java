package dev.verbena.bindings;

import dev.verbena.bindings.ibverbs.ibv_qp_ex;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * The functions that C inlines over the function table of an {@code ibv_qp_ex}: they build a batch
 * of work requests one call at a time. Each calls the member of its name with the same arguments.
 *
 * <p>A queue pair has the table if {@link ExtendedVerbs#ibv_create_qp_ex} made it with {@code
 * send_ops_flags} and {@link VerbsCalls#ibv_qp_to_qp_ex} gave this view of it, and it has the
 * operations that those flags named. The settings of a request come from the struct: {@code wr_id}
 * and {@code wr_flags} before the operation, then the addressing, then the local memory.
 *
 * <p>A chain of requests costs one native call through {@link VerbsInline#ibv_post_send} and at
 * least two for each request here: this is for what only the table offers.
 *
 * <p>One thread builds a batch, from {@link #ibv_wr_start} to its end. Calls allocate nothing once
 * compiled, and do not capture errno.
 */
@SuppressWarnings("MemberName") // C names
public final class WorkRequestVerbs {
    private static final MethodHandle WR_START = Dispatch.handle(ibv_qp_ex.wr_start.descriptor());
    private static final MethodHandle WR_COMPLETE =
            Dispatch.handle(ibv_qp_ex.wr_complete.descriptor());
    private static final MethodHandle WR_ABORT = Dispatch.handle(ibv_qp_ex.wr_abort.descriptor());
    private static final MethodHandle WR_RDMA_WRITE =
            Dispatch.handle(ibv_qp_ex.wr_rdma_write.descriptor());
    private static final MethodHandle WR_RDMA_WRITE_IMM =
            Dispatch.handle(ibv_qp_ex.wr_rdma_write_imm.descriptor());
    private static final MethodHandle WR_RDMA_READ =
            Dispatch.handle(ibv_qp_ex.wr_rdma_read.descriptor());
    private static final MethodHandle WR_SEND = Dispatch.handle(ibv_qp_ex.wr_send.descriptor());
    private static final MethodHandle WR_SEND_IMM =
            Dispatch.handle(ibv_qp_ex.wr_send_imm.descriptor());
    private static final MethodHandle WR_SEND_INV =
            Dispatch.handle(ibv_qp_ex.wr_send_inv.descriptor());
    private static final MethodHandle WR_SEND_TSO =
            Dispatch.handle(ibv_qp_ex.wr_send_tso.descriptor());
    private static final MethodHandle WR_ATOMIC_CMP_SWP =
            Dispatch.handle(ibv_qp_ex.wr_atomic_cmp_swp.descriptor());
    private static final MethodHandle WR_ATOMIC_FETCH_ADD =
            Dispatch.handle(ibv_qp_ex.wr_atomic_fetch_add.descriptor());
    private static final MethodHandle WR_ATOMIC_WRITE =
            Dispatch.handle(ibv_qp_ex.wr_atomic_write.descriptor());
    private static final MethodHandle WR_BIND_MW =
            Dispatch.handle(ibv_qp_ex.wr_bind_mw.descriptor());
    private static final MethodHandle WR_LOCAL_INV =
            Dispatch.handle(ibv_qp_ex.wr_local_inv.descriptor());
    private static final MethodHandle WR_SET_UD_ADDR =
            Dispatch.handle(ibv_qp_ex.wr_set_ud_addr.descriptor());
    private static final MethodHandle WR_SET_XRC_SRQN =
            Dispatch.handle(ibv_qp_ex.wr_set_xrc_srqn.descriptor());
    private static final MethodHandle WR_SET_SGE =
            Dispatch.handle(ibv_qp_ex.wr_set_sge.descriptor());
    private static final MethodHandle WR_SET_SGE_LIST =
            Dispatch.handle(ibv_qp_ex.wr_set_sge_list.descriptor());
    private static final MethodHandle WR_SET_INLINE_DATA =
            Dispatch.handle(ibv_qp_ex.wr_set_inline_data.descriptor());
    private static final MethodHandle WR_SET_INLINE_DATA_LIST =
            Dispatch.handle(ibv_qp_ex.wr_set_inline_data_list.descriptor());

    private WorkRequestVerbs() {}

    // --- Building a batch ------------------------------------------------------------------------

    /**
     * Starts a batch of work requests. It holds the queue pair's lock until {@link
     * #ibv_wr_complete} or {@link #ibv_wr_abort}, so no other thread can post meanwhile, and
     * neither must be forgotten.
     *
     * <p>Verb: ibv_wr_start(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     */
    public static void ibv_wr_start(MemorySegment qp) {
        try {
            MemorySegment function = Dispatch.function(qp.address() + ibv_qp_ex.wr_start$offset());
            WR_START.invokeExact(function, qp);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Posts the batch. If any request was bad, none is posted.
     *
     * <p>Verb: ibv_wr_complete(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @return 0, or a positive errno value
     */
    public static int ibv_wr_complete(MemorySegment qp) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_complete$offset());
            return Dispatch.positive((int) WR_COMPLETE.invokeExact(function, qp));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Drops the batch.
     *
     * <p>Verb: ibv_wr_abort(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     */
    public static void ibv_wr_abort(MemorySegment qp) {
        try {
            MemorySegment function = Dispatch.function(qp.address() + ibv_qp_ex.wr_abort$offset());
            WR_ABORT.invokeExact(function, qp);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Operations, each of which starts a request of the batch ---------------------------------

    /**
     * Adds an RDMA write.
     *
     * <p>Verb: ibv_wr_rdma_write(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param rkey remote key
     * @param remoteAddress address at the peer
     */
    public static void ibv_wr_rdma_write(MemorySegment qp, int rkey, long remoteAddress) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_rdma_write$offset());
            WR_RDMA_WRITE.invokeExact(function, qp, rkey, remoteAddress);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Adds an RDMA write that consumes a receive at the peer and hands it immediate data.
     *
     * <p>Verb: ibv_wr_rdma_write_imm(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param rkey remote key
     * @param remoteAddress address at the peer
     * @param immData immediate data in network byte order
     */
    public static void ibv_wr_rdma_write_imm(
            MemorySegment qp, int rkey, long remoteAddress, int immData) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_rdma_write_imm$offset());
            WR_RDMA_WRITE_IMM.invokeExact(function, qp, rkey, remoteAddress, immData);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Adds an RDMA read.
     *
     * <p>Verb: ibv_wr_rdma_read(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param rkey remote key
     * @param remoteAddress address at the peer
     */
    public static void ibv_wr_rdma_read(MemorySegment qp, int rkey, long remoteAddress) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_rdma_read$offset());
            WR_RDMA_READ.invokeExact(function, qp, rkey, remoteAddress);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Adds a send.
     *
     * <p>Verb: ibv_wr_send(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     */
    public static void ibv_wr_send(MemorySegment qp) {
        try {
            MemorySegment function = Dispatch.function(qp.address() + ibv_qp_ex.wr_send$offset());
            WR_SEND.invokeExact(function, qp);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Adds a send with immediate data.
     *
     * <p>Verb: ibv_wr_send_imm(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param immData immediate data in network byte order
     */
    public static void ibv_wr_send_imm(MemorySegment qp, int immData) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_send_imm$offset());
            WR_SEND_IMM.invokeExact(function, qp, immData);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Adds a send that invalidates a key at the peer.
     *
     * <p>Verb: ibv_wr_send_inv(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param invalidateRkey key to invalidate at the peer
     */
    public static void ibv_wr_send_inv(MemorySegment qp, int invalidateRkey) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_send_inv$offset());
            WR_SEND_INV.invokeExact(function, qp, invalidateRkey);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Adds a send that the device cuts into segments.
     *
     * <p>Verb: ibv_wr_send_tso(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param header headers of the packet
     * @param headerSize bytes of the headers
     * @param mss bytes of payload in a segment
     */
    public static void ibv_wr_send_tso(
            MemorySegment qp, MemorySegment header, short headerSize, short mss) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_send_tso$offset());
            WR_SEND_TSO.invokeExact(function, qp, header, headerSize, mss);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Adds a compare and swap of 8 bytes.
     *
     * <p>Verb: ibv_wr_atomic_cmp_swp(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param rkey remote key
     * @param remoteAddress address at the peer
     * @param compare value to compare with
     * @param swap value to set if they are equal
     */
    public static void ibv_wr_atomic_cmp_swp(
            MemorySegment qp, int rkey, long remoteAddress, long compare, long swap) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_atomic_cmp_swp$offset());
            WR_ATOMIC_CMP_SWP.invokeExact(function, qp, rkey, remoteAddress, compare, swap);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Adds a fetch and add of 8 bytes.
     *
     * <p>Verb: ibv_wr_atomic_fetch_add(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param rkey remote key
     * @param remoteAddress address at the peer
     * @param add value to add
     */
    public static void ibv_wr_atomic_fetch_add(
            MemorySegment qp, int rkey, long remoteAddress, long add) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_atomic_fetch_add$offset());
            WR_ATOMIC_FETCH_ADD.invokeExact(function, qp, rkey, remoteAddress, add);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Adds a write of 8 bytes that a reader sees at once or not at all.
     *
     * <p>Verb: ibv_wr_atomic_write, see ibv_wr_post(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param rkey remote key
     * @param remoteAddress address at the peer
     * @param value the 8 bytes to write
     */
    public static void ibv_wr_atomic_write(
            MemorySegment qp, int rkey, long remoteAddress, MemorySegment value) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_atomic_write$offset());
            WR_ATOMIC_WRITE.invokeExact(function, qp, rkey, remoteAddress, value);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Adds the binding of a memory window.
     *
     * <p>Verb: ibv_wr_bind_mw(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param mw the window, of type 2
     * @param rkey remote key
     * @param bindInfo an {@code ibv_mw_bind_info}
     */
    public static void ibv_wr_bind_mw(
            MemorySegment qp, MemorySegment mw, int rkey, MemorySegment bindInfo) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_bind_mw$offset());
            WR_BIND_MW.invokeExact(function, qp, mw, rkey, bindInfo);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Adds the invalidation of a key of this side.
     *
     * <p>Verb: ibv_wr_local_inv(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param invalidateRkey key to invalidate
     */
    public static void ibv_wr_local_inv(MemorySegment qp, int invalidateRkey) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_local_inv$offset());
            WR_LOCAL_INV.invokeExact(function, qp, invalidateRkey);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Addressing of the request that was added last -------------------------------------------

    /**
     * Sets the destination of a datagram.
     *
     * <p>Verb: ibv_wr_set_ud_addr(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param ah address handle
     * @param remoteQpn queue pair number of the peer
     * @param remoteQkey Q_Key of the peer
     */
    public static void ibv_wr_set_ud_addr(
            MemorySegment qp, MemorySegment ah, int remoteQpn, int remoteQkey) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_set_ud_addr$offset());
            WR_SET_UD_ADDR.invokeExact(function, qp, ah, remoteQpn, remoteQkey);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Sets the shared receive queue that an XRC request goes to.
     *
     * <p>Verb: ibv_wr_set_xrc_srqn(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param remoteSrqn number of the shared receive queue at the peer
     */
    public static void ibv_wr_set_xrc_srqn(MemorySegment qp, int remoteSrqn) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_set_xrc_srqn$offset());
            WR_SET_XRC_SRQN.invokeExact(function, qp, remoteSrqn);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Local memory of the request that was added last -----------------------------------------

    /**
     * Sets one piece of local memory.
     *
     * <p>Verb: ibv_wr_set_sge(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param lkey local key
     * @param address local address
     * @param length bytes
     */
    public static void ibv_wr_set_sge(MemorySegment qp, int lkey, long address, int length) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_set_sge$offset());
            WR_SET_SGE.invokeExact(function, qp, lkey, address, length);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Sets several pieces of local memory.
     *
     * <p>Verb: ibv_wr_set_sge_list(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param count entries of the array
     * @param sges array of {@code ibv_sge}
     */
    public static void ibv_wr_set_sge_list(MemorySegment qp, long count, MemorySegment sges) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_set_sge_list$offset());
            WR_SET_SGE_LIST.invokeExact(function, qp, count, sges);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Sets data that travel within the request.
     *
     * <p>Verb: ibv_wr_set_inline_data(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param address the data, copied before the call returns
     * @param length bytes
     */
    public static void ibv_wr_set_inline_data(
            MemorySegment qp, MemorySegment address, long length) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_set_inline_data$offset());
            WR_SET_INLINE_DATA.invokeExact(function, qp, address, length);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Sets data in several pieces that travel within the request.
     *
     * <p>Verb: ibv_wr_set_inline_data_list(3)
     *
     * @param qp the queue pair, {@code ibv_qp_ex}
     * @param count entries of the array
     * @param buffers array of {@code ibv_data_buf}
     */
    public static void ibv_wr_set_inline_data_list(
            MemorySegment qp, long count, MemorySegment buffers) {
        try {
            MemorySegment function =
                    Dispatch.function(qp.address() + ibv_qp_ex.wr_set_inline_data_list$offset());
            WR_SET_INLINE_DATA_LIST.invokeExact(function, qp, count, buffers);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }
}
