package dev.verbena.bindings;

import dev.verbena.bindings.ibverbs.ibv_counters;
import dev.verbena.bindings.ibverbs.ibv_cq_ex;
import dev.verbena.bindings.ibverbs.ibv_device_attr_ex;
import dev.verbena.bindings.ibverbs.ibv_dm;
import dev.verbena.bindings.ibverbs.ibv_mr;
import dev.verbena.bindings.ibverbs.ibv_pd;
import dev.verbena.bindings.ibverbs.ibv_qp;
import dev.verbena.bindings.ibverbs.ibv_qp_init_attr_ex;
import dev.verbena.bindings.ibverbs.ibv_query_device_ex_input;
import dev.verbena.bindings.ibverbs.ibv_rwq_ind_table;
import dev.verbena.bindings.ibverbs.ibv_srq;
import dev.verbena.bindings.ibverbs.ibv_srq_init_attr_ex;
import dev.verbena.bindings.ibverbs.ibv_td;
import dev.verbena.bindings.ibverbs.ibv_wq;
import dev.verbena.bindings.ibverbs.ibv_wq_init_attr;
import dev.verbena.bindings.ibverbs.ibv_xrcd;
import dev.verbena.bindings.ibverbs.ibverbs_constants;
import dev.verbena.bindings.ibverbs.verbs_context;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * The functions that C inlines over the extended context, which a provider may fill in part.
 *
 * <p>In all of them C first looks whether the context is an extended one, is large enough to have
 * the function, and has it set; if not, the call fails with EOPNOTSUPP, and else the function is
 * called with the same arguments. Only what a function does beyond that is said at the function.
 *
 * <p>Flow steering ({@code ibv_create_flow}, {@code ibv_create_flow_action_esp} and their kin) is
 * left out: its structs have variable length, and no transfer needs it.
 *
 * <p>Safe for use by many threads as far as the objects passed are. Control path: a call may wait
 * for the kernel.
 */
