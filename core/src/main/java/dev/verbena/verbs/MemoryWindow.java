package dev.verbena.verbs;

import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_MW_TYPE_1;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_MW_TYPE_2;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_SEND_SIGNALED;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_WR_BIND_MW;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_WR_LOCAL_INV;

import dev.verbena.bindings.VerbsCalls;
import dev.verbena.bindings.VerbsInline;
import dev.verbena.bindings.ibverbs.ibv_mr;
import dev.verbena.bindings.ibverbs.ibv_mw;
import dev.verbena.bindings.ibverbs.ibv_mw_bind;
import dev.verbena.bindings.ibverbs.ibv_mw_bind_info;
import dev.verbena.bindings.ibverbs.ibv_qp;
import dev.verbena.bindings.ibverbs.ibv_send_wr;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.EnumSet;
import java.util.Objects;
import java.util.Set;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;

/**
 * A memory window: a remote key of its own over part of a memory region, which can be taken back
 * without deregistering the region.
 *
 * <p>Life: allocated by a {@link ProtectionDomain}, {@link #bind bound} over a range, its {@link
 * #remoteKey} given to a peer, {@link #unbind unbound}, bound anew as often as wanted, {@link
 * #close}d before the region it is bound to. Safe for use by several threads.
 *
 * <p>Binding and unbinding are work requests of a queue pair. They are always signalled, take one
 * place of its send queue each, and run in order with what else is posted there; until the
 * completion has come, a peer may find the window as it was before. A request that fails stops its
 * queue pair like any other, and leaves a window that can only be closed.
 *
 * <p>Devices hold peers to the window's range; soft-RoCE does not, and lets them reach all of the
 * region by a window's key (Linux 6.1, {@code check_rkey} of {@code rxe_resp.c}).
 *
 * <p>Source: {@code ibv_alloc_mw(3)}, {@code ibv_bind_mw(3)}, {@code ibv_post_send(3)}.
 */
public final class MemoryWindow implements AutoCloseable {
    private final MemorySegment mw;
    private final int type;
    private final Lifetime lifetime;

    /** The region of the last bind posted, unless it has been unbound since. */
    private @Nullable MemoryRegion boundTo;

    private MemoryWindow(MemorySegment mw, int type, Lifetime lifetime) {
        this.mw = mw;
        this.type = type;
        this.lifetime = lifetime;
    }

    static MemoryWindow allocate(ProtectionDomain domain, int type) {
        if (type != 1 && type != 2) {
            throw new IllegalArgumentException("a memory window has type 1 or 2, not " + type);
        }
        domain.lifetime().enter();
        try {
            MemorySegment mw =
                    VerbsInline.ibv_alloc_mw(
                            domain.handle(), type == 1 ? IBV_MW_TYPE_1() : IBV_MW_TYPE_2());
            if (mw.equals(MemorySegment.NULL)) {
                throw new VerbsException(
                        "ibv_alloc_mw",
                        VerbsCalls.errno(),
                        "device=" + domain.device().name() + ", type=" + type);
            }
            return new MemoryWindow(
                    mw,
                    type,
                    domain.lifetime().childOfEntered(() -> "memory window of type " + type));
        } finally {
            domain.lifetime().exit();
        }
    }

    /** For a test that stands in for the driver: wraps a window of type 2 made up in memory. */
    static MemoryWindow wrap(MemorySegment mw) {
        return new MemoryWindow(mw, 2, Lifetime.root(() -> "memory window of the driver double"));
    }

    /**
     * Gives the window's remote key: that of the last bind, which changes with every bind.
     *
     * @return the rkey
     * @throws IllegalStateException if the window is closed
     */
    public synchronized int remoteKey() {
        lifetime.enter();
        try {
            return ibv_mw.rkey(mw);
        } finally {
            lifetime.exit();
        }
    }

