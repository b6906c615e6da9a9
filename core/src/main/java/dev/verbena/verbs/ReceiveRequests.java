package dev.verbena.verbs;

import dev.verbena.bindings.ibverbs.ibv_recv_wr;
import dev.verbena.bindings.ibverbs.ibv_sge;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;

/**
 * A chain of receive work requests in native memory, linked once: slot i leads to slot i + 1.
 *
 * <p>A receive without scatter-gather entries takes a message that carries no data for it: the
 * peer's write with immediate. Life and threads as {@link WorkRequests}; nothing here allocates.
 *
 * <p>Source: {@code ibv_post_recv(3)}.
 */
public final class ReceiveRequests implements AutoCloseable {
    private static final long WR_SIZE = ibv_recv_wr.sizeof();
    private static final long SGE_SIZE = ibv_sge.sizeof();
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment chain;
    private final MemorySegment entries;
    private final MemorySegment badRequest;
    private final int capacity;
    private final int maxSge;
    private final Lifetime lifetime = Lifetime.root(() -> "chain of receive requests");

    /**
     * Allocates and links a chain.
     *
     * @param capacity slots, above 0
     * @param maxSge scatter-gather entries of each slot, at least 0
     * @throws IllegalArgumentException if a number is out of its range
     */
    public ReceiveRequests(int capacity, int maxSge) {
        if (capacity <= 0 || maxSge < 0) {
            throw new IllegalArgumentException(
                    "capacity=%d must be above 0 and maxSge=%d at least 0"
                            .formatted(capacity, maxSge));
        }
        this.capacity = capacity;
        this.maxSge = maxSge;
        this.chain = ibv_recv_wr.allocateArray(capacity, arena);
        this.entries = ibv_sge.allocateArray(Math.max(1L, (long) capacity * maxSge), arena);
        this.badRequest = arena.allocate(ValueLayout.ADDRESS);
        for (int slot = 0; slot < capacity; slot++) {
            long at = slot * WR_SIZE;
            chain.set(
                    LONG,
                    at + ibv_recv_wr.sg_list$offset(),
                    entries.address() + (long) slot * maxSge * SGE_SIZE);
            if (slot + 1 < capacity) {
                join(slot);
            }
        }
    }

    /**
     * Says how many slots there are.
     *
     * @return the capacity
     */
    public int capacity() {
        return capacity;
    }

    /**
     * Patches a slot, all but its scatter-gather entries.
     *
     * @param slot which slot
     * @param workRequestId comes back in the completion
     * @param sgeCount how many of the slot's entries count
     * @throws IndexOutOfBoundsException if there is no such slot, or the count is out of range
     * @throws IllegalStateException if the chain is closed
     */
    public void fill(int slot, long workRequestId, int sgeCount) {
        long at = slot * WR_SIZE;
        chain.set(LONG, at + ibv_recv_wr.wr_id$offset(), workRequestId);
        // The driver trusts the count, and would read behind the slot's entries.
        int checked = Objects.checkIndex(sgeCount, maxSge + 1);
        chain.set(INT, at + ibv_recv_wr.num_sge$offset(), checked);
    }

    /**
     * Patches one scatter-gather entry of a slot: where part of the message lands.
     *
     * @param slot which slot
     * @param entry which of its entries, from 0
     * @param address first byte
     * @param lengthBytes its length, unsigned
     * @param localKey lkey that covers it
     * @throws IndexOutOfBoundsException if there is no such slot or entry
     * @throws IllegalStateException if the chain is closed
     */
    public void piece(int slot, int entry, long address, int lengthBytes, int localKey) {
        long at = ((long) slot * maxSge + Objects.checkIndex(entry, maxSge)) * SGE_SIZE;
        entries.set(LONG, at + ibv_sge.addr$offset(), address);
        entries.set(INT, at + ibv_sge.length$offset(), lengthBytes);
        entries.set(INT, at + ibv_sge.lkey$offset(), localKey);
    }

    /**
     * Gives the identity of a slot's receive.
     *
     * @param slot which slot
     * @return its wr_id
     * @throws IndexOutOfBoundsException if there is no such slot
     * @throws IllegalStateException if the chain is closed
     */
    public long workRequestId(int slot) {
        return chain.get(LONG, slot * WR_SIZE + ibv_recv_wr.wr_id$offset());
    }

    /** Frees the chain, once a post under way has ended. Does nothing if done already. */
    @Override
    public void close() {
        lifetime.close(arena::close);
    }

    /** A post, which hands out addresses, runs between enter and exit of this. */
    Lifetime lifetime() {
        return lifetime;
    }

    void cut(int slot) {
        chain.set(LONG, slot * WR_SIZE + ibv_recv_wr.next$offset(), 0);
    }

    void join(int slot) {
        long next = slot + 1 < capacity ? chain.address() + (slot + 1) * WR_SIZE : 0;
        chain.set(LONG, slot * WR_SIZE + ibv_recv_wr.next$offset(), next);
    }

    long address(int slot) {
        return chain.address() + Objects.checkIndex(slot, capacity) * WR_SIZE;
    }

    long badRequestAddress() {
        return badRequest.address();
    }
}
