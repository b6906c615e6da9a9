package dev.verbena.verbs;

import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_EVENT_CLIENT_REREGISTER;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_EVENT_CQ_ERR;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_EVENT_DEVICE_FATAL;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_EVENT_GID_CHANGE;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_EVENT_PATH_MIG_ERR;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_EVENT_PORT_ACTIVE;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_EVENT_QP_FATAL;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_EVENT_QP_LAST_WQE_REACHED;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_EVENT_SM_CHANGE;

import dev.verbena.bindings.Errno;
import dev.verbena.bindings.VerbsCalls;
import dev.verbena.bindings.ibverbs.ibv_async_event;
import dev.verbena.bindings.ibverbs.ibv_qp;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * The asynchronous events of a device. Each is acknowledged as it is taken, so that closing its
 * object never waits for it.
 *
 * <p>Life: {@link Device#asyncEvents}, {@link #await} on one platform thread, {@link #close} from
 * any.
 */
public final class AsyncEvents implements AutoCloseable {
    private final Device device;
    private final EventFile events;
    private final MemorySegment event = ibv_async_event.allocate(Arena.ofAuto());
    private final Lifetime lifetime;

    AsyncEvents(Device device) {
        this.device = device;
        device.lifetime().enter();
        try {
            events = new EventFile(device.asyncFd(), "async events of " + device.name());
            lifetime = device.lifetime().childOfEntered(() -> "async events of " + device.name());
        } finally {
            device.lifetime().exit();
        }
    }

    /**
     * Waits for an event.
     *
     * @param timeoutNanos longest wait in nanoseconds, at millisecond resolution; none below that
     * @return the event, or null if the time was up or the events were woken
     * @throws IllegalStateException if closed, or another thread waits
     * @throws VerbsException if the event cannot be read. Verb: ibv_get_async_event(3)
     */
    public @Nullable AsyncEvent await(long timeoutNanos) {
        lifetime.enter();
        try {
            events.claim();
            try {
                AsyncEvent ready = next();
                if (ready != null) {
                    return ready;
                }
                events.await(timeoutNanos);
                return next();
            } finally {
                events.unclaim();
            }
        } finally {
            lifetime.exit();
        }
    }

    /** Stops listening, after waking the thread that waits. Does nothing if done already. */
    @Override
    public void close() {
        lifetime.close(events::wake, events::close);
    }

    private @Nullable AsyncEvent next() {
        int result = VerbsCalls.ibv_get_async_event(device.context(), event);
        if (result == Errno.EAGAIN || result == Errno.EINTR) {
            return null;
        }
        VerbsException.check("ibv_get_async_event", result, "device=" + device.name());
        try {
            return read(event);
        } finally {
            VerbsCalls.ibv_ack_async_event(event);
        }
    }

    /** Reads an event before it is acknowledged, while its object cannot be destroyed. */
    private static AsyncEvent read(MemorySegment event) {
        int type = ibv_async_event.event_type(event);
        AsyncEvent.Subject subject = subject(type);
        MemorySegment element = ibv_async_event.element(event);
        int number =
                switch (subject) {
                    case QUEUE_PAIR -> ibv_qp.qp_num(ibv_async_event.element.qp(element));
                    case PORT -> ibv_async_event.element.port_num(element);
                    default -> 0;
                };
        return new AsyncEvent(type, VerbsCalls.ibv_event_type_str(type), subject, number);
    }

    private static AsyncEvent.Subject subject(int type) {
        if (type == IBV_EVENT_DEVICE_FATAL()) {
            return AsyncEvent.Subject.DEVICE;
        }
        if (type == IBV_EVENT_CQ_ERR()) {
            return AsyncEvent.Subject.COMPLETION_QUEUE;
        }
        boolean ofPath = type >= IBV_EVENT_QP_FATAL() && type <= IBV_EVENT_PATH_MIG_ERR();
        if (ofPath || type == IBV_EVENT_QP_LAST_WQE_REACHED()) {
            return AsyncEvent.Subject.QUEUE_PAIR;
        }
        boolean ofPort = type >= IBV_EVENT_PORT_ACTIVE() && type <= IBV_EVENT_SM_CHANGE();
        if (ofPort || type == IBV_EVENT_CLIENT_REREGISTER() || type == IBV_EVENT_GID_CHANGE()) {
            return AsyncEvent.Subject.PORT;
        }
        return AsyncEvent.Subject.OTHER;
    }
}
