package dev.verbena.transfer;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * A list of blocks to move: local address, remote address and length of each, in three primitive
 * arrays. A batch says nothing of direction: the same batch can be written to a peer or read from
 * it.
 *
 * <p>Life: fill with {@link #add}, hand to a peer, and leave unchanged until the transfer has
 * ended, which the batch insists on; then {@link #clear} and fill again, which allocates nothing.
 * Several transfers may move the same batch at once.
 *
 * <p>Blocks keep their order, and neighbours in that order that are adjacent in memory are merged
 * when the batch is planned: add blocks in ascending address order where there is a choice.
 *
 * <p>Not thread-safe: one thread fills it, and the handing over publishes it.
 */
public final class TransferBatch {
    /** The most blocks a batch can hold. */
    public static final int MAX_BLOCKS = 1 << 28;

    private static final int INITIAL_CAPACITY = 64;

    /** So many bytes times any number of items do not pass 63 bits. */
    private static final long MOST_ITEM_BYTES = 1L << 32;

    private long[] localAddresses;
    private long[] remoteAddresses;
    private long[] lengths;
    private int size;
    private long bytes;

    /**
     * Size at which another block needs a closer look: the capacity, or -1 while a transfer is
     * under way. So one comparison answers both, and adding costs no more for being refused then.
     */
    private int limit;

    /** Those of this batch that have not ended; guarded by itself. */
    private final List<Transfer> transfers = new ArrayList<>(1);

    /** Makes an empty batch with a small capacity, which grows as needed. */
    public TransferBatch() {
        this(INITIAL_CAPACITY);
    }

    /**
     * Makes an empty batch.
     *
     * @param capacity blocks it holds before its arrays must grow, at least 0
     * @throws IllegalArgumentException if the capacity is negative or above {@link #MAX_BLOCKS}
     */
    public TransferBatch(int capacity) {
        if (capacity < 0 || capacity > MAX_BLOCKS) {
            throw new IllegalArgumentException(
                    "capacity " + capacity + " is outside 0.." + MAX_BLOCKS + " blocks");
        }
        localAddresses = new long[capacity];
        remoteAddresses = new long[capacity];
        lengths = new long[capacity];
        limit = capacity;
    }

    /**
     * Appends one block. A block of length zero is dropped. Addresses are checked against the
     * registered pools when the batch is planned or posted, not here.
     *
     * @param localAddress first byte on this side, an address in a registered pool
     * @param remoteAddress first byte on the peer's side, an address in one of its pools
     * @param lengthBytes bytes to move, at least 0
     * @return this batch
     * @throws IllegalArgumentException if the length is negative, or an end passes the address
     *     space
     * @throws IllegalStateException if a transfer of the batch is under way, which the message
     *     names, or the batch holds {@link #MAX_BLOCKS} already
     */
    public TransferBatch add(long localAddress, long remoteAddress, long lengthBytes) {
        if (lengthBytes <= 0) {
            if (lengthBytes == 0) {
                return this;
            }
            throw new IllegalArgumentException(
                    "block " + size + " has a negative length: " + lengthBytes);
        }
        if (Long.compareUnsigned(localAddress + lengthBytes, localAddress) < 0
                || Long.compareUnsigned(remoteAddress + lengthBytes, remoteAddress) < 0) {
            throw new IllegalArgumentException(
                    "block "
                            + size
                            + " passes the end of the address space: "
                            + describe(localAddress, remoteAddress, lengthBytes));
        }
        if (size >= limit) {
            makeRoom(1);
        }
        localAddresses[size] = localAddress;
        remoteAddresses[size] = remoteAddress;
        lengths[size] = lengthBytes;
        size++;
        bytes += lengthBytes;
        return this;
    }

    /**
     * Appends a block for each of some runs of items, where items lie back to back on both sides:
     * pages, tokens, slots. As {@link #add} of each, several times as fast.
     *
     * @param localBase address of item 0 on this side
     * @param localItems first item of each run on this side
     * @param remoteBase address of item 0 on the peer's side
     * @param remoteItems first item of each run on the peer's side
     * @param itemCounts items of each run
     * @param runs how many entries of the arrays count
     * @param itemBytes bytes of an item
     * @return this batch
     * @throws IndexOutOfBoundsException if an array has fewer entries
     * @throws ArithmeticException if a length passes 63 bits; the blocks before it are in
     * @throws IllegalArgumentException as {@link #add}; the blocks before the refused one are in
     * @throws IllegalStateException as {@link #add}
     */
    public TransferBatch addRuns(
            long localBase,
            int[] localItems,
            long remoteBase,
            int[] remoteItems,
            int[] itemCounts,
            int runs,
            long itemBytes) {
        Objects.checkFromIndexSize(0, runs, localItems.length);
        Objects.checkFromIndexSize(0, runs, remoteItems.length);
        Objects.checkFromIndexSize(0, runs, itemCounts.length);
        if (runs > limit - size) {
            makeRoom(runs);
        }
        if (itemBytes <= MOST_ITEM_BYTES
                && copyRuns(
                        localBase,
                        localItems,
                        remoteBase,
                        remoteItems,
                        itemCounts,
                        runs,
                        itemBytes)) {
            return this;
        }
        // Something needs a closer look.
        for (int i = 0; i < runs; i++) {
            add(
                    localBase + localItems[i] * itemBytes,
                    remoteBase + remoteItems[i] * itemBytes,
                    Math.multiplyExact(itemCounts[i], itemBytes));
        }
        return this;
    }

    /**
     * Appends runs by loops that the compiler turns into vectors, the checks included: instead of
     * comparing it gathers signs. False, and nothing is appended, if a length is not above 0 or an
     * address is in the upper half of the address space.
     */
    private boolean copyRuns(
            long localBase,
            int[] localItems,
            long remoteBase,
            int[] remoteItems,
            int[] itemCounts,
            int runs,
            long itemBytes) {
        int first = size;
        for (int i = 0; i < runs; i++) {
            localAddresses[first + i] = localBase + localItems[i] * itemBytes;
        }
        for (int i = 0; i < runs; i++) {
            remoteAddresses[first + i] = remoteBase + remoteItems[i] * itemBytes;
        }
        long added = 0;
        for (int i = 0; i < runs; i++) {
            long length = itemCounts[i] * itemBytes;
            lengths[first + i] = length;
            added += length;
        }
        long signs = itemBytes;
        for (int i = first; i < first + runs; i++) {
            long length = lengths[i];
            signs |= length - 1;
            signs |= localAddresses[i] | (localAddresses[i] + length);
            signs |= remoteAddresses[i] | (remoteAddresses[i] + length);
        }
        if (signs < 0) {
            return false;
        }
        size = first + runs;
        bytes += added;
        return true;
    }

    /**
     * Empties the batch and keeps its arrays.
     *
     * @return this batch
     * @throws IllegalStateException if a transfer of the batch is under way, which the message
     *     names
     */
    public TransferBatch clear() {
        requireUnused();
        size = 0;
        bytes = 0;
        return this;
    }

    /**
     * Says how many blocks the batch holds.
     *
     * @return the number of blocks
     */
    public int size() {
        return size;
    }

    /**
     * Says whether the batch holds no block.
     *
     * @return true if there is nothing to move
     */
    public boolean isEmpty() {
        return size == 0;
    }

    /**
     * Says how many bytes the batch moves.
     *
     * @return the sum of all lengths
     */
    public long bytes() {
        return bytes;
    }

    /**
     * Gives the local address of a block.
     *
     * @param block index, in the order of adding
     * @return address of its first byte on this side
     * @throws IndexOutOfBoundsException if there is no such block
     */
    public long localAddress(int block) {
        return localAddresses[Objects.checkIndex(block, size)];
    }

    /**
     * Gives the remote address of a block.
     *
     * @param block index, in the order of adding
     * @return address of its first byte on the peer's side
     * @throws IndexOutOfBoundsException if there is no such block
     */
    public long remoteAddress(int block) {
        return remoteAddresses[Objects.checkIndex(block, size)];
    }

    /**
     * Gives the length of a block.
     *
     * @param block index, in the order of adding
     * @return its length in bytes, above 0
     * @throws IndexOutOfBoundsException if there is no such block
     */
    public long length(int block) {
        return lengths[Objects.checkIndex(block, size)];
    }

    @Override
    public String toString() {
        return "TransferBatch[" + size + " blocks, " + bytes + " bytes]";
    }

    /** A transfer of this batch has begun. */
    void begin(Transfer transfer) {
        synchronized (transfers) {
            transfers.add(transfer);
            limit = -1;
        }
    }

    /** A transfer of this batch ends, and reads it no more. */
    void end(Transfer transfer) {
        synchronized (transfers) {
            transfers.remove(transfer);
            if (transfers.isEmpty()) {
                limit = lengths.length;
            }
        }
    }

    private void requireUnused() {
        synchronized (transfers) {
            if (!transfers.isEmpty()) {
                throw new IllegalStateException(
                        "the batch cannot be changed before the end of what moves it: "
                                + transfers
                                + "; await that, or fill another batch");
            }
        }
    }

    /** The arrays themselves, for the planner's inner loop; only the first size() entries count. */
    long[] localAddresses() {
        return localAddresses;
    }

    long[] remoteAddresses() {
        return remoteAddresses;
    }

    long[] lengths() {
        return lengths;
    }

    /** Blocks left once neighbours that are adjacent on both sides are one. */
    int runs() {
        int runs = size == 0 ? 0 : 1;
        for (int i = 1; i < size; i++) {
            boolean adjacent =
                    localAddresses[i] == localAddresses[i - 1] + lengths[i - 1]
                            && remoteAddresses[i] == remoteAddresses[i - 1] + lengths[i - 1];
            runs += adjacent ? 0 : 1;
        }
        return runs;
    }

    /** One block in words, for messages. */
    String describe(int block) {
        return describe(localAddresses[block], remoteAddresses[block], lengths[block]);
    }

    private static String describe(long local, long remote, long length) {
        return "local 0x%x, remote 0x%x, %d bytes".formatted(local, remote, length);
    }

    private void makeRoom(int blocks) {
        requireUnused();
        if (blocks <= lengths.length - size) {
            // The end came between two looks.
            return;
        }
        if (blocks > MAX_BLOCKS - size) {
            throw new IllegalStateException(
                    "a batch holds at most %d blocks, and this one has %d: there is no room for %d"
                            .formatted(MAX_BLOCKS, size, blocks));
        }
        int wanted = Math.max(size + blocks, size + (size >> 1));
        int capacity = Math.min(MAX_BLOCKS, Math.max(INITIAL_CAPACITY, wanted));
        localAddresses = Arrays.copyOf(localAddresses, capacity);
        remoteAddresses = Arrays.copyOf(remoteAddresses, capacity);
        lengths = Arrays.copyOf(lengths, capacity);
        limit = capacity;
    }
}