@SuppressWarnings("MemberName") // C names
public final class ExtendedVerbs {
    private static final ExtendedOp CREATE_QP_EX =
            new ExtendedOp(
                    verbs_context.create_qp_ex$offset(), verbs_context.create_qp_ex.descriptor());
    private static final ExtendedOp OPEN_QP =
            new ExtendedOp(verbs_context.open_qp$offset(), verbs_context.open_qp.descriptor());
    private static final ExtendedOp MODIFY_QP_RATE_LIMIT =
            new ExtendedOp(
                    verbs_context.modify_qp_rate_limit$offset(),
                    verbs_context.modify_qp_rate_limit.descriptor());
    private static final ExtendedOp CREATE_CQ_EX =
            new ExtendedOp(
                    verbs_context.create_cq_ex$offset(), verbs_context.create_cq_ex.descriptor());
    private static final ExtendedOp MODIFY_CQ =
            new ExtendedOp(verbs_context.modify_cq$offset(), verbs_context.modify_cq.descriptor());
    private static final ExtendedOp CREATE_SRQ_EX =
            new ExtendedOp(
                    verbs_context.create_srq_ex$offset(), verbs_context.create_srq_ex.descriptor());
    private static final ExtendedOp GET_SRQ_NUM =
            new ExtendedOp(
                    verbs_context.get_srq_num$offset(), verbs_context.get_srq_num.descriptor());
    private static final ExtendedOp POST_SRQ_OPS =
            new ExtendedOp(
                    verbs_context.post_srq_ops$offset(), verbs_context.post_srq_ops.descriptor());
    private static final ExtendedOp QUERY_DEVICE_EX =
            new ExtendedOp(
                    verbs_context.query_device_ex$offset(),
                    verbs_context.query_device_ex.descriptor());
    private static final ExtendedOp QUERY_RT_VALUES =
            new ExtendedOp(
                    verbs_context.query_rt_values$offset(),
                    verbs_context.query_rt_values.descriptor());
    private static final ExtendedOp ADVISE_MR =
            new ExtendedOp(verbs_context.advise_mr$offset(), verbs_context.advise_mr.descriptor());
    private static final ExtendedOp ALLOC_NULL_MR =
            new ExtendedOp(
                    verbs_context.alloc_null_mr$offset(), verbs_context.alloc_null_mr.descriptor());
    private static final ExtendedOp ALLOC_DM =
            new ExtendedOp(verbs_context.alloc_dm$offset(), verbs_context.alloc_dm.descriptor());
    private static final ExtendedOp FREE_DM =
            new ExtendedOp(verbs_context.free_dm$offset(), verbs_context.free_dm.descriptor());
    private static final ExtendedOp REG_DM_MR =
            new ExtendedOp(verbs_context.reg_dm_mr$offset(), verbs_context.reg_dm_mr.descriptor());
    private static final ExtendedOp ALLOC_TD =
            new ExtendedOp(verbs_context.alloc_td$offset(), verbs_context.alloc_td.descriptor());
    private static final ExtendedOp DEALLOC_TD =
            new ExtendedOp(
                    verbs_context.dealloc_td$offset(), verbs_context.dealloc_td.descriptor());
    private static final ExtendedOp ALLOC_PARENT_DOMAIN =
            new ExtendedOp(
                    verbs_context.alloc_parent_domain$offset(),
                    verbs_context.alloc_parent_domain.descriptor());
    private static final ExtendedOp OPEN_XRCD =
            new ExtendedOp(verbs_context.open_xrcd$offset(), verbs_context.open_xrcd.descriptor());
    private static final ExtendedOp CLOSE_XRCD =
            new ExtendedOp(
                    verbs_context.close_xrcd$offset(), verbs_context.close_xrcd.descriptor());
    private static final ExtendedOp CREATE_WQ =
            new ExtendedOp(verbs_context.create_wq$offset(), verbs_context.create_wq.descriptor());
    private static final ExtendedOp MODIFY_WQ =
            new ExtendedOp(verbs_context.modify_wq$offset(), verbs_context.modify_wq.descriptor());
    private static final ExtendedOp DESTROY_WQ =
            new ExtendedOp(
                    verbs_context.destroy_wq$offset(), verbs_context.destroy_wq.descriptor());
    private static final ExtendedOp CREATE_RWQ_IND_TABLE =
            new ExtendedOp(
                    verbs_context.create_rwq_ind_table$offset(),
                    verbs_context.create_rwq_ind_table.descriptor());
    private static final ExtendedOp DESTROY_RWQ_IND_TABLE =
            new ExtendedOp(
                    verbs_context.destroy_rwq_ind_table$offset(),
                    verbs_context.destroy_rwq_ind_table.descriptor());
    private static final ExtendedOp CREATE_COUNTERS =
            new ExtendedOp(
                    verbs_context.create_counters$offset(),
                    verbs_context.create_counters.descriptor());
    private static final ExtendedOp DESTROY_COUNTERS =
            new ExtendedOp(
                    verbs_context.destroy_counters$offset(),
                    verbs_context.destroy_counters.descriptor());
    private static final ExtendedOp ATTACH_COUNTERS_POINT_FLOW =
            new ExtendedOp(
                    verbs_context.attach_counters_point_flow$offset(),
                    verbs_context.attach_counters_point_flow.descriptor());
    private static final ExtendedOp READ_COUNTERS =
            new ExtendedOp(
                    verbs_context.read_counters$offset(), verbs_context.read_counters.descriptor());

    private ExtendedVerbs() {}

    /** Linked when first used, as few devices have memory of their own. */
    private static final class DeviceMemory {
        static final MethodHandle TO = Dispatch.capturing(ibv_dm.memcpy_to_dm.descriptor());
        static final MethodHandle FROM = Dispatch.capturing(ibv_dm.memcpy_from_dm.descriptor());
    }