    /**
     * Posts a request to bind the window over part of a region. Peers name the range by the
     * region's own addresses. A window of type 1 that is bound is moved; one of type 2 is to be
     * unbound first, and serves the peer of this queue pair only.
     *
     * @param queuePair whose send queue the bind goes through
     * @param workRequestId comes back in the completion
     * @param region registered with {@link Access#WINDOW_BIND}, and able to be written if the
     *     window is
     * @param offset first byte, from the region's start
     * @param lengthBytes length, above 0
     * @param access what peers may do: {@link Access#REMOTE_READ}, {@link Access#REMOTE_WRITE},
     *     {@link Access#REMOTE_ATOMIC} or several
     * @return the remote key, good once the request has completed
     * @throws IndexOutOfBoundsException if the range is not inside the region
     * @throws IllegalArgumentException if the length is 0, the access is none or not a peer's, the
     *     region does not allow it, or the three are not of one protection domain
     * @throws IllegalStateException if the window, the region or the queue pair is closed, or the
     *     window is of type 2 and bound
     * @throws VerbsException if it cannot be posted: ENOMEM when the send queue is full. Verbs:
     *     ibv_bind_mw(3), ibv_post_send(3)
     */
    public synchronized int bind(
            QueuePair queuePair,
            long workRequestId,
            MemoryRegion region,
            long offset,
            long lengthBytes,
            Set<Access> access) {
        Objects.checkFromIndexSize(offset, lengthBytes, region.lengthBytes());
        checkAccess(region, lengthBytes, access);
        if (boundTo != null && type == 2) {
            throw new IllegalStateException(this + " is bound; unbind it before it is bound again");
        }
        // What a window allows is the peer's; a write by this side is the region's affair.
        int flags = Access.flags(access) & ~Access.LOCAL_WRITE.flag();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment range = range(arena, region, offset, lengthBytes, flags);
            int key =
                    post(
                            queuePair,
                            region,
                            qp ->
                                    type == 1
                                            ? bindByVerb(arena, qp, workRequestId, range)
                                            : bindByRequest(arena, qp, workRequestId, range));
            boundTo = region;
            return key;
        }
    }

    /**
     * Posts a request to unbind the window: once it has completed, peers' accesses by its key fail.
     *
     * @param queuePair whose send queue it goes through; for a window of type 2 the one it was
     *     bound through
     * @param workRequestId comes back in the completion
     * @throws IllegalArgumentException if the queue pair is of another protection domain
     * @throws IllegalStateException if the window is not bound, or it, its region or the queue pair
     *     is closed
     * @throws VerbsException if it cannot be posted: ENOMEM when the send queue is full. Verbs:
     *     ibv_bind_mw(3), ibv_post_send(3)
     */
    public synchronized void unbind(QueuePair queuePair, long workRequestId) {
        MemoryRegion region = boundTo;
        if (region == null) {
            throw new IllegalStateException(this + " is not bound");
        }
        try (Arena arena = Arena.ofConfined()) {
            // An empty range unbinds. It names the region all the same, since some drivers
            // (soft-RoCE's of rdma-core 44) follow the pointer without a look at the length.
            MemorySegment range = range(arena, region, 0, 0, 0);
            post(
                    queuePair,
                    region,
                    qp ->
                            type == 1
                                    ? bindByVerb(arena, qp, workRequestId, range)
                                    : invalidate(arena, qp, workRequestId));
            boundTo = null;
        }
    }

    /**
     * Frees the window, bound or not: peers' accesses by its key fail from now on. Does nothing if
     * it is freed already.
     *
     * @throws VerbsException if the verb fails. Verb: ibv_dealloc_mw(3)
     */
    @Override
    public void close() {
        lifetime.close(() ->
                VerbsException.check(
                        "ibv_dealloc_mw", VerbsInline.ibv_dealloc_mw(mw), lifetime.toString()));
    }

    @Override
    public String toString() {
        return lifetime.toString();
    }

    private void checkAccess(MemoryRegion region, long lengthBytes, Set<Access> access) {
        Set<Access> peers =
                EnumSet.of(Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC);
        if (lengthBytes == 0 || access.isEmpty() || !peers.containsAll(access)) {
            throw new IllegalArgumentException(
                    "%s cannot be bound over %d bytes with access %s: it needs a length and some of %s"
                            .formatted(this, lengthBytes, access, peers));
        }
        boolean writes = (Access.flags(access) & Access.LOCAL_WRITE.flag()) != 0;
        if (!region.allows(Access.WINDOW_BIND) || (writes && !region.allows(Access.LOCAL_WRITE))) {
            throw new IllegalArgumentException(
                    "%s cannot be bound over %s with access %s: register it with WINDOW_BIND%s"
                            .formatted(this, region, access, writes ? " and LOCAL_WRITE" : ""));
        }
    }

    private static MemorySegment range(
            Arena arena, MemoryRegion region, long offset, long lengthBytes, int flags) {
        MemorySegment range = ibv_mw_bind_info.allocate(arena);
        ibv_mw_bind_info.mr(range, region.handle());
        ibv_mw_bind_info.addr(range, region.address() + offset);
        ibv_mw_bind_info.length(range, lengthBytes);
        ibv_mw_bind_info.mw_access_flags(range, flags);
        return range;
    }

    /** Posts while nothing that the driver looks at can be destroyed; gives the key then. */
    private int post(QueuePair queuePair, MemoryRegion region, ToIntFunction<MemorySegment> call) {
        lifetime.enter();
        try {
            region.lifetime().enter();
            try {
                queuePair.lifetime().enter();
                try {
                    checkDomains(region, queuePair);
                    VerbsException.check(
                            type == 1 ? "ibv_bind_mw" : "ibv_post_send",
                            call.applyAsInt(queuePair.handle()),
                            this + ", " + queuePair);
                } finally {
                    queuePair.lifetime().exit();
                }
            } finally {
                region.lifetime().exit();
            }
            return ibv_mw.rkey(mw);
        } finally {
            lifetime.exit();
        }
    }

    private void checkDomains(MemoryRegion region, QueuePair queuePair) {
        MemorySegment domain = ibv_mw.pd(mw);
        boolean sameRegion = domain.equals(ibv_mr.pd(region.handle()));
        if (!sameRegion || !domain.equals(ibv_qp.pd(queuePair.handle()))) {
            throw new IllegalArgumentException(
                    (sameRegion ? queuePair : region)
                            + " is of another protection domain than "
                            + this);
        }
    }

    /** The verb counts the key up itself. */
    private int bindByVerb(Arena arena, MemorySegment qp, long workRequestId, MemorySegment range) {
        MemorySegment bind = ibv_mw_bind.allocate(arena);
        ibv_mw_bind.wr_id(bind, workRequestId);
        ibv_mw_bind.send_flags(bind, IBV_SEND_SIGNALED());
        ibv_mw_bind.bind_info(bind, range);
        return VerbsInline.ibv_bind_mw(qp, mw, bind);
    }

    private int bindByRequest(
            Arena arena, MemorySegment qp, long workRequestId, MemorySegment range) {
        int key = VerbsInline.ibv_inc_rkey(ibv_mw.rkey(mw));
        MemorySegment request = request(arena, workRequestId, IBV_WR_BIND_MW());
        MemorySegment bind = ibv_send_wr.bind_mw(request);
        ibv_send_wr.bind_mw.mw(bind, mw);
        ibv_send_wr.bind_mw.rkey(bind, key);
        ibv_send_wr.bind_mw.bind_info(bind, range);
        int result = VerbsInline.ibv_post_send(qp, request, arena.allocate(ValueLayout.ADDRESS));
        if (result == 0) {
            // Drivers leave this to the caller, and the next bind counts on from here.
            ibv_mw.rkey(mw, key);
        }
        return result;
    }

    private int invalidate(Arena arena, MemorySegment qp, long workRequestId) {
        MemorySegment request = request(arena, workRequestId, IBV_WR_LOCAL_INV());
        ibv_send_wr.invalidate_rkey(request, ibv_mw.rkey(mw));
        return VerbsInline.ibv_post_send(qp, request, arena.allocate(ValueLayout.ADDRESS));
    }

    private static MemorySegment request(Arena arena, long workRequestId, int opcode) {
        MemorySegment request = ibv_send_wr.allocate(arena);
        ibv_send_wr.wr_id(request, workRequestId);
        ibv_send_wr.opcode(request, opcode);
        ibv_send_wr.send_flags(request, IBV_SEND_SIGNALED());
        return request;
    }
}
