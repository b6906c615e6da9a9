package dev.verbena.verbs;

import dev.verbena.bindings.VerbsCalls;
import dev.verbena.bindings.VerbsInline;
import dev.verbena.bindings.ibverbs.ibv_cq;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * A completion queue: where the device says which work requests have ended.
 *
 * <p>Life: create on a {@link Device} or a {@link CompletionChannel}, {@link #poll}, {@link #close}
 * after the queue pairs that use it. Polling is for one thread at a time.
 */
public final class CompletionQueue implements CompletionSource {
    private final @Nullable Device device;
    private final String deviceName;
    private final @Nullable CompletionChannel channel;
    private final MemorySegment cq;
    private final long cqAddress;
    private final int entries;
    private final Lifetime lifetime;

    CompletionQueue(Device device, @Nullable CompletionChannel channel, int entries) {
        int limit = device.attributes().maxCompletions();
        if (entries <= 0 || entries > limit) {
            throw new IllegalArgumentException(
                    "device "
                            + device.name()
                            + " has completion queues of 1.."
                            + limit
                            + " entries, not "
                            + entries);
        }
        this.device = device;
        this.deviceName = device.name();
        this.channel = channel;
        Lifetime parent = channel == null ? device.lifetime() : channel.lifetime();
        parent.enter();
        try {
            cq =
                    VerbsCalls.ibv_create_cq(
                            device.context(),
                            entries,
                            MemorySegment.NULL,
                            channel == null ? MemorySegment.NULL : channel.handle(),
                            0);
            if (cq.equals(MemorySegment.NULL)) {
                throw new VerbsException(
                        "ibv_create_cq",
                        VerbsCalls.errno(),
                        "device=" + device.name() + ", entries=" + entries);
            }
            this.cqAddress = cq.address();
            this.entries = ibv_cq.cqe(cq);
            this.lifetime = parent.childOfEntered(() -> "completion queue of " + device.name());
        } finally {
            parent.exit();
        }
    }

    private CompletionQueue(MemorySegment cq, int entries) {
        this.device = null;
        this.deviceName = "double";
        this.channel = null;
        this.cq = cq;
        this.cqAddress = cq.address();
        this.entries = entries;
        this.lifetime = Lifetime.root(() -> "completion queue of the driver double");
    }

    /** For a test that stands in for the driver: wraps a native queue, which it does not own. */
    static CompletionQueue wrap(MemorySegment cq, int entries) {
        return new CompletionQueue(cq, entries);
    }

    /**
     * Says how many completions the queue can hold.
     *
     * @return at least as many as were asked for
     */
    @Override
    public int entries() {
        return entries;
    }

    /**
     * Takes completions off the queue, without waiting. Allocates nothing.
     *
     * @param completions where they are put; what it held before is gone
     * @return how many came, from 0 to the capacity
     * @throws IllegalStateException if the queue is closed, or the room for completions is
     * @throws VerbsException if the queue failed, as when it overflowed. Verb: ibv_poll_cq(3)
     */
    @Override
    public int poll(WorkCompletions completions) {
        Lifetime room = completions.lifetime();
        lifetime.enterUsing(room);
        int count;
        try {
            count =
                    VerbsInline.ibv_poll_cq(
                            cqAddress, completions.capacity(), completions.address());
        } finally {
            lifetime.exitUsing(room);
        }
        if (count < 0) {
            completions.count(0);
            throw new VerbsException(
                    "ibv_poll_cq",
                    0,
                    "device=" + deviceName + ", entries=" + entries,
                    "the queue overflowed or its device failed");
        }
        completions.count(count);
        return count;
    }

    /**
     * Asks for one event on the channel at the next completion. Completions that are in the queue
     * already give none: poll once more after this call and before waiting.
     *
     * @throws IllegalStateException if the queue has no channel, or is closed
     * @throws VerbsException if the verb fails. Verb: ibv_req_notify_cq(3)
     */
    @Override
    public void requestNotify() {
        if (channel == null) {
            throw new IllegalStateException(lifetime + " was created without a channel");
        }
        lifetime.enter();
        try {
            VerbsException.check(
                    "ibv_req_notify_cq",
                    VerbsInline.ibv_req_notify_cq(cqAddress, 0),
                    "device=" + deviceName);
        } finally {
            lifetime.exit();
        }
    }

    /**
     * Destroys the queue and forgets the completions in it. Does nothing if done already.
     *
     * @throws IllegalStateException if queue pairs still use it
     * @throws VerbsException if the verb fails. Verb: ibv_destroy_cq(3)
     */
    @Override
    public void close() {
        lifetime.close(() ->
                VerbsException.check(
                        "ibv_destroy_cq",
                        device == null ? 0 : VerbsCalls.ibv_destroy_cq(cq),
                        "device=" + deviceName));
    }

    @Override
    public String toString() {
        return lifetime.toString();
    }

    MemorySegment handle() {
        return cq;
    }

    boolean isOf(Device other) {
        return device == other;
    }

    Lifetime lifetime() {
        return lifetime;
    }
}