    // --- Queue pairs -----------------------------------------------------------------------------

    /**
     * Makes a queue pair with more options, such as {@code send_ops_flags} for {@link
     * WorkRequestVerbs}. If nothing but the protection domain is asked for, C takes the exported
     * {@code ibv_create_qp}, as the struct starts like the older one.
     *
     * <p>Verb: ibv_create_qp_ex(3)
     *
     * @param context the device's {@code ibv_context}
     * @param initAttr an {@code ibv_qp_init_attr_ex}; {@code cap} is overwritten with the granted
     *     values
     * @return the queue pair, {@code ibv_qp}, or {@code NULL} with {@link VerbsCalls#errno()}:
     *     EOPNOTSUPP if the device does not have the function
     */
    public static MemorySegment ibv_create_qp_ex(MemorySegment context, MemorySegment initAttr) {
        MemorySegment struct = Dispatch.view(initAttr, ibv_qp_init_attr_ex.sizeof());
        if (ibv_qp_init_attr_ex.comp_mask(struct) == ibverbs_constants.IBV_QP_INIT_ATTR_PD()) {
            return VerbsCalls.ibv_create_qp(ibv_qp_init_attr_ex.pd(struct), initAttr);
        }
        return create(CREATE_QP_EX, context, initAttr, ibv_qp.sizeof());
    }

    /**
     * Opens a queue pair that is shared through an XRC domain.
     *
     * <p>Verb: ibv_open_qp(3)
     *
     * @param context the device's {@code ibv_context}
     * @param openAttr an {@code ibv_qp_open_attr}
     * @return the queue pair, {@code ibv_qp}, or {@code NULL} with {@link VerbsCalls#errno()}:
     *     EOPNOTSUPP if the device does not have the function
     */
    public static MemorySegment ibv_open_qp(MemorySegment context, MemorySegment openAttr) {
        return create(OPEN_QP, context, openAttr, ibv_qp.sizeof());
    }

    /**
     * Limits the rate at which a queue pair sends.
     *
     * <p>Verb: ibv_modify_qp_rate_limit(3)
     *
     * @param qp the queue pair
     * @param attr an {@code ibv_qp_rate_limit_attr}
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_modify_qp_rate_limit(MemorySegment qp, MemorySegment attr) {
        return run(MODIFY_QP_RATE_LIMIT, Dispatch.contextOf(qp), qp, attr);
    }

    // --- Completion queues -----------------------------------------------------------------------

    /**
     * Makes a completion queue that {@link ExtendedPolling} reads.
     *
     * <p>Verb: ibv_create_cq_ex(3)
     *
     * @param context the device's {@code ibv_context}
     * @param initAttr an {@code ibv_cq_init_attr_ex}
     * @return the completion queue, {@code ibv_cq_ex}, or {@code NULL} with {@link
     *     VerbsCalls#errno()}: EOPNOTSUPP if the device does not have the function
     */
    public static MemorySegment ibv_create_cq_ex(MemorySegment context, MemorySegment initAttr) {
        return create(CREATE_CQ_EX, context, initAttr, ibv_cq_ex.sizeof());
    }

