package dev.verbena.bindings;

import dev.verbena.bindings.ibverbs.ibv_ah;
import dev.verbena.bindings.ibverbs.ibv_comp_channel;
import dev.verbena.bindings.ibverbs.ibv_context;
import dev.verbena.bindings.ibverbs.ibv_cq;
import dev.verbena.bindings.ibverbs.ibv_dm;
import dev.verbena.bindings.ibverbs.ibv_mr;
import dev.verbena.bindings.ibverbs.ibv_pd;
import dev.verbena.bindings.ibverbs.ibv_qp;
import dev.verbena.bindings.ibverbs.ibv_qp_ex;
import dev.verbena.bindings.ibverbs.ibv_srq;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The functions that libibverbs exports, under their C names, with the errno that generated code
 * cannot capture.
 *
 * <p>Results follow the contract of the package: a pointer is sized to its struct, so that the
 * generated accessors can read it, or {@code NULL}; a status is 0 or a positive errno value; a
 * number is negative for an error. {@link #errno()} tells why this thread's last failed call
 * failed.
 *
 * <p>Functions are linked when they are first called. A call throws {@link
 * VerbsUnavailableException} if there is no libibverbs, or an old one that lacks this function.
 *
 * <p>Safe for use by many threads, virtual ones included, as far as the objects passed are. Control
 * path: a call may wait for the kernel. This file is long because it has one method for each
 * function.
 */
@SuppressWarnings("MemberName") // C names
public final class VerbsCalls {
    private static final ValueLayout.OfByte BYTE = ValueLayout.JAVA_BYTE;
    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final ValueLayout PTR = ValueLayout.ADDRESS;

    /** Enough for every text of the library and for the longest device name. */
    private static final int TEXT_BYTES_MAX = 4096;

    private static final NativeCall GET_DEVICE_LIST =
            NativeCall.returning(PTR, "ibv_get_device_list", PTR);
    private static final NativeCall FREE_DEVICE_LIST =
            NativeCall.returningNothing("ibv_free_device_list", PTR);
    private static final NativeCall GET_DEVICE_NAME =
            NativeCall.returning(PTR, "ibv_get_device_name", PTR);
    private static final NativeCall GET_DEVICE_INDEX =
            NativeCall.returning(INT, "ibv_get_device_index", PTR);
    private static final NativeCall GET_DEVICE_GUID =
            NativeCall.returning(LONG, "ibv_get_device_guid", PTR);
    private static final NativeCall OPEN_DEVICE = NativeCall.returning(PTR, "ibv_open_device", PTR);
    private static final NativeCall CLOSE_DEVICE =
            NativeCall.returning(INT, "ibv_close_device", PTR);
    private static final NativeCall IMPORT_DEVICE =
            NativeCall.returning(PTR, "ibv_import_device", INT);
    private static final NativeCall QUERY_DEVICE =
            NativeCall.returning(INT, "ibv_query_device", PTR, PTR);
    private static final NativeCall QUERY_PORT =
            NativeCall.returning(INT, "ibv_query_port", PTR, BYTE, PTR);
    private static final NativeCall QUERY_GID =
            NativeCall.returning(INT, "ibv_query_gid", PTR, BYTE, INT, PTR);
    private static final NativeCall QUERY_GID_EX =
            NativeCall.returning(INT, "_ibv_query_gid_ex", PTR, INT, INT, PTR, INT, LONG);
    private static final NativeCall QUERY_GID_TABLE =
            NativeCall.returning(LONG, "_ibv_query_gid_table", PTR, PTR, LONG, INT, LONG);
    private static final NativeCall QUERY_PKEY =
            NativeCall.returning(INT, "ibv_query_pkey", PTR, BYTE, INT, PTR);
    private static final NativeCall GET_PKEY_INDEX =
            NativeCall.returning(INT, "ibv_get_pkey_index", PTR, BYTE, SHORT);
    private static final NativeCall GET_ASYNC_EVENT =
            NativeCall.returning(INT, "ibv_get_async_event", PTR, PTR);
    private static final NativeCall ACK_ASYNC_EVENT =
            NativeCall.returningNothing("ibv_ack_async_event", PTR);

    private static final NativeCall ALLOC_PD = NativeCall.returning(PTR, "ibv_alloc_pd", PTR);
    private static final NativeCall DEALLOC_PD = NativeCall.returning(INT, "ibv_dealloc_pd", PTR);
    private static final NativeCall IMPORT_PD =
            NativeCall.returning(PTR, "ibv_import_pd", PTR, INT);
    private static final NativeCall UNIMPORT_PD =
            NativeCall.returningNothing("ibv_unimport_pd", PTR);
    private static final NativeCall REG_MR =
            NativeCall.returning(PTR, "ibv_reg_mr", PTR, PTR, LONG, INT);
    private static final NativeCall REG_MR_IOVA =
            NativeCall.returning(PTR, "ibv_reg_mr_iova", PTR, PTR, LONG, LONG, INT);
    private static final NativeCall REG_MR_IOVA2 =
            NativeCall.returning(PTR, "ibv_reg_mr_iova2", PTR, PTR, LONG, LONG, INT);
    private static final NativeCall REG_DMABUF_MR =
            NativeCall.returning(PTR, "ibv_reg_dmabuf_mr", PTR, LONG, LONG, LONG, INT, INT);
    private static final NativeCall REREG_MR =
            NativeCall.returning(INT, "ibv_rereg_mr", PTR, INT, PTR, PTR, LONG, INT);
    private static final NativeCall DEREG_MR = NativeCall.returning(INT, "ibv_dereg_mr", PTR);
    private static final NativeCall IMPORT_MR =
            NativeCall.returning(PTR, "ibv_import_mr", PTR, INT);
    private static final NativeCall UNIMPORT_MR =
            NativeCall.returningNothing("ibv_unimport_mr", PTR);
    private static final NativeCall IMPORT_DM =
            NativeCall.returning(PTR, "ibv_import_dm", PTR, INT);
    private static final NativeCall UNIMPORT_DM =
            NativeCall.returningNothing("ibv_unimport_dm", PTR);

    private static final NativeCall CREATE_COMP_CHANNEL =
            NativeCall.returning(PTR, "ibv_create_comp_channel", PTR);
    private static final NativeCall DESTROY_COMP_CHANNEL =
            NativeCall.returning(INT, "ibv_destroy_comp_channel", PTR);
    private static final NativeCall CREATE_CQ =
            NativeCall.returning(PTR, "ibv_create_cq", PTR, INT, PTR, PTR, INT);
    private static final NativeCall RESIZE_CQ =
            NativeCall.returning(INT, "ibv_resize_cq", PTR, INT);
    private static final NativeCall DESTROY_CQ = NativeCall.returning(INT, "ibv_destroy_cq", PTR);
    private static final NativeCall GET_CQ_EVENT =
            NativeCall.returning(INT, "ibv_get_cq_event", PTR, PTR, PTR);
    private static final NativeCall ACK_CQ_EVENTS =
            NativeCall.returningNothing("ibv_ack_cq_events", PTR, INT);

    private static final NativeCall CREATE_SRQ =
            NativeCall.returning(PTR, "ibv_create_srq", PTR, PTR);
    private static final NativeCall MODIFY_SRQ =
            NativeCall.returning(INT, "ibv_modify_srq", PTR, PTR, INT);
    private static final NativeCall QUERY_SRQ =
            NativeCall.returning(INT, "ibv_query_srq", PTR, PTR);
    private static final NativeCall DESTROY_SRQ = NativeCall.returning(INT, "ibv_destroy_srq", PTR);

    private static final NativeCall CREATE_QP =
            NativeCall.returning(PTR, "ibv_create_qp", PTR, PTR);
    private static final NativeCall QP_TO_QP_EX = NativeCall.returning(PTR, "ibv_qp_to_qp_ex", PTR);
    private static final NativeCall MODIFY_QP =
            NativeCall.returning(INT, "ibv_modify_qp", PTR, PTR, INT);
    private static final NativeCall QUERY_QP =
            NativeCall.returning(INT, "ibv_query_qp", PTR, PTR, INT, PTR);
    private static final NativeCall QUERY_QP_DATA_IN_ORDER =
            NativeCall.returning(INT, "ibv_query_qp_data_in_order", PTR, INT, INT);
    private static final NativeCall DESTROY_QP = NativeCall.returning(INT, "ibv_destroy_qp", PTR);
    private static final NativeCall SET_ECE = NativeCall.returning(INT, "ibv_set_ece", PTR, PTR);
    private static final NativeCall QUERY_ECE =
            NativeCall.returning(INT, "ibv_query_ece", PTR, PTR);
    private static final NativeCall ATTACH_MCAST =
            NativeCall.returning(INT, "ibv_attach_mcast", PTR, PTR, SHORT);
    private static final NativeCall DETACH_MCAST =
            NativeCall.returning(INT, "ibv_detach_mcast", PTR, PTR, SHORT);

    private static final NativeCall CREATE_AH =
            NativeCall.returning(PTR, "ibv_create_ah", PTR, PTR);
    private static final NativeCall INIT_AH_FROM_WC =
            NativeCall.returning(INT, "ibv_init_ah_from_wc", PTR, BYTE, PTR, PTR, PTR);
    private static final NativeCall CREATE_AH_FROM_WC =
            NativeCall.returning(PTR, "ibv_create_ah_from_wc", PTR, PTR, PTR, BYTE);
    private static final NativeCall DESTROY_AH = NativeCall.returning(INT, "ibv_destroy_ah", PTR);
    private static final NativeCall RESOLVE_ETH_L2_FROM_GID =
            NativeCall.returning(INT, "ibv_resolve_eth_l2_from_gid", PTR, PTR, PTR, PTR);

    private static final NativeCall FORK_INIT = NativeCall.returning(INT, "ibv_fork_init");
    private static final NativeCall IS_FORK_INITIALIZED =
            NativeCall.returning(INT, "ibv_is_fork_initialized");
    private static final NativeCall WC_STATUS_STR =
            NativeCall.returning(PTR, "ibv_wc_status_str", INT);
    private static final NativeCall NODE_TYPE_STR =
            NativeCall.returning(PTR, "ibv_node_type_str", INT);
    private static final NativeCall PORT_STATE_STR =
            NativeCall.returning(PTR, "ibv_port_state_str", INT);
    private static final NativeCall EVENT_TYPE_STR =
            NativeCall.returning(PTR, "ibv_event_type_str", INT);
    private static final NativeCall RATE_TO_MULT =
            NativeCall.returning(INT, "ibv_rate_to_mult", INT);
    private static final NativeCall MULT_TO_IBV_RATE =
            NativeCall.returning(INT, "mult_to_ibv_rate", INT);
    private static final NativeCall RATE_TO_MBPS =
            NativeCall.returning(INT, "ibv_rate_to_mbps", INT);
    private static final NativeCall MBPS_TO_IBV_RATE =
            NativeCall.returning(INT, "mbps_to_ibv_rate", INT);

    private VerbsCalls() {}

    /**
     * Tells why this thread's last failed call of this module failed. After a call that succeeded
     * the value means nothing.
     *
     * @return a positive errno value, or 0 if the failed function set none
     */
    public static int errno() {
        return ThreadState.errno();
    }

    // --- Devices

    /**
     * Lists the RDMA devices that a provider library knows how to drive. No device is not an error:
     * the array is then empty, its address not {@code NULL}. The devices stay valid until {@link
     * #ibv_free_device_list} unless they are open.
     *
     * <p>Verb: ibv_get_device_list(3)
     *
     * @return pointers to {@code ibv_device}, 8 bytes each, without the terminating {@code NULL};
     *     or {@code NULL} with {@link #errno()}: ENOSYS says that the kernel has no RDMA support
     *     loaded
     */
    public static MemorySegment ibv_get_device_list() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment count = arena.allocate(INT);
            MemorySegment list =
                    (MemorySegment)
                            GET_DEVICE_LIST.handle().invokeExact(ThreadState.capture(), count);
            return Dispatch.sized(list, count.get(INT, 0) * PTR.byteSize());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Frees the array of devices; a context that was opened keeps its device.
     *
     * <p>Verb: ibv_free_device_list(3)
     *
     * @param list the array that {@link #ibv_get_device_list()} returned
     */
    public static void ibv_free_device_list(MemorySegment list) {
        try {
            FREE_DEVICE_LIST.handle().invokeExact(ThreadState.capture(), list);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Tells the name that the kernel gave a device, for instance {@code mlx5_0}.
     *
     * <p>Verb: ibv_get_device_name(3)
     *
     * @param device an {@code ibv_device} of the list
     * @return the name, or an empty string if there is none
     */
    public static String ibv_get_device_name(MemorySegment device) {
        try {
            return string(
                    (MemorySegment)
                            GET_DEVICE_NAME.handle().invokeExact(ThreadState.capture(), device));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Tells the kernel's index of a device, which never changes while the device exists.
     *
     * <p>Verb: ibv_get_device_index(3)
     *
     * @param device an {@code ibv_device} of the list
     * @return the index, or -1 if the kernel does not tell
     */
    public static int ibv_get_device_index(MemorySegment device) {
        try {
            return (int) GET_DEVICE_INDEX.handle().invokeExact(ThreadState.capture(), device);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Tells the globally unique identifier of a device's node.
     *
     * <p>Verb: ibv_get_device_guid(3)
     *
     * @param device an {@code ibv_device} of the list
     * @return the identifier in network byte order, 0 if unknown
     */
    public static long ibv_get_device_guid(MemorySegment device) {
        try {
            return (long) GET_DEVICE_GUID.handle().invokeExact(ThreadState.capture(), device);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Opens a device. The context is shared by every object made from it and is safe for many
     * threads.
     *
     * <p>Verb: ibv_open_device(3)
     *
     * @param device an {@code ibv_device} of the list
     * @return the context, {@code ibv_context}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_open_device(MemorySegment device) {
        try {
            return Dispatch.sized(
                    (MemorySegment) OPEN_DEVICE.handle().invokeExact(ThreadState.capture(), device),
                    ibv_context.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Closes a device. Objects made from it must be gone: the library does not free them.
     *
     * <p>Verb: ibv_close_device(3)
     *
     * @param context the device's {@code ibv_context}
     * @return 0, or a positive errno value
     */
    public static int ibv_close_device(MemorySegment context) {
        try {
            return ThreadState.status(
                    (int) CLOSE_DEVICE.handle().invokeExact(ThreadState.capture(), context));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Makes a context of one that another process opened, to share its objects.
     *
     * <p>Verb: ibv_import_device(3)
     *
     * @param fd command file descriptor of a context that another process opened and sent here
     * @return the context, {@code ibv_context}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_import_device(int fd) {
        try {
            return Dispatch.sized(
                    (MemorySegment) IMPORT_DEVICE.handle().invokeExact(ThreadState.capture(), fd),
                    ibv_context.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the capabilities and limits of a device.
     *
     * <p>Verb: ibv_query_device(3)
     *
     * @param context the device's {@code ibv_context}
     * @param attr an {@code ibv_device_attr}, filled on success
     * @return 0, or a positive errno value
     */
    public static int ibv_query_device(MemorySegment context, MemorySegment attr) {
        try {
            return ThreadState.status(
                    (int) QUERY_DEVICE.handle().invokeExact(ThreadState.capture(), context, attr));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the state of a port into the <em>old</em> struct. C programs never call it, since a
     * macro of the same name stands in front: use {@link VerbsInline#ibv_query_port}.
     *
     * <p>Verb: ibv_query_port(3)
     *
     * @param context the device's {@code ibv_context}
     * @param portNum port of the device, counted from 1
     * @param attr at least the old, shorter {@code ibv_port_attr}, filled up to {@code flags} on
     *     success
     * @return 0, or a positive errno value
     */
    public static int ibv_query_port(MemorySegment context, byte portNum, MemorySegment attr) {
        try {
            return ThreadState.status(
                    (int)
                            QUERY_PORT
                                    .handle()
                                    .invokeExact(ThreadState.capture(), context, portNum, attr));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads one entry of a port's GID table. An empty entry is all zeros and no error.
     *
     * <p>Verb: ibv_query_gid(3)
     *
     * @param context the device's {@code ibv_context}
     * @param portNum port of the device, counted from 1
     * @param index index in the GID table, from 0
     * @param gid an {@code ibv_gid}, 16 bytes, filled on success
     * @return 0, or a positive errno value
     */
    public static int ibv_query_gid(
            MemorySegment context, byte portNum, int index, MemorySegment gid) {
        try {
            return ThreadState.status(
                    (int)
                            QUERY_GID
                                    .handle()
                                    .invokeExact(
                                            ThreadState.capture(), context, portNum, index, gid));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads one entry of the GID table with its type; {@link VerbsInline#ibv_query_gid_ex} passes
     * the size. An empty entry gives ENODATA.
     *
     * <p>Verb: ibv_query_gid_ex(3)
     *
     * @param context the device's {@code ibv_context}
     * @param portNum port of the device, counted from 1
     * @param gidIndex index in the GID table, from 0
     * @param entry an {@code ibv_gid_entry}, filled on success
     * @param flags must be 0
     * @param entrySize bytes of the entry struct
     * @return 0, or a positive errno value
     */
    public static int _ibv_query_gid_ex(
            MemorySegment context,
            int portNum,
            int gidIndex,
            MemorySegment entry,
            int flags,
            long entrySize) {
        try {
            return ThreadState.status(
                    (int)
                            QUERY_GID_EX
                                    .handle()
                                    .invokeExact(
                                            ThreadState.capture(),
                                            context,
                                            portNum,
                                            gidIndex,
                                            entry,
                                            flags,
                                            entrySize));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the valid entries of all GID tables of a device; {@link
     * VerbsInline#ibv_query_gid_table} passes the size.
     *
     * <p>Verb: ibv_query_gid_table(3)
     *
     * @param context the device's {@code ibv_context}
     * @param entries array of {@code ibv_gid_entry}
     * @param maxEntries entries that the array has room for
     * @param flags must be 0
     * @param entrySize bytes of one entry struct
     * @return entries filled, or a negative errno value
     */
    public static long _ibv_query_gid_table(
            MemorySegment context,
            MemorySegment entries,
            long maxEntries,
            int flags,
            long entrySize) {
        try {
            return (long)
                    QUERY_GID_TABLE
                            .handle()
                            .invokeExact(
                                    ThreadState.capture(),
                                    context,
                                    entries,
                                    maxEntries,
                                    flags,
                                    entrySize);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads one entry of a port's P_Key table.
     *
     * <p>Verb: ibv_query_pkey(3)
     *
     * @param context the device's {@code ibv_context}
     * @param portNum port of the device, counted from 1
     * @param index index in the P_Key table, from 0
     * @param pkey two bytes, filled in network byte order on success
     * @return 0, or a positive errno value
     */
    public static int ibv_query_pkey(
            MemorySegment context, byte portNum, int index, MemorySegment pkey) {
        try {
            return ThreadState.status(
                    (int)
                            QUERY_PKEY
                                    .handle()
                                    .invokeExact(
                                            ThreadState.capture(), context, portNum, index, pkey));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Finds a P_Key in a port's table.
     *
     * <p>Verb: ibv_get_pkey_index(3)
     *
     * @param context the device's {@code ibv_context}
     * @param portNum port of the device, counted from 1
     * @param pkey the P_Key in network byte order
     * @return its index, or a negative errno value
     */
    public static int ibv_get_pkey_index(MemorySegment context, byte portNum, short pkey) {
        try {
            return ThreadState.number(
                    (int)
                            GET_PKEY_INDEX
                                    .handle()
                                    .invokeExact(ThreadState.capture(), context, portNum, pkey));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Takes the next asynchronous event of a device, and waits for one unless the context's {@code
     * async_fd} does not block (then EAGAIN). A waiting virtual thread holds its carrier. Each
     * event must be acknowledged, or destroying its object waits for ever.
     *
     * <p>Verb: ibv_get_async_event(3)
     *
     * @param context the device's {@code ibv_context}
     * @param event an {@code ibv_async_event}, filled on success
     * @return 0, or a positive errno value
     */
    public static int ibv_get_async_event(MemorySegment context, MemorySegment event) {
        try {
            return ThreadState.status(
                    (int)
                            GET_ASYNC_EVENT
                                    .handle()
                                    .invokeExact(ThreadState.capture(), context, event));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Acknowledges an asynchronous event.
     *
     * <p>Verb: ibv_ack_async_event(3)
     *
     * @param event the event that was taken
     */
    public static void ibv_ack_async_event(MemorySegment event) {
        try {
            ACK_ASYNC_EVENT.handle().invokeExact(ThreadState.capture(), event);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Protection domains and memory

    /**
     * Allocates a protection domain.
     *
     * <p>Verb: ibv_alloc_pd(3)
     *
     * @param context the device's {@code ibv_context}
     * @return the protection domain, {@code ibv_pd}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_alloc_pd(MemorySegment context) {
        try {
            return Dispatch.sized(
                    (MemorySegment) ALLOC_PD.handle().invokeExact(ThreadState.capture(), context),
                    ibv_pd.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Frees a protection domain; EBUSY while regions, queue pairs or the like belong to it.
     *
     * <p>Verb: ibv_dealloc_pd(3)
     *
     * @param pd the protection domain
     * @return 0, or a positive errno value
     */
    public static int ibv_dealloc_pd(MemorySegment pd) {
        try {
            return ThreadState.status(
                    (int) DEALLOC_PD.handle().invokeExact(ThreadState.capture(), pd));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Makes a protection domain of one that another process made.
     *
     * <p>Verb: ibv_import_pd(3)
     *
     * @param context an imported {@code ibv_context}
     * @param handle handle of the domain in the process that made it
     * @return the protection domain, {@code ibv_pd}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_import_pd(MemorySegment context, int handle) {
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            IMPORT_PD.handle().invokeExact(ThreadState.capture(), context, handle),
                    ibv_pd.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Lets go of an imported protection domain; the original stays.
     *
     * <p>Verb: ibv_unimport_pd(3)
     *
     * @param pd an imported domain
     */
    public static void ibv_unimport_pd(MemorySegment pd) {
        try {
            UNIMPORT_PD.handle().invokeExact(ThreadState.capture(), pd);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Registers memory, which must then stay allocated until {@link #ibv_dereg_mr}: the device
     * reaches it without asking the JVM. Remote write or atomic access needs local write. ENOMEM
     * often means that RLIMIT_MEMLOCK is too low. C programs come here through a macro, see {@link
     * VerbsInline#ibv_reg_mr}.
     *
     * <p>Verb: ibv_reg_mr(3)
     *
     * @param pd the protection domain
     * @param address first byte of the memory
     * @param length bytes
     * @param access {@code IBV_ACCESS_*} flags, or-ed
     * @return the memory region, {@code ibv_mr}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_reg_mr(
            MemorySegment pd, MemorySegment address, long length, int access) {
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            REG_MR.handle()
                                    .invokeExact(
                                            ThreadState.capture(), pd, address, length, access),
                    ibv_mr.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Registers memory under addresses of the caller's choice.
     *
     * <p>Verb: ibv_reg_mr(3)
     *
     * @param pd the protection domain
     * @param address first byte of the memory
     * @param length bytes
     * @param iova address that work requests use for the first byte
     * @param access {@code IBV_ACCESS_*} flags, or-ed
     * @return the memory region, {@code ibv_mr}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_reg_mr_iova(
            MemorySegment pd, MemorySegment address, long length, long iova, int access) {
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            REG_MR_IOVA
                                    .handle()
                                    .invokeExact(
                                            ThreadState.capture(),
                                            pd,
                                            address,
                                            length,
                                            iova,
                                            access),
                    ibv_mr.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Registers memory under addresses of the caller's choice, and drops optional access flags that
     * the kernel does not know instead of failing.
     *
     * <p>Verb: ibv_reg_mr(3)
     *
     * @param pd the protection domain
     * @param address first byte of the memory
     * @param length bytes
     * @param iova address that work requests use for the first byte
     * @param access {@code IBV_ACCESS_*} flags, or-ed
     * @return the memory region, {@code ibv_mr}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_reg_mr_iova2(
            MemorySegment pd, MemorySegment address, long length, long iova, int access) {
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            REG_MR_IOVA2
                                    .handle()
                                    .invokeExact(
                                            ThreadState.capture(),
                                            pd,
                                            address,
                                            length,
                                            iova,
                                            access),
                    ibv_mr.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Registers memory of another device, a GPU for instance, that is exported as a dma-buf.
     *
     * <p>Verb: ibv_reg_mr(3)
     *
     * @param pd the protection domain
     * @param offset first byte within the dma-buf
     * @param length bytes
     * @param iova address that work requests use for the first byte; same offset in its page as
     *     {@code offset}
     * @param fd file descriptor of the dma-buf
     * @param access {@code IBV_ACCESS_*} flags, or-ed
     * @return the memory region, {@code ibv_mr}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_reg_dmabuf_mr(
            MemorySegment pd, long offset, long length, long iova, int fd, int access) {
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            REG_DMABUF_MR
                                    .handle()
                                    .invokeExact(
                                            ThreadState.capture(),
                                            pd,
                                            offset,
                                            length,
                                            iova,
                                            fd,
                                            access),
                    ibv_mr.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Changes a memory region in place. Apart from all other calls, its result is the C one, since
     * that tells whether the old or the new region holds.
     *
     * <p>Verb: ibv_rereg_mr(3)
     *
     * @param mr the memory region
     * @param flags {@code IBV_REREG_MR_CHANGE_*}, what to change
     * @param pd new domain, or {@code NULL}
     * @param address new first byte, or {@code NULL}
     * @param length new length in bytes
     * @param access new access flags
     * @return 0, or one of {@code IBV_REREG_MR_ERR_*}, with {@link #errno()}
     */
    public static int ibv_rereg_mr(
            MemorySegment mr,
            int flags,
            MemorySegment pd,
            MemorySegment address,
            long length,
            int access) {
        try {
            return (int)
                    REREG_MR.handle()
                            .invokeExact(
                                    ThreadState.capture(), mr, flags, pd, address, length, access);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Deregisters memory; EBUSY or EINVAL while memory windows are bound to it. Afterwards the
     * memory may be freed.
     *
     * <p>Verb: ibv_dereg_mr(3)
     *
     * @param mr the memory region
     * @return 0, or a positive errno value
     */
    public static int ibv_dereg_mr(MemorySegment mr) {
        try {
            return ThreadState.status(
                    (int) DEREG_MR.handle().invokeExact(ThreadState.capture(), mr));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Makes a memory region of one that another process registered. Its {@code addr} is {@code
     * NULL}.
     *
     * <p>Verb: ibv_import_mr(3)
     *
     * @param pd an imported domain
     * @param handle handle of the region in the process that made it
     * @return the memory region, {@code ibv_mr}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_import_mr(MemorySegment pd, int handle) {
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            IMPORT_MR.handle().invokeExact(ThreadState.capture(), pd, handle),
                    ibv_mr.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Lets go of an imported memory region; the original stays.
     *
     * <p>Verb: ibv_unimport_mr(3)
     *
     * @param mr an imported region
     */
    public static void ibv_unimport_mr(MemorySegment mr) {
        try {
            UNIMPORT_MR.handle().invokeExact(ThreadState.capture(), mr);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Makes device memory of what another process allocated.
     *
     * <p>Verb: ibv_import_dm(3)
     *
     * @param context an imported {@code ibv_context}
     * @param handle handle of the memory in the process that made it
     * @return the device memory, {@code ibv_dm}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_import_dm(MemorySegment context, int handle) {
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            IMPORT_DM.handle().invokeExact(ThreadState.capture(), context, handle),
                    ibv_dm.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Lets go of imported device memory; the original stays.
     *
     * <p>Verb: ibv_unimport_dm(3)
     *
     * @param dm imported device memory
     */
    public static void ibv_unimport_dm(MemorySegment dm) {
        try {
            UNIMPORT_DM.handle().invokeExact(ThreadState.capture(), dm);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Completion queues

    /**
     * Makes a channel that completion events arrive on; its {@code fd} can be polled.
     *
     * <p>Verb: ibv_create_comp_channel(3)
     *
     * @param context the device's {@code ibv_context}
     * @return the completion channel, {@code ibv_comp_channel}, or {@code NULL} with {@link
     *     #errno()}
     */
    public static MemorySegment ibv_create_comp_channel(MemorySegment context) {
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            CREATE_COMP_CHANNEL
                                    .handle()
                                    .invokeExact(ThreadState.capture(), context),
                    ibv_comp_channel.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Destroys a completion channel; EBUSY while a completion queue uses it.
     *
     * <p>Verb: ibv_destroy_comp_channel(3)
     *
     * @param channel the completion channel
     * @return 0, or a positive errno value
     */
    public static int ibv_destroy_comp_channel(MemorySegment channel) {
        try {
            return ThreadState.status(
                    (int)
                            DESTROY_COMP_CHANNEL
                                    .handle()
                                    .invokeExact(ThreadState.capture(), channel));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Makes a completion queue. It needs room for every outstanding work request, as unsignalled
     * ones complete too when they fail.
     *
     * <p>Verb: ibv_create_cq(3)
     *
     * @param context the device's {@code ibv_context}
     * @param cqe entries wanted, at least 1; the struct tells how many there are
     * @param cqContext returned with each event, or {@code NULL}
     * @param channel channel for events, or {@code NULL}
     * @param compVector interrupt vector, from 0 to below the context's {@code num_comp_vectors}
     * @return the completion queue, {@code ibv_cq}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_create_cq(
            MemorySegment context,
            int cqe,
            MemorySegment cqContext,
            MemorySegment channel,
            int compVector) {
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            CREATE_CQ
                                    .handle()
                                    .invokeExact(
                                            ThreadState.capture(),
                                            context,
                                            cqe,
                                            cqContext,
                                            channel,
                                            compVector),
                    ibv_cq.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Changes the capacity of a completion queue.
     *
     * <p>Verb: ibv_resize_cq(3)
     *
     * @param cq the completion queue
     * @param cqe entries wanted
     * @return 0, or a positive errno value
     */
    public static int ibv_resize_cq(MemorySegment cq, int cqe) {
        try {
            return ThreadState.status(
                    (int) RESIZE_CQ.handle().invokeExact(ThreadState.capture(), cq, cqe));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Destroys a completion queue; EBUSY while a queue pair uses it. Waits until its events are
     * acknowledged.
     *
     * <p>Verb: ibv_destroy_cq(3)
     *
     * @param cq the completion queue
     * @return 0, or a positive errno value
     */
    public static int ibv_destroy_cq(MemorySegment cq) {
        try {
            return ThreadState.status(
                    (int) DESTROY_CQ.handle().invokeExact(ThreadState.capture(), cq));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Takes the next completion event, and waits for one unless the channel's {@code fd} does not
     * block (then EAGAIN). A waiting virtual thread holds its carrier. Each event must be
     * acknowledged.
     *
     * <p>Verb: ibv_get_cq_event(3)
     *
     * @param channel the completion channel
     * @param cq room for one pointer, filled with the {@code ibv_cq} on success
     * @param cqContext room for one pointer, filled with the queue's context on success
     * @return 0, or a positive errno value
     */
    public static int ibv_get_cq_event(
            MemorySegment channel, MemorySegment cq, MemorySegment cqContext) {
        try {
            return ThreadState.status(
                    (int)
                            GET_CQ_EVENT
                                    .handle()
                                    .invokeExact(ThreadState.capture(), channel, cq, cqContext));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Acknowledges completion events. It takes a lock, so acknowledge several at a time.
     *
     * <p>Verb: ibv_ack_cq_events(3)
     *
     * @param cq the completion queue
     * @param count events to acknowledge
     */
    public static void ibv_ack_cq_events(MemorySegment cq, int count) {
        try {
            ACK_CQ_EVENTS.handle().invokeExact(ThreadState.capture(), cq, count);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Shared receive queues

    /**
     * Makes a shared receive queue.
     *
     * <p>Verb: ibv_create_srq(3)
     *
     * @param pd the protection domain
     * @param initAttr an {@code ibv_srq_init_attr}; its limits are overwritten with the granted
     *     ones
     * @return the shared receive queue, {@code ibv_srq}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_create_srq(MemorySegment pd, MemorySegment initAttr) {
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            CREATE_SRQ.handle().invokeExact(ThreadState.capture(), pd, initAttr),
                    ibv_srq.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Changes the size or the limit of a shared receive queue.
     *
     * <p>Verb: ibv_modify_srq(3)
     *
     * @param srq the shared receive queue
     * @param attr an {@code ibv_srq_attr}
     * @param mask {@code IBV_SRQ_*}, which fields count
     * @return 0, or a positive errno value
     */
    public static int ibv_modify_srq(MemorySegment srq, MemorySegment attr, int mask) {
        try {
            return ThreadState.status(
                    (int) MODIFY_SRQ.handle().invokeExact(ThreadState.capture(), srq, attr, mask));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the attributes of a shared receive queue.
     *
     * <p>Verb: ibv_query_srq(3)
     *
     * @param srq the shared receive queue
     * @param attr an {@code ibv_srq_attr}, filled on success
     * @return 0, or a positive errno value
     */
    public static int ibv_query_srq(MemorySegment srq, MemorySegment attr) {
        try {
            return ThreadState.status(
                    (int) QUERY_SRQ.handle().invokeExact(ThreadState.capture(), srq, attr));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Destroys a shared receive queue; EBUSY while a queue pair uses it.
     *
     * <p>Verb: ibv_destroy_srq(3)
     *
     * @param srq the shared receive queue
     * @return 0, or a positive errno value
     */
    public static int ibv_destroy_srq(MemorySegment srq) {
        try {
            return ThreadState.status(
                    (int) DESTROY_SRQ.handle().invokeExact(ThreadState.capture(), srq));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Queue pairs

    /**
     * Makes a queue pair in the RESET state. The manual does not promise that errno is set.
     *
     * <p>Verb: ibv_create_qp(3)
     *
     * @param pd the protection domain
     * @param initAttr an {@code ibv_qp_init_attr}; {@code cap} is overwritten with the granted
     *     values
     * @return the queue pair, {@code ibv_qp}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_create_qp(MemorySegment pd, MemorySegment initAttr) {
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            CREATE_QP.handle().invokeExact(ThreadState.capture(), pd, initAttr),
                    ibv_qp.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Gives the extended view of a queue pair that was made by {@link
     * ExtendedVerbs#ibv_create_qp_ex} with {@code send_ops_flags}.
     *
     * <p>Verb: ibv_wr_post(3)
     *
     * @param qp the queue pair
     * @return the same queue pair, with the functions of {@link WorkRequestVerbs}, or {@code NULL}
     *     if it has none
     */
    public static MemorySegment ibv_qp_to_qp_ex(MemorySegment qp) {
        try {
            return Dispatch.sized(
                    (MemorySegment) QP_TO_QP_EX.handle().invokeExact(ThreadState.capture(), qp),
                    ibv_qp_ex.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Moves a queue pair to another state and sets its attributes. EINVAL where the state, or the
     * mask for that state, does not fit.
     *
     * <p>Verb: ibv_modify_qp(3)
     *
     * @param qp the queue pair
     * @param attr an {@code ibv_qp_attr}
     * @param mask {@code IBV_QP_*}, which fields count
     * @return 0, or a positive errno value
     */
    public static int ibv_modify_qp(MemorySegment qp, MemorySegment attr, int mask) {
        try {
            return ThreadState.status(
                    (int) MODIFY_QP.handle().invokeExact(ThreadState.capture(), qp, attr, mask));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the state and the attributes of a queue pair.
     *
     * <p>Verb: ibv_query_qp(3)
     *
     * @param qp the queue pair
     * @param attr an {@code ibv_qp_attr}, filled on success
     * @param mask {@code IBV_QP_*}, which fields are wanted at least
     * @param initAttr an {@code ibv_qp_init_attr}, filled on success
     * @return 0, or a positive errno value
     */
    public static int ibv_query_qp(
            MemorySegment qp, MemorySegment attr, int mask, MemorySegment initAttr) {
        try {
            return ThreadState.status(
                    (int)
                            QUERY_QP.handle()
                                    .invokeExact(ThreadState.capture(), qp, attr, mask, initAttr));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Asks whether an operation's data arrive in memory in order, so that polling on the last byte
     * is safe.
     *
     * <p>Verb: ibv_query_qp_data_in_order(3)
     *
     * @param qp the queue pair
     * @param opcode an {@code IBV_WR_*} opcode
     * @param flags must be 0
     * @return 1 if so, else 0
     */
    public static int ibv_query_qp_data_in_order(MemorySegment qp, int opcode, int flags) {
        try {
            return (int)
                    QUERY_QP_DATA_IN_ORDER
                            .handle()
                            .invokeExact(ThreadState.capture(), qp, opcode, flags);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Destroys a queue pair. Its work requests are dropped without completions. Waits until its
     * events are acknowledged.
     *
     * <p>Verb: ibv_destroy_qp(3)
     *
     * @param qp the queue pair
     * @return 0, or a positive errno value
     */
    public static int ibv_destroy_qp(MemorySegment qp) {
        try {
            return ThreadState.status(
                    (int) DESTROY_QP.handle().invokeExact(ThreadState.capture(), qp));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Sets the enhanced connection options that the peer sent.
     *
     * <p>Verb: ibv_set_ece(3)
     *
     * @param qp the queue pair
     * @param ece an {@code ibv_ece}
     * @return 0, or a positive errno value
     */
    public static int ibv_set_ece(MemorySegment qp, MemorySegment ece) {
        try {
            return ThreadState.status(
                    (int) SET_ECE.handle().invokeExact(ThreadState.capture(), qp, ece));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Reads the enhanced connection options in use.
     *
     * <p>Verb: ibv_query_ece(3)
     *
     * @param qp the queue pair
     * @param ece an {@code ibv_ece}, filled on success
     * @return 0, or a positive errno value
     */
    public static int ibv_query_ece(MemorySegment qp, MemorySegment ece) {
        try {
            return ThreadState.status(
                    (int) QUERY_ECE.handle().invokeExact(ThreadState.capture(), qp, ece));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Joins a queue pair to a multicast group.
     *
     * <p>Verb: ibv_attach_mcast(3)
     *
     * @param qp an unreliable datagram queue pair
     * @param gid the group's {@code ibv_gid}
     * @param lid the group's LID, in host byte order
     * @return 0, or a positive errno value
     */
    public static int ibv_attach_mcast(MemorySegment qp, MemorySegment gid, short lid) {
        try {
            return ThreadState.status(
                    (int) ATTACH_MCAST.handle().invokeExact(ThreadState.capture(), qp, gid, lid));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Takes a queue pair out of a multicast group.
     *
     * <p>Verb: ibv_detach_mcast(3)
     *
     * @param qp an unreliable datagram queue pair
     * @param gid the group's {@code ibv_gid}
     * @param lid the group's LID, in host byte order
     * @return 0, or a positive errno value
     */
    public static int ibv_detach_mcast(MemorySegment qp, MemorySegment gid, short lid) {
        try {
            return ThreadState.status(
                    (int) DETACH_MCAST.handle().invokeExact(ThreadState.capture(), qp, gid, lid));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Address handles

    /**
     * Makes an address handle for sending datagrams.
     *
     * <p>Verb: ibv_create_ah(3)
     *
     * @param pd the protection domain
     * @param attr an {@code ibv_ah_attr}
     * @return the address handle, {@code ibv_ah}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_create_ah(MemorySegment pd, MemorySegment attr) {
        try {
            return Dispatch.sized(
                    (MemorySegment) CREATE_AH.handle().invokeExact(ThreadState.capture(), pd, attr),
                    ibv_ah.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Works out the address of a datagram's sender.
     *
     * <p>Verb: ibv_init_ah_from_wc(3)
     *
     * @param context the device's {@code ibv_context}
     * @param portNum port of the device, counted from 1
     * @param wc the completion of a datagram
     * @param grh the 40 bytes in front of the datagram
     * @param attr an {@code ibv_ah_attr}, filled on success
     * @return 0, or a positive errno value
     */
    public static int ibv_init_ah_from_wc(
            MemorySegment context,
            byte portNum,
            MemorySegment wc,
            MemorySegment grh,
            MemorySegment attr) {
        try {
            return ThreadState.status(
                    (int)
                            INIT_AH_FROM_WC
                                    .handle()
                                    .invokeExact(
                                            ThreadState.capture(),
                                            context,
                                            portNum,
                                            wc,
                                            grh,
                                            attr));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Makes an address handle for answering a datagram.
     *
     * <p>Verb: ibv_create_ah_from_wc(3)
     *
     * @param pd the protection domain
     * @param wc the completion of a datagram
     * @param grh the 40 bytes in front of the datagram
     * @param portNum port of the device, counted from 1
     * @return the address handle, {@code ibv_ah}, or {@code NULL} with {@link #errno()}
     */
    public static MemorySegment ibv_create_ah_from_wc(
            MemorySegment pd, MemorySegment wc, MemorySegment grh, byte portNum) {
        try {
            return Dispatch.sized(
                    (MemorySegment)
                            CREATE_AH_FROM_WC
                                    .handle()
                                    .invokeExact(ThreadState.capture(), pd, wc, grh, portNum),
                    ibv_ah.sizeof());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Destroys an address handle.
     *
     * <p>Verb: ibv_destroy_ah(3)
     *
     * @param ah the address handle
     * @return 0, or a positive errno value
     */
    public static int ibv_destroy_ah(MemorySegment ah) {
        try {
            return ThreadState.status(
                    (int) DESTROY_AH.handle().invokeExact(ThreadState.capture(), ah));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Finds the Ethernet address behind a GID.
     *
     * <p>Verb: ibv_resolve_eth_l2_from_gid, which has no manual page
     *
     * @param context the device's {@code ibv_context}
     * @param attr an {@code ibv_ah_attr} with the GID
     * @param mac six bytes, filled with the Ethernet address on success
     * @param vlan two bytes, filled with the VLAN on success
     * @return 0, or a positive errno value
     */
    public static int ibv_resolve_eth_l2_from_gid(
            MemorySegment context, MemorySegment attr, MemorySegment mac, MemorySegment vlan) {
        try {
            return ThreadState.status(
                    (int)
                            RESOLVE_ETH_L2_FROM_GID
                                    .handle()
                                    .invokeExact(ThreadState.capture(), context, attr, mac, vlan));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Fork, names, rates

    /**
     * Makes fork safe for registered memory, at the cost of one memory map entry for each
     * registration. Must come before the first registration, else EINVAL; needless where {@link
     * #ibv_is_fork_initialized} says UNNEEDED.
     *
     * <p>Verb: ibv_fork_init(3)
     *
     * @return 0, or a positive errno value
     */
    public static int ibv_fork_init() {
        try {
            return ThreadState.status((int) FORK_INIT.handle().invokeExact(ThreadState.capture()));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Tells whether fork is safe for registered memory.
     *
     * <p>Verb: ibv_is_fork_initialized(3)
     *
     * @return an {@code IBV_FORK_*} value
     */
    public static int ibv_is_fork_initialized() {
        try {
            return (int) IS_FORK_INITIALIZED.handle().invokeExact(ThreadState.capture());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Describes the status of a completion in English.
     *
     * <p>Verb: ibv_wc_status_str, which has no manual page
     *
     * @param status an {@code IBV_WC_*} status
     * @return the text
     */
    public static String ibv_wc_status_str(int status) {
        try {
            return string(
                    (MemorySegment)
                            WC_STATUS_STR.handle().invokeExact(ThreadState.capture(), status));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Describes a type of node in English.
     *
     * <p>Verb: ibv_node_type_str(3)
     *
     * @param nodeType an {@code IBV_NODE_*} value
     * @return the text
     */
    public static String ibv_node_type_str(int nodeType) {
        try {
            return string(
                    (MemorySegment)
                            NODE_TYPE_STR.handle().invokeExact(ThreadState.capture(), nodeType));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Describes the state of a port in English.
     *
     * <p>Verb: ibv_port_state_str(3)
     *
     * @param portState an {@code IBV_PORT_*} state
     * @return the text
     */
    public static String ibv_port_state_str(int portState) {
        try {
            return string(
                    (MemorySegment)
                            PORT_STATE_STR.handle().invokeExact(ThreadState.capture(), portState));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Describes a type of asynchronous event in English.
     *
     * <p>Verb: ibv_event_type_str(3)
     *
     * @param eventType an {@code IBV_EVENT_*} value
     * @return the text
     */
    public static String ibv_event_type_str(int eventType) {
        try {
            return string(
                    (MemorySegment)
                            EVENT_TYPE_STR.handle().invokeExact(ThreadState.capture(), eventType));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Converts a rate to a multiple of 2.5 Gbit/s.
     *
     * <p>Verb: ibv_rate_to_mult(3)
     *
     * @param rate an {@code IBV_RATE_*} value
     * @return the multiple, or -1 if the rate is unknown
     */
    public static int ibv_rate_to_mult(int rate) {
        try {
            return (int) RATE_TO_MULT.handle().invokeExact(ThreadState.capture(), rate);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Converts a multiple of 2.5 Gbit/s to a rate.
     *
     * <p>Verb: mult_to_ibv_rate(3)
     *
     * @param multiple multiple of 2.5 Gbit/s
     * @return an {@code IBV_RATE_*} value
     */
    public static int mult_to_ibv_rate(int multiple) {
        try {
            return (int) MULT_TO_IBV_RATE.handle().invokeExact(ThreadState.capture(), multiple);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Converts a rate to Mbit/s.
     *
     * <p>Verb: ibv_rate_to_mbps(3)
     *
     * @param rate an {@code IBV_RATE_*} value
     * @return Mbit/s, or -1 if the rate is unknown
     */
    public static int ibv_rate_to_mbps(int rate) {
        try {
            return (int) RATE_TO_MBPS.handle().invokeExact(ThreadState.capture(), rate);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Converts Mbit/s to a rate.
     *
     * <p>Verb: mbps_to_ibv_rate(3)
     *
     * @param mbps Mbit/s
     * @return an {@code IBV_RATE_*} value
     */
    public static int mbps_to_ibv_rate(int mbps) {
        try {
            return (int) MBPS_TO_IBV_RATE.handle().invokeExact(ThreadState.capture(), mbps);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    private static String string(MemorySegment text) {
        return text.address() == 0 ? "" : text.reinterpret(TEXT_BYTES_MAX).getString(0);
    }
}
