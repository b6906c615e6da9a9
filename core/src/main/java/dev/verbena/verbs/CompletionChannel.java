package dev.verbena.verbs;

import dev.verbena.bindings.Errno;
import dev.verbena.bindings.VerbsCalls;
import dev.verbena.bindings.ibverbs.ibv_comp_channel;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Where completion queues announce completions, so that a thread can sleep instead of polling.
 *
 * <p>Life: created on a {@link Device}, given to completion queues, {@link #close}d after them. One
 * thread waits; any thread may {@link #wake} it. The waiting thread should be a platform thread, as
 * waiting holds its carrier.
 */
public final class CompletionChannel implements CompletionEvents {
    private final Device device;
    private final MemorySegment channel;
    private final EventFile events;
    private final MemorySegment eventQueue = Arena.ofAuto().allocate(ValueLayout.ADDRESS);
    private final MemorySegment eventContext = Arena.ofAuto().allocate(ValueLayout.ADDRESS);
    private final Lifetime lifetime;

    CompletionChannel(Device device) {
        this.device = device;
        device.lifetime().enter();
        try {
            channel = VerbsCalls.ibv_create_comp_channel(device.context());
            if (channel.equals(MemorySegment.NULL)) {
                throw new VerbsException(
                        "ibv_create_comp_channel", VerbsCalls.errno(), "device=" + device.name());
            }
            try {
                events = new EventFile(ibv_comp_channel.fd(channel), "completion channel");
            } catch (RuntimeException failure) {
                VerbsCalls.ibv_destroy_comp_channel(channel);
                throw failure;
            }
            lifetime =
                    device.lifetime()
                            .childOfEntered(() -> "completion channel of " + device.name());
        } finally {
            device.lifetime().exit();
        }
    }

    /**
     * Creates a completion queue that announces on this channel.
     *
     * @param entries room for completions, as {@link Device#createCompletionQueue}
     * @return a new queue, to be closed before the channel
     * @throws IllegalArgumentException if the device cannot have as many entries
     * @throws IllegalStateException if the channel is closed
     * @throws VerbsException if the verb fails. Verb: ibv_create_cq(3)
     */
    public CompletionQueue createCompletionQueue(int entries) {
        return new CompletionQueue(device, this, entries);
    }

    /**
     * Waits until a queue that was asked to {@linkplain CompletionQueue#requestNotify notify} has
     * completions, until {@link #wake}, or until the time is up. Events are taken and acknowledged
     * here; which queue they were of is not told, as one poll of each is cheaper than a table.
     *
     * @param timeoutNanos longest wait in nanoseconds, at millisecond resolution; none below that
     * @return true if there was an event
     * @throws IllegalStateException if the channel is closed, or another thread waits on it
     * @throws VerbsException if waiting fails. Verb: ibv_get_cq_event(3)
     */
    @Override
    public boolean await(long timeoutNanos) {
        lifetime.enter();
        try {
            events.claim();
            try {
                events.await(timeoutNanos);
                return takeEvents();
            } finally {
                events.unclaim();
            }
        } finally {
            lifetime.exit();
        }
    }

    private boolean takeEvents() {
        boolean some = false;
        int result;
        while ((result = VerbsCalls.ibv_get_cq_event(channel, eventQueue, eventContext)) == 0) {
            VerbsCalls.ibv_ack_cq_events(eventQueue.get(ValueLayout.ADDRESS, 0), 1);
            some = true;
        }
        if (result != Errno.EAGAIN && result != Errno.EINTR) {
            throw new VerbsException("ibv_get_cq_event", result, "device=" + device.name());
        }
        return some;
    }

    /**
     * Makes the current or the next {@link #await} return.
     *
     * @throws IllegalStateException if the channel is closed
     */
    @Override
    public void wake() {
        lifetime.enter();
        try {
            events.wake();
        } finally {
            lifetime.exit();
        }
    }

    /**
     * Destroys the channel, after waking the thread that waits. Does nothing if done already.
     *
     * @throws IllegalStateException if completion queues still use it
     * @throws VerbsException if the verb fails. Verb: ibv_destroy_comp_channel(3)
     */
    @Override
    public void close() {
        lifetime.close(
                events::wake,
                () -> {
                    VerbsException.check(
                            "ibv_destroy_comp_channel",
                            VerbsCalls.ibv_destroy_comp_channel(channel),
                            "device=" + device.name());
                    events.close();
                });
    }

    @Override
    public String toString() {
        return lifetime.toString();
    }

    MemorySegment handle() {
        return channel;
    }

    Lifetime lifetime() {
        return lifetime;
    }
}