    /**
     * Changes the moderation of a completion queue's events.
     *
     * <p>Verb: ibv_modify_cq(3)
     *
     * @param cq the completion queue
     * @param attr an {@code ibv_modify_cq_attr}
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_modify_cq(MemorySegment cq, MemorySegment attr) {
        return run(MODIFY_CQ, Dispatch.contextOf(cq), cq, attr);
    }

    // --- Shared receive queues -------------------------------------------------------------------

    /**
     * Makes a shared receive queue with more options. If nothing but the protection domain and the
     * basic type is asked for, C takes the exported {@code ibv_create_srq}, as the struct starts
     * like the older one.
     *
     * <p>Verb: ibv_create_srq_ex(3)
     *
     * @param context the device's {@code ibv_context}
     * @param initAttr an {@code ibv_srq_init_attr_ex}; its limits are overwritten with the granted
     *     ones
     * @return the shared receive queue, {@code ibv_srq}, or {@code NULL} with {@link
     *     VerbsCalls#errno()}: EOPNOTSUPP if the device does not have the function
     */
    public static MemorySegment ibv_create_srq_ex(MemorySegment context, MemorySegment initAttr) {
        MemorySegment struct = Dispatch.view(initAttr, ibv_srq_init_attr_ex.sizeof());
        int typeBit = ibverbs_constants.IBV_SRQ_INIT_ATTR_TYPE();
        int pdBit = ibverbs_constants.IBV_SRQ_INIT_ATTR_PD();
        int mask = ibv_srq_init_attr_ex.comp_mask(struct);
        boolean typed = (mask & typeBit) != 0;
        boolean basic = ibv_srq_init_attr_ex.srq_type(struct) == ibverbs_constants.IBV_SRQT_BASIC();
        if ((mask & ~typeBit) == pdBit && (!typed || basic)) {
            return VerbsCalls.ibv_create_srq(ibv_srq_init_attr_ex.pd(struct), initAttr);
        }
        return create(CREATE_SRQ_EX, context, initAttr, ibv_srq.sizeof());
    }

    /**
     * Tells the number of a shared receive queue, by which XRC senders address it.
     *
     * <p>Verb: ibv_get_srq_num(3)
     *
     * @param srq a shared receive queue of type XRC
     * @param number four bytes, filled on success
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_get_srq_num(MemorySegment srq, MemorySegment number) {
        return run(GET_SRQ_NUM, Dispatch.contextOf(srq), srq, number);
    }

    /**
     * Posts changes to the list of tags of a shared receive queue. Without the entry C blames the
     * first request.
     *
     * <p>Verb: ibv_post_srq_ops(3)
     *
     * @param srq a shared receive queue with tag matching
     * @param op the first {@code ibv_ops_wr} of a chain
     * @param badOp room for one pointer, filled with the first request not posted if the call fails
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_post_srq_ops(MemorySegment srq, MemorySegment op, MemorySegment badOp) {
        MemorySegment function = POST_SRQ_OPS.in(Dispatch.contextOf(srq));
        if (function.address() == 0) {
            badOp.set(ValueLayout.ADDRESS, 0, op);
            return ThreadState.status(Errno.EOPNOTSUPP);
        }
        try {
            return ThreadState.status(
                    (int)
                            POST_SRQ_OPS
                                    .handle()
                                    .invokeExact(function, ThreadState.capture(), srq, op, badOp));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Device ----------------------------------------------------------------------------------

    /**
     * Reads the extended capabilities of a device. C refuses any bit in {@code input} (EINVAL).
     * Where the entry is absent, or says EOPNOTSUPP or ENOSYS, it zeroes the struct and fills its
     * first part by {@code ibv_query_device}.
     *
     * <p>Verb: ibv_query_device_ex(3)
     *
     * @param context the device's {@code ibv_context}
     * @param input an {@code ibv_query_device_ex_input}, or {@code NULL}
     * @param attr an {@code ibv_device_attr_ex}, filled on success
     * @return 0, or a positive errno value
     */
    public static int ibv_query_device_ex(
            MemorySegment context, MemorySegment input, MemorySegment attr) {
        if (input.address() != 0) {
            MemorySegment asked = Dispatch.view(input, ibv_query_device_ex_input.sizeof());
            if (ibv_query_device_ex_input.comp_mask(asked) != 0) {
                return ThreadState.status(Errno.EINVAL);
            }
        }
        MemorySegment struct = attr.asSlice(0, ibv_device_attr_ex.sizeof());
        int status = queryDevice(context, input, struct);
        if (status == Errno.EOPNOTSUPP || status == Errno.ENOSYS) {
            struct.fill((byte) 0);
            return VerbsCalls.ibv_query_device(context, ibv_device_attr_ex.orig_attr(struct));
        }
        return status;
    }

