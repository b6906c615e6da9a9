package dev.verbena.bindings;

import dev.verbena.bindings.ibverbs.ibv_cq;
import dev.verbena.bindings.ibverbs.ibv_cq_ex;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * The functions that C inlines over the function table of an {@code ibv_cq_ex}: they read
 * completions field by field, and more fields than {@code ibv_wc} has. Each calls the member of its
 * name with the same arguments.
 *
 * <p>{@link ExtendedVerbs#ibv_create_cq_ex} makes such a queue, and its {@code wc_flags} say which
 * fields can be read. {@code wr_id} and {@code status} of the completion are fields of the struct.
 *
 * <p>One thread reads, from {@link #ibv_start_poll} to {@link #ibv_end_poll}. Calls allocate
 * nothing once compiled, and do not capture errno.
 */
@SuppressWarnings("MemberName") // C names
public final class ExtendedPolling {
    private static final MethodHandle START_POLL =
            Dispatch.handle(ibv_cq_ex.start_poll.descriptor());
    private static final MethodHandle NEXT_POLL = Dispatch.handle(ibv_cq_ex.next_poll.descriptor());
    private static final MethodHandle END_POLL = Dispatch.handle(ibv_cq_ex.end_poll.descriptor());
    private static final MethodHandle READ_OPCODE =
            Dispatch.handle(ibv_cq_ex.read_opcode.descriptor());
    private static final MethodHandle READ_VENDOR_ERR =
            Dispatch.handle(ibv_cq_ex.read_vendor_err.descriptor());
    private static final MethodHandle READ_BYTE_LEN =
            Dispatch.handle(ibv_cq_ex.read_byte_len.descriptor());
    private static final MethodHandle READ_IMM_DATA =
            Dispatch.handle(ibv_cq_ex.read_imm_data.descriptor());
    private static final MethodHandle READ_QP_NUM =
            Dispatch.handle(ibv_cq_ex.read_qp_num.descriptor());
    private static final MethodHandle READ_SRC_QP =
            Dispatch.handle(ibv_cq_ex.read_src_qp.descriptor());
    private static final MethodHandle READ_WC_FLAGS =
            Dispatch.handle(ibv_cq_ex.read_wc_flags.descriptor());
    private static final MethodHandle READ_SLID = Dispatch.handle(ibv_cq_ex.read_slid.descriptor());
    private static final MethodHandle READ_SL = Dispatch.handle(ibv_cq_ex.read_sl.descriptor());
    private static final MethodHandle READ_DLID_PATH_BITS =
            Dispatch.handle(ibv_cq_ex.read_dlid_path_bits.descriptor());
    private static final MethodHandle READ_COMPLETION_TS =
            Dispatch.handle(ibv_cq_ex.read_completion_ts.descriptor());
    private static final MethodHandle READ_COMPLETION_WALLCLOCK_NS =
            Dispatch.handle(ibv_cq_ex.read_completion_wallclock_ns.descriptor());
    private static final MethodHandle READ_CVLAN =
            Dispatch.handle(ibv_cq_ex.read_cvlan.descriptor());
    private static final MethodHandle READ_FLOW_TAG =
            Dispatch.handle(ibv_cq_ex.read_flow_tag.descriptor());
    private static final MethodHandle READ_TM_INFO =
            Dispatch.handle(ibv_cq_ex.read_tm_info.descriptor());

    private ExtendedPolling() {}

    /**
     * Gives the classic view of a completion queue, for the calls that take one: arming, events,
     * destruction. C casts the pointer.
     *
     * <p>Verb: ibv_cq_ex_to_cq, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return the same address, as an {@code ibv_cq}
     */
    public static MemorySegment ibv_cq_ex_to_cq(MemorySegment cq) {
        return Dispatch.view(cq, ibv_cq.sizeof()).asSlice(0, ibv_cq.sizeof());
    }

    // --- Moving through the queue ----------------------------------------------------------------

    /**
     * Starts to read completions, and stands on the first. On success the queue's lock may be held
     * until {@link #ibv_end_poll}, which must follow; after a failure it must not.
     *
     * <p>Verb: ibv_start_poll, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @param attr an {@code ibv_poll_cq_attr}
     * @return 0, or a positive errno value: ENOENT if the queue is empty
     */
    public static int ibv_start_poll(MemorySegment cq, MemorySegment attr) {
        try {
            MemorySegment function =
                    Dispatch.function(cq.address() + ibv_cq_ex.start_poll$offset());
            return Dispatch.positive((int) START_POLL.invokeExact(function, cq, attr));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Moves on to the next completion.
     *
     * <p>Verb: ibv_next_poll, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return 0, or a positive errno value: ENOENT if there is no further one
     */
    public static int ibv_next_poll(MemorySegment cq) {
        try {
            MemorySegment function = Dispatch.function(cq.address() + ibv_cq_ex.next_poll$offset());
            return Dispatch.positive((int) NEXT_POLL.invokeExact(function, cq));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Stops reading, and hands the entries back to the device.
     *
     * <p>Verb: ibv_end_poll, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     */
    public static void ibv_end_poll(MemorySegment cq) {
        try {
            MemorySegment function = Dispatch.function(cq.address() + ibv_cq_ex.end_poll$offset());
            END_POLL.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Reading the completion stood on ---------------------------------------------------------

    /**
     * Reads what kind of request completed. Good only if {@code status} is success.
     *
     * <p>Verb: ibv_wc_read_opcode, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return an {@code IBV_WC_*} opcode
     */
    public static int ibv_wc_read_opcode(MemorySegment cq) {
        try {
            MemorySegment function =
                    Dispatch.function(cq.address() + ibv_cq_ex.read_opcode$offset());
            return (int) READ_OPCODE.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the provider's own code of an error.
     *
     * <p>Verb: ibv_wc_read_vendor_err, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return the code
     */
    public static int ibv_wc_read_vendor_err(MemorySegment cq) {
        try {
            MemorySegment function =
                    Dispatch.function(cq.address() + ibv_cq_ex.read_vendor_err$offset());
            return (int) READ_VENDOR_ERR.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads how much was received.
     *
     * <p>Verb: ibv_wc_read_byte_len, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return bytes, unsigned
     */
    public static int ibv_wc_read_byte_len(MemorySegment cq) {
        try {
            MemorySegment function =
                    Dispatch.function(cq.address() + ibv_cq_ex.read_byte_len$offset());
            return (int) READ_BYTE_LEN.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads immediate data.
     *
     * <p>Verb: ibv_wc_read_imm_data, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return the data in network byte order
     */
    public static int ibv_wc_read_imm_data(MemorySegment cq) {
        try {
            MemorySegment function =
                    Dispatch.function(cq.address() + ibv_cq_ex.read_imm_data$offset());
            return (int) READ_IMM_DATA.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the key that the peer invalidated. C reads the immediate data, which share the field.
     *
     * <p>Verb: ibv_wc_read_invalidated_rkey, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return the key
     */
    public static int ibv_wc_read_invalidated_rkey(MemorySegment cq) {
        try {
            MemorySegment function =
                    Dispatch.function(cq.address() + ibv_cq_ex.read_imm_data$offset());
            return (int) READ_IMM_DATA.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads which queue pair the completion belongs to.
     *
     * <p>Verb: ibv_wc_read_qp_num, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return the number of the queue pair
     */
    public static int ibv_wc_read_qp_num(MemorySegment cq) {
        try {
            MemorySegment function =
                    Dispatch.function(cq.address() + ibv_cq_ex.read_qp_num$offset());
            return (int) READ_QP_NUM.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads which queue pair sent a datagram.
     *
     * <p>Verb: ibv_wc_read_src_qp, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return the number of the queue pair
     */
    public static int ibv_wc_read_src_qp(MemorySegment cq) {
        try {
            MemorySegment function =
                    Dispatch.function(cq.address() + ibv_cq_ex.read_src_qp$offset());
            return (int) READ_SRC_QP.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the flags of the completion.
     *
     * <p>Verb: ibv_wc_read_wc_flags, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return {@code IBV_WC_*} flags, or-ed
     */
    public static int ibv_wc_read_wc_flags(MemorySegment cq) {
        try {
            MemorySegment function =
                    Dispatch.function(cq.address() + ibv_cq_ex.read_wc_flags$offset());
            return (int) READ_WC_FLAGS.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the source LID.
     *
     * <p>Verb: ibv_wc_read_slid, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return the LID
     */
    public static int ibv_wc_read_slid(MemorySegment cq) {
        try {
            MemorySegment function = Dispatch.function(cq.address() + ibv_cq_ex.read_slid$offset());
            return (int) READ_SLID.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the service level.
     *
     * <p>Verb: ibv_wc_read_sl, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return the service level
     */
    public static byte ibv_wc_read_sl(MemorySegment cq) {
        try {
            MemorySegment function = Dispatch.function(cq.address() + ibv_cq_ex.read_sl$offset());
            return (byte) READ_SL.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the path bits of the destination LID.
     *
     * <p>Verb: ibv_wc_read_dlid_path_bits, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return the bits
     */
    public static byte ibv_wc_read_dlid_path_bits(MemorySegment cq) {
        try {
            MemorySegment function =
                    Dispatch.function(cq.address() + ibv_cq_ex.read_dlid_path_bits$offset());
            return (byte) READ_DLID_PATH_BITS.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads when the request completed.
     *
     * <p>Verb: ibv_wc_read_completion_ts, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return device clock cycles
     */
    public static long ibv_wc_read_completion_ts(MemorySegment cq) {
        try {
            MemorySegment function =
                    Dispatch.function(cq.address() + ibv_cq_ex.read_completion_ts$offset());
            return (long) READ_COMPLETION_TS.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads when the request completed.
     *
     * <p>Verb: ibv_wc_read_completion_wallclock_ns, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return nanoseconds of the wall clock
     */
    public static long ibv_wc_read_completion_wallclock_ns(MemorySegment cq) {
        try {
            MemorySegment function =
                    Dispatch.function(
                            cq.address() + ibv_cq_ex.read_completion_wallclock_ns$offset());
            return (long) READ_COMPLETION_WALLCLOCK_NS.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the VLAN tag of a packet.
     *
     * <p>Verb: ibv_wc_read_cvlan, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return the tag
     */
    public static short ibv_wc_read_cvlan(MemorySegment cq) {
        try {
            MemorySegment function =
                    Dispatch.function(cq.address() + ibv_cq_ex.read_cvlan$offset());
            return (short) READ_CVLAN.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the tag of the flow that a packet matched.
     *
     * <p>Verb: ibv_wc_read_flow_tag, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @return the tag
     */
    public static int ibv_wc_read_flow_tag(MemorySegment cq) {
        try {
            MemorySegment function =
                    Dispatch.function(cq.address() + ibv_cq_ex.read_flow_tag$offset());
            return (int) READ_FLOW_TAG.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the tag matching information.
     *
     * <p>Verb: ibv_wc_read_tm_info, see ibv_create_cq_ex(3)
     *
     * @param cq the completion queue, {@code ibv_cq_ex}
     * @param info an {@code ibv_wc_tm_info}, filled
     */
    public static void ibv_wc_read_tm_info(MemorySegment cq, MemorySegment info) {
        try {
            MemorySegment function =
                    Dispatch.function(cq.address() + ibv_cq_ex.read_tm_info$offset());
            READ_TM_INFO.invokeExact(function, cq, info);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }
}
