package dev.verbena.verbs;

import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_SEND_SIGNALED;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_WR_RDMA_READ;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_WR_RDMA_WRITE;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_WR_RDMA_WRITE_WITH_IMM;

import dev.verbena.bindings.ibverbs.ibv_send_wr;
import dev.verbena.bindings.ibverbs.ibv_sge;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * A ring of send work requests in native memory, linked once and patched in place for life.
 *
 * <pre>
 *   slot      0        1        2              capacity-1
 *          +--------+--------+--------+-- - --+--------+
 *   WRs    | next ---> next ---> next ---> .. | next ---> slot 0
 *          +---|----+---|----+---|----+-- - --+---|----+
 *   SGEs   | maxSge | maxSge | maxSge |       | maxSge |   16 bytes an entry
 *          +--------+--------+--------+-- - --+--------+
 *          |1|1|1| .. |1|   one for each slot, where a run of slots has one piece each
 *          +-+-+-+ -- +-+
 * </pre>
 *
 * <p>A slot holds the first 64 bytes of a {@code struct ibv_send_wr}, which are all that one-sided
 * operations have; its {@code sg_list} points to entries of its own. A chain is any run of slots,
 * over the ring's end too: posting cuts it behind its last slot and joins the ring again
 * afterwards.
 *
 * <p>Life: make with a queue pair, fill slots, {@link QueuePair#post}, {@link #close}. A slot may
 * be filled again once it has been posted and the queue has retired it: the driver copies at post,
 * the ring's owner counts. For one thread at a time; nothing here allocates.
 *
 * <p>Source: {@code ibv_post_send(3)}.
 */
public final class WorkRequests implements AutoCloseable {
    /**
     * From one slot to the next: a cache line, into which goes all that the verbs define for the
     * operations below. What {@code struct ibv_send_wr} has behind that is for others, and lies in
     * the next slot. Half as far apart as the whole structs would be, a thousand slots are filled
     * and read a fifth faster: they fit the nearer caches.
     */
    private static final long SLOT_SIZE = 64;

    private static final long SGE_SIZE = ibv_sge.sizeof();

    private static final long WR_ID = ibv_send_wr.wr_id$offset();
    private static final long NEXT = ibv_send_wr.next$offset();
    private static final long SG_LIST = ibv_send_wr.sg_list$offset();
    private static final long NUM_SGE = ibv_send_wr.num_sge$offset();
    private static final long OPCODE = ibv_send_wr.opcode$offset();
    private static final long SEND_FLAGS = ibv_send_wr.send_flags$offset();
    private static final long IMM_DATA = ibv_send_wr.imm_data$offset();
    private static final long REMOTE_ADDRESS =
            ibv_send_wr.wr$offset()
                    + ibv_send_wr.wr.rdma$offset()
                    + ibv_send_wr.wr.rdma.remote_addr$offset();
    private static final long REMOTE_KEY =
            ibv_send_wr.wr$offset()
                    + ibv_send_wr.wr.rdma$offset()
                    + ibv_send_wr.wr.rdma.rkey$offset();

    private static final long SGE_ADDRESS = ibv_sge.addr$offset();
    private static final long SGE_LENGTH = ibv_sge.length$offset();
    private static final long SGE_KEY = ibv_sge.lkey$offset();

    /**
     * Runs shorter than this go slot by slot, which takes 3.8 ns a request instead of 5.1 at 8
     * slots and as long at 16. And the loop for the others is compiled as for long ones only if the
     * JVM has not seen it end after one slot most of the time.
     */
    private static final int SHORT_RUN = 16;

    private static final Operation[] OPERATIONS = Operation.values();

    private static final int SIGNALED = IBV_SEND_SIGNALED();

    private static final int FIRST_SHIFT =
            ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN ? 0 : Integer.SIZE;

    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    private static final ValueLayout.OfInt NETWORK_INT = INT.withOrder(ByteOrder.BIG_ENDIAN);

    /** The operations of one-sided transfers. */
    public enum Operation {
        /** Local memory to the peer's. */
        WRITE(IBV_WR_RDMA_WRITE()),
        /** The peer's memory to local memory. */
        READ(IBV_WR_RDMA_READ()),
        /** A write that also consumes a receive of the peer and hands it 32 bits. */
        WRITE_WITH_IMMEDIATE(IBV_WR_RDMA_WRITE_WITH_IMM());

        private final int opcode;

        Operation(int opcode) {
            this.opcode = opcode;
        }
    }

    private final Arena arena = Arena.ofShared();
    private final MemorySegment ring;

    /** First maxSge entries of each slot, then one of each, for requests of one piece. */
    private final MemorySegment entries;

    /**
     * Where the single entries begin. Those of slots that follow one another are neighbours: a run
     * of them takes a quarter of the cache that slots of 16 entries would, and half of the time.
     */
    private final long singles;

    private final MemorySegment badRequest;
    private final int capacity;
    private final int maxSge;
    private final Lifetime lifetime = Lifetime.root(() -> "ring of work requests");

    /**
     * Allocates and links a ring.
     *
     * @param capacity slots, a power of two
     * @param maxSge scatter-gather entries of each slot, above 0
     * @throws IllegalArgumentException if a number is out of its range
     */
    public WorkRequests(int capacity, int maxSge) {
        if (Integer.bitCount(capacity) != 1 || capacity < 0 || maxSge <= 0) {
            throw new IllegalArgumentException(
                    "capacity=%d must be a power of two and maxSge=%d above 0"
                            .formatted(capacity, maxSge));
        }
        this.capacity = capacity;
        this.maxSge = maxSge;
        long bytes = capacity * SLOT_SIZE;
        // The struct of the last slot is whole, too, for a driver that would copy it; but what is
        // behind the slots is no slot.
        this.ring =
                arena.allocate(bytes + ibv_send_wr.sizeof() - SLOT_SIZE, SLOT_SIZE)
                        .asSlice(0, bytes);
        this.entries = arena.allocate(capacity * (maxSge + 1L) * SGE_SIZE, SLOT_SIZE);
        this.singles = (long) capacity * maxSge * SGE_SIZE;
        this.badRequest = arena.allocate(ValueLayout.ADDRESS);
        for (int slot = 0; slot < capacity; slot++) {
            ring.set(LONG, slot * SLOT_SIZE + SG_LIST, entries.address() + ownOffset(slot, 0));
            join(slot);
        }
    }

    /**
     * Says how many slots there are.
     *
     * @return the capacity, a power of two
     */
    public int capacity() {
        return capacity;
    }

    /**
     * Says how many scatter-gather entries a slot has.
     *
     * @return the most pieces of one work request
     */
    public int maxSge() {
        return maxSge;
    }

    /**
     * Patches a slot, all but its scatter-gather entries.
     *
     * @param slot which slot
     * @param workRequestId comes back in the completion
     * @param operation what to do
     * @param remoteAddress first byte at the peer
     * @param remoteKey rkey that covers the range there
     * @param sgeCount how many of the slot's entries count, 0 to {@link #maxSge}
     * @param signaled whether success gives a completion
     * @throws IndexOutOfBoundsException if there is no such slot, or the count is out of range
     * @throws IllegalStateException if the ring is closed
     */
    public void fill(
            int slot,
            long workRequestId,
            Operation operation,
            long remoteAddress,
            int remoteKey,
            int sgeCount,
            boolean signaled) {
        long at = slot * SLOT_SIZE;
        ring.set(LONG, at + WR_ID, workRequestId);
        // The driver trusts the count, and would read behind the slot's entries.
        ring.set(
                LONG,
                at + NUM_SGE,
                pair(Objects.checkIndex(sgeCount, maxSge + 1), operation.opcode));
        ring.set(LONG, at + SEND_FLAGS, pair(signaled ? SIGNALED : 0, 0));
        ring.set(LONG, at + SG_LIST, entries.address() + ownOffset(slot, 0));
        ring.set(LONG, at + REMOTE_ADDRESS, remoteAddress);
        ring.set(INT, at + REMOTE_KEY, remoteKey);
    }

    /**
     * Patches slots that follow one another, each as an unsignalled request of one piece whose
     * addresses and length come from arrays: the same as {@link #fill} and {@link #piece} for each
     * slot.
     *
     * @param firstSlot first of the slots
     * @param count how many, up to the end of the ring
     * @param firstRequestId comes back in the first slot's completion; it counts up from there
     * @param operation what to do
     * @param remoteKey rkey that covers all ranges at the peer
     * @param localKey lkey that covers all pieces
     * @param localAddresses first byte of each piece
     * @param remoteAddresses first byte of each range at the peer
     * @param lengths bytes of each, from 0 to 2^32 - 1; of a larger number the low 32 bits count
     * @param from index of the first slot's element in each of the three arrays
     * @throws IndexOutOfBoundsException if there are no such slots or elements
     * @throws IllegalStateException if the ring is closed
     */
    public void fillRun(
            int firstSlot,
            int count,
            long firstRequestId,
            Operation operation,
            int remoteKey,
            int localKey,
            long[] localAddresses,
            long[] remoteAddresses,
            long[] lengths,
            int from) {
        Objects.checkFromIndexSize(from, count, localAddresses.length);
        Objects.checkFromIndexSize(from, count, remoteAddresses.length);
        Objects.checkFromIndexSize(from, count, lengths.length);
        Objects.checkFromIndexSize(firstSlot, count, capacity);
        if (count < SHORT_RUN) {
            for (int i = 0; i < count; i++) {
                int slot = firstSlot + i;
                long id = firstRequestId + i;
                fill(slot, id, operation, remoteAddresses[from + i], remoteKey, 1, false);
                piece(slot, 0, localAddresses[from + i], (int) lengths[from + i], localKey);
            }
            return;
        }
        // Each offset is a constant of the run plus i times a stride: so the compiler looks at the
        // bounds once for the whole loop, which halves its time. With the slot's number inside, as
        // (firstSlot + i) * SLOT_SIZE, it does not. Slices of the run would do as well, but are
        // objects wherever the compiler does not see through them.
        long wr = firstSlot * SLOT_SIZE;
        long sge = singles + firstSlot * SGE_SIZE;
        long firstPiece = entries.address() + sge;
        long onePiece = pair(1, operation.opcode);
        for (int i = 0; i < count; i++) {
            ring.set(LONG, wr + WR_ID + i * SLOT_SIZE, firstRequestId + i);
            ring.set(LONG, wr + SG_LIST + i * SLOT_SIZE, firstPiece + i * SGE_SIZE);
            ring.set(LONG, wr + NUM_SGE + i * SLOT_SIZE, onePiece);
            ring.set(LONG, wr + SEND_FLAGS + i * SLOT_SIZE, 0);
            ring.set(LONG, wr + REMOTE_ADDRESS + i * SLOT_SIZE, remoteAddresses[from + i]);
            ring.set(INT, wr + REMOTE_KEY + i * SLOT_SIZE, remoteKey);
            entries.set(LONG, sge + SGE_ADDRESS + i * SGE_SIZE, localAddresses[from + i]);
            entries.set(
                    LONG, sge + SGE_LENGTH + i * SGE_SIZE, pair((int) lengths[from + i], localKey));
        }
    }

    /**
     * Patches one scatter-gather entry of a slot that {@link #fill} has filled: a piece of local
     * memory.
     *
     * @param slot which slot
     * @param entry which of its entries, from 0
     * @param address first byte
     * @param lengthBytes its length, unsigned
     * @param localKey lkey that covers it
     * @throws IndexOutOfBoundsException if there is no such slot or entry
     * @throws IllegalStateException if the ring is closed
     */
    public void piece(int slot, int entry, long address, int lengthBytes, int localKey) {
        long at = ownOffset(Objects.checkIndex(slot, capacity), Objects.checkIndex(entry, maxSge));
        entries.set(LONG, at + SGE_ADDRESS, address);
        entries.set(LONG, at + SGE_LENGTH, pair(lengthBytes, localKey));
    }

    /**
     * Sets the 32 bits that a {@link Operation#WRITE_WITH_IMMEDIATE} hands to the peer.
     *
     * @param slot which slot
     * @param immediate in this machine's byte order
     * @throws IndexOutOfBoundsException if there is no such slot
     * @throws IllegalStateException if the ring is closed
     */
    public void immediate(int slot, int immediate) {
        ring.set(NETWORK_INT, slot * SLOT_SIZE + IMM_DATA, immediate);
    }

    /**
     * Gives the identity of a slot's work request.
     *
     * @param slot which slot
     * @return its wr_id
     * @throws IndexOutOfBoundsException if there is no such slot
     * @throws IllegalStateException if the ring is closed
     */
    public long workRequestId(int slot) {
        return ring.get(LONG, slot * SLOT_SIZE + WR_ID);
    }

    /**
     * Says what a slot's work request does.
     *
     * @param slot which slot
     * @return the operation
     * @throws IndexOutOfBoundsException if there is no such slot
     * @throws IllegalStateException if the ring is closed, or the slot was never filled
     */
    public Operation operation(int slot) {
        int opcode = ring.get(INT, slot * SLOT_SIZE + OPCODE);
        for (Operation operation : OPERATIONS) {
            if (operation.opcode == opcode) {
                return operation;
            }
        }
        throw new IllegalStateException("slot " + slot + " has opcode " + opcode);
    }

    /**
     * Gives the peer's address of a slot's work request.
     *
     * @param slot which slot
     * @return first byte at the peer
     * @throws IndexOutOfBoundsException if there is no such slot
     * @throws IllegalStateException if the ring is closed
     */
    public long remoteAddress(int slot) {
        return ring.get(LONG, slot * SLOT_SIZE + REMOTE_ADDRESS);
    }

    /**
     * Gives the peer's key of a slot's work request.
     *
     * @param slot which slot
     * @return its rkey
     * @throws IndexOutOfBoundsException if there is no such slot
     * @throws IllegalStateException if the ring is closed
     */
    public int remoteKey(int slot) {
        return ring.get(INT, slot * SLOT_SIZE + REMOTE_KEY);
    }

    /**
     * Says whether the success of a slot's work request gives a completion.
     *
     * @param slot which slot
     * @return true if it is signalled
     * @throws IndexOutOfBoundsException if there is no such slot
     * @throws IllegalStateException if the ring is closed
     */
    public boolean isSignaled(int slot) {
        return (ring.get(INT, slot * SLOT_SIZE + SEND_FLAGS) & SIGNALED) != 0;
    }

    /**
     * Gives the 32 bits of a {@link Operation#WRITE_WITH_IMMEDIATE}.
     *
     * @param slot which slot
     * @return the bits in this machine's byte order
     * @throws IndexOutOfBoundsException if there is no such slot
     * @throws IllegalStateException if the ring is closed
     */
    public int immediate(int slot) {
        return ring.get(NETWORK_INT, slot * SLOT_SIZE + IMM_DATA);
    }

    /**
     * Counts the pieces of a slot's work request.
     *
     * @param slot which slot
     * @return entries that count, 0 to {@link #maxSge}
     * @throws IndexOutOfBoundsException if there is no such slot
     * @throws IllegalStateException if the ring is closed
     */
    public int pieces(int slot) {
        return ring.get(INT, slot * SLOT_SIZE + NUM_SGE);
    }

    /**
     * Gives the address of a piece.
     *
     * @param slot which slot
     * @param entry which of its entries, from 0
     * @return first byte of local memory
     * @throws IndexOutOfBoundsException if there is no such slot or entry
     * @throws IllegalStateException if the ring is closed
     */
    public long pieceAddress(int slot, int entry) {
        return entries.get(LONG, offset(slot, entry) + SGE_ADDRESS);
    }

    /**
     * Gives the length of a piece.
     *
     * @param slot which slot
     * @param entry which of its entries, from 0
     * @return its length in bytes, unsigned
     * @throws IndexOutOfBoundsException if there is no such slot or entry
     * @throws IllegalStateException if the ring is closed
     */
    public int pieceLength(int slot, int entry) {
        return entries.get(INT, offset(slot, entry) + SGE_LENGTH);
    }

    /**
     * Gives the key of a piece.
     *
     * @param slot which slot
     * @param entry which of its entries, from 0
     * @return lkey that covers it
     * @throws IndexOutOfBoundsException if there is no such slot or entry
     * @throws IllegalStateException if the ring is closed
     */
    public int pieceKey(int slot, int entry) {
        return entries.get(INT, offset(slot, entry) + SGE_KEY);
    }

    /** Frees the ring, once a post under way has ended. Does nothing if done already. */
    @Override
    public void close() {
        lifetime.close(arena::close);
    }

    /**
     * Marks a slot, already filled, as signalled.
     *
     * @param slot which slot
     * @throws IndexOutOfBoundsException if there is no such slot
     * @throws IllegalStateException if the ring is closed
     */
    public void signal(int slot) {
        ring.set(INT, slot * SLOT_SIZE + SEND_FLAGS, SIGNALED);
    }

    /** A post, which hands out addresses, runs between enter and exit of this. */
    Lifetime lifetime() {
        return lifetime;
    }

    /** Ends the chain behind a slot. */
    void cut(int slot) {
        ring.set(LONG, slot * SLOT_SIZE + NEXT, 0);
    }

    /** Links a slot to the next one of the ring. */
    void join(int slot) {
        long next = ((slot + 1) & (capacity - 1)) * SLOT_SIZE;
        ring.set(LONG, slot * SLOT_SIZE + NEXT, ring.address() + next);
    }

    long address(int slot) {
        return ring.address() + Objects.checkIndex(slot, capacity) * SLOT_SIZE;
    }

    long badRequestAddress() {
        return badRequest.address();
    }

    void clearBadRequest() {
        badRequest.set(LONG, 0, 0);
    }

    /** The slot that the last post refused, or -1 if the driver did not say. */
    int badSlot() {
        long offset = badRequest.get(LONG, 0) - ring.address();
        boolean inside = offset >= 0 && offset < capacity * SLOT_SIZE && offset % SLOT_SIZE == 0;
        return inside ? (int) (offset / SLOT_SIZE) : -1;
    }

    /**
     * Two ints that are neighbours in a struct, as they lie in memory: one store instead of two.
     * Short, so that it is inlined wherever it is called: the loop over a run would be three times
     * slower if it were not.
     */
    private static long pair(int first, int second) {
        return (first & 0xffff_ffffL) << FIRST_SHIFT
                | (second & 0xffff_ffffL) << (Integer.SIZE - FIRST_SHIFT);
    }

    /** Where an entry of the slot's own is. */
    private long ownOffset(int slot, int entry) {
        return ((long) slot * maxSge + entry) * SGE_SIZE;
    }

    /** Where an entry is to which the slot's list leads. */
    private long offset(int slot, int entry) {
        long list = ring.get(LONG, slot * SLOT_SIZE + SG_LIST) - entries.address();
        return list + Objects.checkIndex(entry, list >= singles ? 1 : maxSge) * SGE_SIZE;
    }
}
