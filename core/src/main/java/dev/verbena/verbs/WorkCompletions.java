package dev.verbena.verbs;

import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_WC_RECV;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_WC_WITH_IMM;

import dev.verbena.bindings.ibverbs.ibv_wc;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * Room for completions: a native array that {@link CompletionSource#poll} fills and whose entries
 * are read in place by index.
 *
 * <p>Life: make once, poll into it again and again, {@link #close}. For one thread at a time.
 * Polling and reading allocate nothing. What reads a completion throws {@link
 * IndexOutOfBoundsException} for an index that is not below {@link #count}, and {@link
 * IllegalStateException} once the room is closed.
 */
public final class WorkCompletions implements AutoCloseable {
    private static final long SIZE = ibv_wc.sizeof();
    private static final long WR_ID = ibv_wc.wr_id$offset();
    private static final long STATUS = ibv_wc.status$offset();
    private static final long OPCODE = ibv_wc.opcode$offset();
    private static final long VENDOR_ERR = ibv_wc.vendor_err$offset();
    private static final long BYTE_LEN = ibv_wc.byte_len$offset();
    private static final long IMM_DATA = ibv_wc.imm_data$offset();
    private static final long QP_NUM = ibv_wc.qp_num$offset();
    private static final long WC_FLAGS = ibv_wc.wc_flags$offset();

    /** Immediate data travels, and is handed over by the verbs, in network order. */
    private static final ValueLayout.OfInt NETWORK_INT =
            ValueLayout.JAVA_INT.withOrder(ByteOrder.BIG_ENDIAN);

    private final Arena arena = Arena.ofShared();
    private final MemorySegment entries;
    private final int capacity;
    private final Lifetime lifetime = Lifetime.root(() -> "room for completions");
    private int count;

    /**
     * Makes room.
     *
     * @param capacity most completions of one poll, above 0
     * @throws IllegalArgumentException if the capacity is not above 0
     */
    public WorkCompletions(int capacity) {
        if (capacity <= 0) {
            throw new IllegalArgumentException("capacity " + capacity + " is not above 0");
        }
        this.capacity = capacity;
        this.entries = ibv_wc.allocateArray(capacity, arena);
    }

    /**
     * Says how many completions one poll can bring.
     *
     * @return the capacity
     */
    public int capacity() {
        return capacity;
    }

    /**
     * Says how many completions the last poll brought.
     *
     * @return their number; valid indices are below it
     */
    public int count() {
        return count;
    }

    /**
     * Gives the identity that the work request was posted with.
     *
     * @param index which completion
     * @return its wr_id
     */
    public long workRequestId(int index) {
        return entries.get(ValueLayout.JAVA_LONG, offset(index) + WR_ID);
    }

    /**
     * Says how the work request ended.
     *
     * @param index which completion
     * @return its status
     */
    public CompletionStatus status(int index) {
        return CompletionStatus.of(statusNumber(index));
    }

    /**
     * Says how the work request ended, as the verbs' number.
     *
     * @param index which completion
     * @return value of {@code enum ibv_wc_status}
     */
    public int statusNumber(int index) {
        return entries.get(ValueLayout.JAVA_INT, offset(index) + STATUS);
    }

    /**
     * Gives the vendor's error code of a failed completion.
     *
     * @param index which completion
     * @return the code, whose meaning is the vendor's
     */
    public int vendorError(int index) {
        return entries.get(ValueLayout.JAVA_INT, offset(index) + VENDOR_ERR);
    }

    /**
     * Says whether a successful completion is that of a receive.
     *
     * @param index which completion
     * @return true for a receive, false for a send
     */
    public boolean isReceive(int index) {
        return (entries.get(ValueLayout.JAVA_INT, offset(index) + OPCODE) & IBV_WC_RECV()) != 0;
    }

    /**
     * Says whether a successful receive carries immediate data.
     *
     * @param index which completion
     * @return true if {@link #immediate} has a meaning
     */
    public boolean hasImmediate(int index) {
        return (entries.get(ValueLayout.JAVA_INT, offset(index) + WC_FLAGS) & IBV_WC_WITH_IMM())
                != 0;
    }

    /**
     * Gives the immediate data of a receive, in this machine's byte order.
     *
     * @param index which completion
     * @return the 32 bits that the peer sent
     */
    public int immediate(int index) {
        return entries.get(NETWORK_INT, offset(index) + IMM_DATA);
    }

    /**
     * Gives the number of bytes that a receive brought.
     *
     * @param index which completion
     * @return the length in bytes
     */
    public int byteLength(int index) {
        return entries.get(ValueLayout.JAVA_INT, offset(index) + BYTE_LEN);
    }

    /**
     * Gives the number of the queue pair that the work request was posted to.
     *
     * @param index which completion
     * @return this side's queue pair number
     */
    public int queuePairNumber(int index) {
        return entries.get(ValueLayout.JAVA_INT, offset(index) + QP_NUM);
    }

    /**
     * Forgets what is in here, for a {@link CompletionSource} that fills it by {@link #add}.
     *
     * @throws IllegalStateException if the room is closed
     */
    public void clear() {
        lifetime.enter();
        lifetime.exit();
        count = 0;
    }

    /**
     * Adds the completion of a send.
     *
     * @param workRequestId the wr_id that it was posted with
     * @param status how it ended
     * @throws IndexOutOfBoundsException if there is no room
     * @throws IllegalStateException if the room is closed
     */
    public void add(long workRequestId, CompletionStatus status) {
        add(workRequestId, status, 0, 0, 0);
    }

    /**
     * Adds the completion of a receive that took an immediate.
     *
     * @param workRequestId the wr_id that it was posted with
     * @param immediate the 32 bits in this machine's byte order
     * @throws IndexOutOfBoundsException if there is no room
     * @throws IllegalStateException if the room is closed
     */
    public void addImmediate(long workRequestId, int immediate) {
        add(workRequestId, CompletionStatus.SUCCESS, IBV_WC_RECV(), IBV_WC_WITH_IMM(), immediate);
    }

    private void add(
            long workRequestId, CompletionStatus status, int opcode, int flags, int immediate) {
        long at = Objects.checkIndex(count, capacity) * SIZE;
        entries.asSlice(at, SIZE).fill((byte) 0);
        entries.set(ValueLayout.JAVA_LONG, at + WR_ID, workRequestId);
        entries.set(ValueLayout.JAVA_INT, at + STATUS, status.number());
        entries.set(ValueLayout.JAVA_INT, at + OPCODE, opcode);
        entries.set(ValueLayout.JAVA_INT, at + WC_FLAGS, flags);
        entries.set(NETWORK_INT, at + IMM_DATA, immediate);
        count++;
    }

    /** Frees the room, once a poll under way has ended. Does nothing if done already. */
    @Override
    public void close() {
        lifetime.close(arena::close);
    }

    /** A poll, which hands out the address, runs between enter and exit of this. */
    Lifetime lifetime() {
        return lifetime;
    }

    long address() {
        return entries.address();
    }

    void count(int newCount) {
        count = newCount;
    }

    private long offset(int index) {
        return Objects.checkIndex(index, count) * SIZE;
    }
}
