package dev.verbena.verbs;

import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QPT_RC;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_STATE;

import dev.verbena.bindings.Errno;
import dev.verbena.bindings.VerbsCalls;
import dev.verbena.bindings.VerbsInline;
import dev.verbena.bindings.ibverbs.ibv_qp;
import dev.verbena.bindings.ibverbs.ibv_qp_attr;
import dev.verbena.bindings.ibverbs.ibv_qp_cap;
import dev.verbena.bindings.ibverbs.ibv_qp_init_attr;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A reliable connected queue pair.
 *
 * <p>Life: created by a {@link ProtectionDomain} in {@link QueuePairState#RESET}, brought up
 * through INIT and READY_TO_RECEIVE to READY_TO_SEND, used, brought to ERROR to stop it, and {@link
 * #close}d before its completion queues.
 *
 * <p>Changes of state are safe for several threads; posting is for one thread at a time a queue.
 */
public final class QueuePair implements Endpoint {
    /** What {@link #post} returns when the driver refused and did not say which request. */
    public static final int ACCEPTED_UNKNOWN = -1;

    /** The control verbs on a queue pair: libibverbs' own, or those of a test without a device. */
    interface ControlVerbs {
        ControlVerbs LIBRARY =
                new ControlVerbs() {
                    @Override
                    public int modify(MemorySegment qp, MemorySegment attr, int mask) {
                        return VerbsCalls.ibv_modify_qp(qp, attr, mask);
                    }

                    @Override
                    public int destroy(MemorySegment qp) {
                        return VerbsCalls.ibv_destroy_qp(qp);
                    }
                };

        int modify(MemorySegment qp, MemorySegment attr, int mask);

        int destroy(MemorySegment qp);
    }

    private final MemorySegment qp;
    private final long qpAddress;
    private final int number;
    private final QueuePairOptions options;
    private final ControlVerbs verbs;
    private final Lifetime lifetime;
    private final @Nullable Lifetime sendUse;
    private final @Nullable Lifetime receiveUse;

    private QueuePairState state = QueuePairState.RESET;
    private int postErrno;

    private QueuePair(
            MemorySegment qp,
            QueuePairOptions options,
            ControlVerbs verbs,
            Lifetime lifetime,
            @Nullable Lifetime sendUse,
            @Nullable Lifetime receiveUse) {
        this.qp = qp;
        this.verbs = verbs;
        this.qpAddress = qp.address();
        this.number = ibv_qp.qp_num(qp);
        this.options = options;
        this.lifetime = lifetime;
        this.sendUse = sendUse;
        this.receiveUse = receiveUse;
    }

    static QueuePair create(
            ProtectionDomain domain,
            QueuePairOptions options,
            CompletionQueue sendCompletions,
            CompletionQueue receiveCompletions) {
        checkLimits(domain.device(), options);
        if (!sendCompletions.isOf(domain.device()) || !receiveCompletions.isOf(domain.device())) {
            throw new IllegalArgumentException(
                    sendCompletions
                            + " and "
                            + receiveCompletions
                            + " must be of the same open device as "
                            + domain);
        }
        Lifetime sendUse = sendCompletions.lifetime().child(() -> "queue pair (send)");
        Lifetime receiveUse;
        try {
            receiveUse = receiveCompletions.lifetime().child(() -> "queue pair (receive)");
        } catch (RuntimeException closed) {
            sendUse.close(() -> {});
            throw closed;
        }
        try {
            return create(
                    domain, options, sendCompletions, receiveCompletions, sendUse, receiveUse);
        } catch (RuntimeException failure) {
            sendUse.close(() -> {});
            receiveUse.close(() -> {});
            throw failure;
        }
    }

    private static QueuePair create(
            ProtectionDomain domain,
            QueuePairOptions options,
            CompletionQueue sendCompletions,
            CompletionQueue receiveCompletions,
            Lifetime sendUse,
            Lifetime receiveUse) {
        domain.lifetime().enter();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment init = ibv_qp_init_attr.allocate(arena);
            ibv_qp_init_attr.send_cq(init, sendCompletions.handle());
            ibv_qp_init_attr.recv_cq(init, receiveCompletions.handle());
            ibv_qp_init_attr.qp_type(init, IBV_QPT_RC());
            write(ibv_qp_init_attr.cap(init), options);
            MemorySegment qp = VerbsCalls.ibv_create_qp(domain.handle(), init);
            if (qp.equals(MemorySegment.NULL)) {
                int errno = VerbsCalls.errno();
                throw new VerbsException(
                        "ibv_create_qp",
                        errno,
                        "device=" + domain.device().name() + ", " + options,
                        errno == Errno.ENOMEM
                                ? "raise RLIMIT_MEMLOCK or ask for fewer work requests"
                                : null);
            }
            int number = ibv_qp.qp_num(qp);
            Lifetime lifetime = domain.lifetime().childOfEntered(() -> "queue pair " + number);
            return new QueuePair(qp, options, ControlVerbs.LIBRARY, lifetime, sendUse, receiveUse);
        } finally {
            domain.lifetime().exit();
        }
    }

    /** For a test that stands in for the driver: wraps a queue pair made up in memory. */
    static QueuePair wrap(MemorySegment qp, QueuePairOptions options, ControlVerbs verbs) {
        QueuePair pair =
                new QueuePair(
                        qp,
                        options,
                        verbs,
                        Lifetime.root(() -> "queue pair of the driver double"),
                        null,
                        null);
        pair.state = QueuePairState.READY_TO_SEND;
        return pair;
    }

    /**
     * Gives the number by which the peer names this queue pair.
     *
     * @return 24 bits
     */
    public int number() {
        return number;
    }

    /**
     * Gives the size that was asked for. The device may have granted more; count on this.
     *
     * @return the options it was created with
     */
    @Override
    public QueuePairOptions options() {
        return options;
    }

    /**
     * Says which state the last {@link #modify} brought the queue pair to. The device moves it to
     * {@link QueuePairState#ERROR} by itself when a work request fails, which {@link #queryState}
     * sees and this does not.
     *
     * @return the state as last set
     */
    public synchronized QueuePairState state() {
        return state;
    }

    /**
     * Asks the device for the state.
     *
     * @return the state now
     * @throws IllegalStateException if the queue pair is closed
     * @throws VerbsException if the verb fails. Verb: ibv_query_qp(3)
     */
    public synchronized QueuePairState queryState() {
        lifetime.enter();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment attr = ibv_qp_attr.allocate(arena);
            MemorySegment init = ibv_qp_init_attr.allocate(arena);
            VerbsException.check(
                    "ibv_query_qp",
                    VerbsCalls.ibv_query_qp(qp, attr, IBV_QP_STATE(), init),
                    "queue pair " + number);
            state = QueuePairState.of(ibv_qp_attr.qp_state(attr));
            return state;
        } finally {
            lifetime.exit();
        }
    }

    /**
     * Changes the state.
     *
     * @param target the state to go to
     * @param attributes what the change carries: each transition needs some and allows some
     * @throws IllegalStateException if no transition leads there from here, or it is closed
     * @throws IllegalArgumentException if attributes are missing or not allowed; both lists are in
     *     the message
     * @throws VerbsException if the device refuses: ETIMEDOUT or EINVAL on the way to
     *     READY_TO_RECEIVE mean that the peer's GID cannot be reached from the local one. Verb:
     *     ibv_modify_qp(3)
     */
    public synchronized void modify(QueuePairState target, QueuePairAttributes attributes) {
        QueuePairTransitions.check(state, target, attributes.given());
        lifetime.enter();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment attr = ibv_qp_attr.allocate(arena);
            attributes.write(attr);
            ibv_qp_attr.qp_state(attr, target.value());
            int result = verbs.modify(qp, attr, attributes.mask() | IBV_QP_STATE());
            if (result != 0) {
                throw new VerbsException(
                        "ibv_modify_qp",
                        result,
                        "queue pair " + number + ", " + state + " to " + target,
                        target == QueuePairState.READY_TO_RECEIVE
                                ? "the peer's GID may not be reachable from the local GID: compare"
                                        + " their types and scopes"
                                : null);
            }
            state = target;
        } finally {
            lifetime.exit();
        }
    }

    /**
     * Brings the queue pair to INIT, where receives can be posted.
     *
     * @param port the device's port, from 1
     * @param access what the peer may do over this queue pair
     * @throws IllegalStateException if it is not in RESET, or closed
     * @throws IllegalArgumentException if the port is not 0 to 255
     * @throws VerbsException if the device refuses. Verb: ibv_modify_qp(3)
     */
    public void initialize(int port, Set<Access> access) {
        modify(
                QueuePairState.INIT,
                new QueuePairAttributes()
                        .set(QueuePairAttribute.PARTITION_KEY_INDEX, 0)
                        .set(QueuePairAttribute.PORT, port)
                        .set(QueuePairAttribute.ACCESS, Access.flags(access)));
    }

    /**
     * Stops the queue pair: every outstanding work request completes, those not done as flushed.
     * Does nothing in RESET, where nothing is outstanding.
     *
     * @throws IllegalStateException if the queue pair is closed, unless there was nothing to do
     * @throws VerbsException if the device refuses. Verb: ibv_modify_qp(3)
     */
    @Override
    public synchronized void stop() {
        if (state != QueuePairState.RESET && state != QueuePairState.ERROR) {
            modify(QueuePairState.ERROR, new QueuePairAttributes());
        }
    }

    /**
     * Posts a chain of send work requests with one doorbell. Allocates nothing.
     *
     * @param requests the ring that holds them
     * @param firstSlot first slot of the chain
     * @param count slots in the chain, 1 to the ring's capacity; it may pass the ring's end
     * @return how many the driver took, in order from the first: {@code count} if all is well. With
     *     fewer, {@link #postErrno} says why, and the rest was not posted. {@link
     *     #ACCEPTED_UNKNOWN} if the driver did not say how many, which no sound driver does.
     * @throws IllegalStateException if the queue pair is closed, or the ring is
     * @throws IllegalArgumentException if the count is out of range
     * @throws IndexOutOfBoundsException if there is no such slot. Verb: ibv_post_send(3)
     */
    @Override
    public int post(WorkRequests requests, int firstSlot, int count) {
        int capacity = requests.capacity();
        if (count < 1 || count > capacity) {
            throw new IllegalArgumentException(
                    "a chain has 1.." + capacity + " slots, not " + count);
        }
        int lastSlot = (firstSlot + count - 1) & (capacity - 1);
        Lifetime ring = requests.lifetime();
        lifetime.enterUsing(ring);
        try {
            long first = requests.address(firstSlot);
            requests.cut(lastSlot);
            requests.clearBadRequest();
            try {
                postErrno =
                        VerbsInline.ibv_post_send(qpAddress, first, requests.badRequestAddress());
            } finally {
                requests.join(lastSlot);
            }
            return postErrno == 0
                    ? count
                    : accepted(requests.badSlot(), firstSlot, count, capacity);
        } finally {
            lifetime.exitUsing(ring);
        }
    }

    private static int accepted(int badSlot, int firstSlot, int count, int capacity) {
        int accepted = (badSlot - firstSlot) & (capacity - 1);
        return badSlot < 0 || accepted >= count ? ACCEPTED_UNKNOWN : accepted;
    }

    /**
     * Says why the last {@link #post} took fewer than it was given.
     *
     * @return errno of the last post, 0 if it took all
     */
    @Override
    public int postErrno() {
        return postErrno;
    }

    /**
     * Posts the first receives of a chain. Allocates nothing.
     *
     * @param receives the chain that holds them
     * @param count slots to post, from slot 0
     * @throws IllegalStateException if the queue pair is closed, or the chain is
     * @throws IndexOutOfBoundsException if the chain has fewer slots
     * @throws VerbsException ENOMEM when the receive queue is full; none or some were posted. Verb:
     *     ibv_post_recv(3)
     */
    @Override
    public void postReceives(ReceiveRequests receives, int count) {
        Objects.checkIndex(count - 1, receives.capacity());
        Lifetime chain = receives.lifetime();
        lifetime.enterUsing(chain);
        int result;
        try {
            receives.cut(count - 1);
            try {
                result =
                        VerbsInline.ibv_post_recv(
                                qpAddress, receives.address(0), receives.badRequestAddress());
            } finally {
                receives.join(count - 1);
            }
        } finally {
            lifetime.exitUsing(chain);
        }
        if (result != 0) {
            throw new VerbsException(
                    "ibv_post_recv", Math.abs(result), "queue pair " + number + ", count=" + count);
        }
    }

    /**
     * Destroys the queue pair. Outstanding work requests end without a completion, and the device
     * no longer touches their memory once this returns. Does nothing if done already.
     *
     * @throws VerbsException if the verb fails. Verb: ibv_destroy_qp(3)
     */
    @Override
    public void close() {
        lifetime.close(() ->
                VerbsException.check("ibv_destroy_qp", verbs.destroy(qp), "queue pair " + number));
        if (sendUse != null && receiveUse != null) {
            sendUse.close(() -> {});
            receiveUse.close(() -> {});
        }
    }

    @Override
    public String toString() {
        return lifetime.toString();
    }

    /** The native handle; only between enter and exit of {@link #lifetime}. */
    MemorySegment handle() {
        return qp;
    }

    Lifetime lifetime() {
        return lifetime;
    }

    private static void checkLimits(Device device, QueuePairOptions options) {
        DeviceAttributes limits = device.attributes();
        if (Math.max(options.sendRequests(), options.receiveRequests()) > limits.maxWorkRequests()
                || Math.max(options.sendSge(), options.receiveSge()) > limits.maxSge()) {
            throw new IllegalArgumentException(
                    "device %s allows %d work requests a queue and %d scatter-gather entries each, not %s"
                            .formatted(
                                    device.name(),
                                    limits.maxWorkRequests(),
                                    limits.maxSge(),
                                    options));
        }
    }

    private static void write(MemorySegment cap, QueuePairOptions options) {
        ibv_qp_cap.max_send_wr(cap, options.sendRequests());
        ibv_qp_cap.max_send_sge(cap, options.sendSge());
        ibv_qp_cap.max_recv_wr(cap, options.receiveRequests());
        ibv_qp_cap.max_recv_sge(cap, options.receiveSge());
    }
}