    private static int queryDevice(
            MemorySegment context, MemorySegment input, MemorySegment struct) {
        MemorySegment function = QUERY_DEVICE_EX.in(context.address());
        if (function.address() == 0) {
            return ThreadState.status(Errno.EOPNOTSUPP);
        }
        try {
            return ThreadState.status(
                    (int)
                            QUERY_DEVICE_EX
                                    .handle()
                                    .invokeExact(
                                            function,
                                            ThreadState.capture(),
                                            context,
                                            input,
                                            struct,
                                            struct.byteSize()));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads values that a device has at this moment, for instance its clock.
     *
     * <p>Verb: ibv_query_rt_values_ex(3)
     *
     * @param context the device's {@code ibv_context}
     * @param values an {@code ibv_values_ex}; {@code comp_mask} says what is wanted, and then what
     *     was filled
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_query_rt_values_ex(MemorySegment context, MemorySegment values) {
        return run(QUERY_RT_VALUES, context.address(), context, values);
    }

    // --- Memory ----------------------------------------------------------------------------------

    /**
     * Advises the device about memory that will soon be used, with on-demand paging.
     *
     * <p>Verb: ibv_advise_mr(3)
     *
     * @param pd the protection domain
     * @param advice an {@code IBV_ADVISE_MR_ADVICE_*} value
     * @param flags {@code IBV_ADVISE_MR_FLAG_*}, or-ed
     * @param sges array of {@code ibv_sge}
     * @param sgeCount entries of the array
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_advise_mr(
            MemorySegment pd, int advice, int flags, MemorySegment sges, int sgeCount) {
        MemorySegment function = ADVISE_MR.in(Dispatch.contextOf(pd));
        if (function.address() == 0) {
            return ThreadState.status(Errno.EOPNOTSUPP);
        }
        try {
            return ThreadState.status(
                    (int)
                            ADVISE_MR
                                    .handle()
                                    .invokeExact(
                                            function,
                                            ThreadState.capture(),
                                            pd,
                                            advice,
                                            flags,
                                            sges,
                                            sgeCount));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Makes a region that swallows what is written to it and reads as zeros.
     *
     * <p>Verb: ibv_alloc_null_mr(3)
     *
     * @param pd the protection domain
     * @return the memory region, {@code ibv_mr}, or {@code NULL} with {@link VerbsCalls#errno()}:
     *     EOPNOTSUPP if the device does not have the function
     */
    public static MemorySegment ibv_alloc_null_mr(MemorySegment pd) {
        MemorySegment function = ALLOC_NULL_MR.in(Dispatch.contextOf(pd));
        if (function.address() == 0) {
            return notSupported();
        }
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            ALLOC_NULL_MR.handle().invokeExact(function, ThreadState.capture(), pd),
                    ibv_mr.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Allocates memory on the device.
     *
     * <p>Verb: ibv_alloc_dm(3)
     *
     * @param context the device's {@code ibv_context}
     * @param attr an {@code ibv_alloc_dm_attr}
     * @return the device memory, {@code ibv_dm}, or {@code NULL} with {@link VerbsCalls#errno()}:
     *     EOPNOTSUPP if the device does not have the function
     */
    public static MemorySegment ibv_alloc_dm(MemorySegment context, MemorySegment attr) {
        return create(ALLOC_DM, context, attr, ibv_dm.sizeof());
    }

    /**
     * Frees memory on the device.
     *
     * <p>Verb: ibv_free_dm(3)
     *
     * @param dm the device memory
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_free_dm(MemorySegment dm) {
        return run(FREE_DM, Dispatch.contextOf(dm), dm);
    }

    /**
     * Registers memory on the device.
     *
     * <p>Verb: ibv_reg_dm_mr(3)
     *
     * @param pd the protection domain
     * @param dm the device memory
     * @param offset first byte within the device memory
     * @param length bytes
     * @param access {@code IBV_ACCESS_*} flags, or-ed
     * @return the memory region, {@code ibv_mr}, or {@code NULL} with {@link VerbsCalls#errno()}:
     *     EOPNOTSUPP if the device does not have the function
     */
    public static MemorySegment ibv_reg_dm_mr(
            MemorySegment pd, MemorySegment dm, long offset, long length, int access) {
        MemorySegment function = REG_DM_MR.in(Dispatch.contextOf(pd));
        if (function.address() == 0) {
            return notSupported();
        }
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            REG_DM_MR
                                    .handle()
                                    .invokeExact(
                                            function,
                                            ThreadState.capture(),
                                            pd,
                                            dm,
                                            offset,
                                            length,
                                            access),
                    ibv_mr.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Copies to memory on the device. C calls the function that the struct itself holds.
     *
     * <p>Verb: ibv_memcpy_to_dm(3)
     *
     * @param dm the device memory
     * @param offset first byte within the device memory
     * @param from memory of the host
     * @param length bytes
     * @return 0, or a positive errno value
     */
    public static int ibv_memcpy_to_dm(
            MemorySegment dm, long offset, MemorySegment from, long length) {
        MemorySegment function = Dispatch.function(dm.address() + ibv_dm.memcpy_to_dm$offset());
        try {
            return ThreadState.status(
                    (int)
                            DeviceMemory.TO.invokeExact(
                                    function, ThreadState.capture(), dm, offset, from, length));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Copies from memory on the device. C calls the function that the struct itself holds.
     *
     * <p>Verb: ibv_memcpy_from_dm(3)
     *
     * @param to memory of the host
     * @param dm the device memory
     * @param offset first byte within the device memory
     * @param length bytes
     * @return 0, or a positive errno value
     */
    public static int ibv_memcpy_from_dm(
            MemorySegment to, MemorySegment dm, long offset, long length) {
        MemorySegment function = Dispatch.function(dm.address() + ibv_dm.memcpy_from_dm$offset());
        try {
            return ThreadState.status(
                    (int)
                            DeviceMemory.FROM.invokeExact(
                                    function, ThreadState.capture(), to, dm, offset, length));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Domains ---------------------------------------------------------------------------------

    /**
     * Allocates a thread domain: its objects are used by one thread at a time, so some providers
     * drop their locks.
     *
     * <p>Verb: ibv_alloc_td(3)
     *
     * @param context the device's {@code ibv_context}
     * @param initAttr an {@code ibv_td_init_attr}
     * @return the thread domain, {@code ibv_td}, or {@code NULL} with {@link VerbsCalls#errno()}:
     *     EOPNOTSUPP if the device does not have the function
     */
    public static MemorySegment ibv_alloc_td(MemorySegment context, MemorySegment initAttr) {
        return create(ALLOC_TD, context, initAttr, ibv_td.sizeof());
    }

    /**
     * Frees a thread domain.
     *
     * <p>Verb: ibv_dealloc_td(3)
     *
     * @param td the thread domain
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_dealloc_td(MemorySegment td) {
        return run(DEALLOC_TD, Dispatch.contextOf(td), td);
    }

    /**
     * Allocates a protection domain over another one and a thread domain. {@link
     * VerbsCalls#ibv_dealloc_pd} frees it.
     *
     * <p>Verb: ibv_alloc_parent_domain(3)
     *
     * @param context the device's {@code ibv_context}
     * @param attr an {@code ibv_parent_domain_init_attr}
     * @return the parent domain, {@code ibv_pd}, or {@code NULL} with {@link VerbsCalls#errno()}:
     *     EOPNOTSUPP if the device does not have the function
     */
    public static MemorySegment ibv_alloc_parent_domain(MemorySegment context, MemorySegment attr) {
        return create(ALLOC_PARENT_DOMAIN, context, attr, ibv_pd.sizeof());
    }

    /**
     * Opens an XRC domain, which processes share by a file.
     *
     * <p>Verb: ibv_open_xrcd(3)
     *
     * @param context the device's {@code ibv_context}
     * @param initAttr an {@code ibv_xrcd_init_attr}
     * @return the XRC domain, {@code ibv_xrcd}, or {@code NULL} with {@link VerbsCalls#errno()}:
     *     EOPNOTSUPP if the device does not have the function
     */
    public static MemorySegment ibv_open_xrcd(MemorySegment context, MemorySegment initAttr) {
        return create(OPEN_XRCD, context, initAttr, ibv_xrcd.sizeof());
    }

    /**
     * Closes an XRC domain. C calls the entry without a look at whether it is there; here it is
     * checked like the others.
     *
     * <p>Verb: ibv_close_xrcd(3)
     *
     * @param xrcd the XRC domain
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_close_xrcd(MemorySegment xrcd) {
        return run(CLOSE_XRCD, Dispatch.contextOf(xrcd), xrcd);
    }

    // --- Work queues -----------------------------------------------------------------------------

    /**
     * Makes a receive work queue of its own. C then sets the caller's context and resets the event
     * count, the mutex and the condition of the new struct; zeros do that for the latter two in the
     * C library of Linux.
     *
     * <p>Verb: ibv_create_wq(3)
     *
     * @param context the device's {@code ibv_context}
     * @param initAttr an {@code ibv_wq_init_attr}; its limits are overwritten with the granted ones
     * @return the work queue, {@code ibv_wq}, or {@code NULL} with {@link VerbsCalls#errno()}:
     *     EOPNOTSUPP if the device does not have the function
     */
    public static MemorySegment ibv_create_wq(MemorySegment context, MemorySegment initAttr) {
        MemorySegment wq = create(CREATE_WQ, context, initAttr, ibv_wq.sizeof());
        if (wq.address() != 0) {
            MemorySegment struct = Dispatch.view(initAttr, ibv_wq_init_attr.sizeof());
            ibv_wq.wq_context(wq, ibv_wq_init_attr.wq_context(struct));
            ibv_wq.events_completed(wq, 0);
            ibv_wq.mutex(wq).fill((byte) 0);
            ibv_wq.cond(wq).fill((byte) 0);
        }
        return wq;
    }

    /**
     * Changes the state or the flags of a work queue.
     *
     * <p>Verb: ibv_modify_wq(3)
     *
     * @param wq the work queue
     * @param attr an {@code ibv_wq_attr}
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_modify_wq(MemorySegment wq, MemorySegment attr) {
        return run(MODIFY_WQ, Dispatch.contextOf(wq), wq, attr);
    }

    /**
     * Destroys a work queue.
     *
     * <p>Verb: ibv_destroy_wq(3)
     *
     * @param wq the work queue
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_destroy_wq(MemorySegment wq) {
        return run(DESTROY_WQ, Dispatch.contextOf(wq), wq);
    }

    /**
     * Makes a table that spreads received packets over work queues.
     *
     * <p>Verb: ibv_create_rwq_ind_table(3)
     *
     * @param context the device's {@code ibv_context}
     * @param initAttr an {@code ibv_rwq_ind_table_init_attr}
     * @return the table, {@code ibv_rwq_ind_table}, or {@code NULL} with {@link
     *     VerbsCalls#errno()}: EOPNOTSUPP if the device does not have the function
     */
    public static MemorySegment ibv_create_rwq_ind_table(
            MemorySegment context, MemorySegment initAttr) {
        return create(CREATE_RWQ_IND_TABLE, context, initAttr, ibv_rwq_ind_table.sizeof());
    }

    /**
     * Destroys a table of work queues.
     *
     * <p>Verb: ibv_destroy_rwq_ind_table(3)
     *
     * @param table the table
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_destroy_rwq_ind_table(MemorySegment table) {
        return run(DESTROY_RWQ_IND_TABLE, Dispatch.contextOf(table), table);
    }

    // --- Counters --------------------------------------------------------------------------------

    /**
     * Makes a set of counters.
     *
     * <p>Verb: ibv_create_counters(3)
     *
     * @param context the device's {@code ibv_context}
     * @param initAttr an {@code ibv_counters_init_attr}
     * @return the counters, {@code ibv_counters}, or {@code NULL} with {@link VerbsCalls#errno()}:
     *     EOPNOTSUPP if the device does not have the function
     */
    public static MemorySegment ibv_create_counters(MemorySegment context, MemorySegment initAttr) {
        return create(CREATE_COUNTERS, context, initAttr, ibv_counters.sizeof());
    }

    /**
     * Destroys a set of counters.
     *
     * <p>Verb: ibv_destroy_counters(3)
     *
     * @param counters the counters
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_destroy_counters(MemorySegment counters) {
        return run(DESTROY_COUNTERS, Dispatch.contextOf(counters), counters);
    }

    /**
     * Attaches counters to a flow.
     *
     * <p>Verb: ibv_attach_counters_point_flow(3)
     *
     * @param counters the counters
     * @param attr an {@code ibv_counter_attach_attr}
     * @param flow the {@code ibv_flow}, or {@code NULL} for all
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_attach_counters_point_flow(
            MemorySegment counters, MemorySegment attr, MemorySegment flow) {
        MemorySegment function = ATTACH_COUNTERS_POINT_FLOW.in(Dispatch.contextOf(counters));
        if (function.address() == 0) {
            return ThreadState.status(Errno.EOPNOTSUPP);
        }
        try {
            return ThreadState.status(
                    (int)
                            ATTACH_COUNTERS_POINT_FLOW
                                    .handle()
                                    .invokeExact(
                                            function, ThreadState.capture(), counters, attr, flow));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads a set of counters.
     *
     * <p>Verb: ibv_read_counters(3)
     *
     * @param counters the counters
     * @param values array of 8-byte values, filled on success
     * @param count values wanted
     * @param flags {@code IBV_READ_COUNTERS_ATTR_*}, or-ed
     * @return 0, or a positive errno value: EOPNOTSUPP if the device does not have the function
     */
    public static int ibv_read_counters(
            MemorySegment counters, MemorySegment values, int count, int flags) {
        MemorySegment function = READ_COUNTERS.in(Dispatch.contextOf(counters));
        if (function.address() == 0) {
            return ThreadState.status(Errno.EOPNOTSUPP);
        }
        try {
            return ThreadState.status(
                    (int)
                            READ_COUNTERS
                                    .handle()
                                    .invokeExact(
                                            function,
                                            ThreadState.capture(),
                                            counters,
                                            values,
                                            count,
                                            flags));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- The common shapes -----------------------------------------------------------------------

    private static MemorySegment notSupported() {
        ThreadState.errno(Errno.EOPNOTSUPP);
        return MemorySegment.NULL;
    }

    private static MemorySegment create(
            ExtendedOp op, MemorySegment context, MemorySegment attr, long sizeBytes) {
        MemorySegment function = op.in(context.address());
        if (function.address() == 0) {
            return notSupported();
        }
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            op.handle().invokeExact(function, ThreadState.capture(), context, attr),
                    sizeBytes);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    private static int run(ExtendedOp op, long context, MemorySegment object) {
        MemorySegment function = op.in(context);
        if (function.address() == 0) {
            return ThreadState.status(Errno.EOPNOTSUPP);
        }
        try {
            return ThreadState.status(
                    (int) op.handle().invokeExact(function, ThreadState.capture(), object));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    private static int run(ExtendedOp op, long context, MemorySegment object, MemorySegment attr) {
        MemorySegment function = op.in(context);
        if (function.address() == 0) {
            return ThreadState.status(Errno.EOPNOTSUPP);
        }
        try {
            return ThreadState.status(
                    (int) op.handle().invokeExact(function, ThreadState.capture(), object, attr));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }
}
