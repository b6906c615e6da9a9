package dev.verbena.transfer;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import dev.verbena.memory.RemotePool;
import dev.verbena.verbs.WorkRequests;

/**
 * Walks over a batch and turns its blocks into work requests, one at a time.
 *
 * <p>A work request is one range at the peer and up to maxSge pieces on this side, whichever way
 * the bytes go: a write gathers the pieces, a read scatters to them. So blocks that follow one
 * another at the peer share a work request, and those that follow one another on both sides share a
 * piece. A work request ends at the end of a region of the peer and at the longest message; a piece
 * ends at the end of a local region.
 *
 * <pre>
 *   local     [ a ][ b ]     [ c ]     [ d ]
 *                \   \         \          \
 *   remote    [ a ][ b ][  c  ]       [ d ]
 *   requests  |-- a+b: 1 piece, c --|  |- d -|
 * </pre>
 *
 * <p>The batch must have passed {@link BatchCheck}. The walk is the same for counting and for
 * posting, and allocates room for the pieces of one work request.
 */
final class WorkRequestCursor {
    private static final long[] NO_LONGS = {};
    private static final int[] NO_INTS = {};

    private final long[] locals;
    private final long[] remotes;
    private final long[] lengths;
    private final int size;
    private final AddressMap<Pool> localMap;
    private final AddressMap<RemotePool> remoteMap;
    private final int maxSge;
    private final long maxMessageBytes;

    /** Where the next work request begins. */
    private int block;

    private long offset;

    private int localIndex;
    private int remoteIndex;

    // The work request that next() found.
    private int firstBlock;
    private long firstOffset;
    private long remoteAddress;
    private int remoteKey;
    private long bytes;
    private int pieces;
    private long[] pieceAddresses = NO_LONGS;
    private long[] pieceLengths = NO_LONGS;
    private int[] pieceKeys = NO_INTS;

    private long singleBytes;

    WorkRequestCursor(
            TransferBatch batch,
            AddressMap<Pool> localMap,
            AddressMap<RemotePool> remoteMap,
            int maxSge,
            long maxMessageBytes) {
        this.locals = batch.localAddresses();
        this.remotes = batch.remoteAddresses();
        this.lengths = batch.lengths();
        this.size = batch.size();
        this.localMap = localMap;
        this.remoteMap = remoteMap;
        this.maxSge = maxSge;
        this.maxMessageBytes = maxMessageBytes;
    }

    /** Finds the next work request. False at the end of the batch. */
    boolean next() {
        if (block == size) {
            return false;
        }
        if (pieceKeys.length == 0) {
            makeRoomForPieces();
        }
        firstBlock = block;
        firstOffset = offset;
        remoteAddress = remotes[block] + offset;
        remoteIndex = remoteMap.find(remoteAddress, remoteIndex);
        remoteKey = remoteMap.key(remoteIndex);
        long room = Math.min(maxMessageBytes, remoteMap.end(remoteIndex) - remoteAddress);
        bytes = 0;
        pieces = 0;
        while (bytes < room
                && block < size
                && remotes[block] + offset == remoteAddress + bytes
                && takePiece(room - bytes)) {}
        return true;
    }

    /** Only now, as a batch of scattered blocks needs none; this would be most of its memory. */
    private void makeRoomForPieces() {
        pieceAddresses = new long[maxSge];
        pieceLengths = new long[maxSge];
        pieceKeys = new int[maxSge];
    }

    /** Adds what it can of the current block. False if that needs a piece more than there is. */
    private boolean takePiece(long room) {
        long address = locals[block] + offset;
        int last = pieces - 1;
        boolean extend =
                last >= 0
                        && address == pieceAddresses[last] + pieceLengths[last]
                        && address != localMap.end(localIndex);
        if (!extend) {
            if (pieces == maxSge) {
                return false;
            }
            localIndex = localMap.find(address, localIndex);
            last = pieces++;
            pieceAddresses[last] = address;
            pieceLengths[last] = 0;
            pieceKeys[last] = localMap.key(localIndex);
        }
        long wanted = lengths[block] - offset;
        long taken = Math.min(Math.min(wanted, room), localMap.end(localIndex) - address);
        pieceLengths[last] += taken;
        bytes += taken;
        if (taken == wanted) {
            block++;
            offset = 0;
        } else {
            offset += taken;
        }
        return true;
    }

    /**
     * Counts the blocks ahead of which each is a work request of one piece, in the regions that
     * held the last one. Most batches of scattered pages are nothing but such blocks, and to see
     * that takes a tenth of the time that {@link #next} takes.
     *
     * @param limitBlocks most to count
     * @param limitBytes most bytes of all together
     * @return how many; {@link #singleBytes} says how many bytes they have
     */
    int singles(int limitBlocks, long limitBytes) {
        singleBytes = 0;
        if (offset != 0 || localMap.size() == 0 || remoteMap.size() == 0) {
            return 0;
        }
        long localStart = localMap.start(localIndex);
        long localBytes = localMap.end(localIndex) - localStart;
        long remoteStart = remoteMap.start(remoteIndex);
        long remoteBytes = remoteMap.end(remoteIndex) - remoteStart;
        int end = block + Math.min(limitBlocks, size - block);
        long sum = 0;
        int at = block;
        for (; at < end; at++) {
            long length = lengths[at];
            long localOffset = locals[at] - localStart;
            long remoteOffset = remotes[at] - remoteStart;
            if (length > maxMessageBytes
                    || localOffset < 0
                    || localOffset > localBytes - length
                    || remoteOffset < 0
                    || remoteOffset > remoteBytes - length
                    || sum + length > limitBytes
                    || (at + 1 < size && remotes[at + 1] == remotes[at] + length)) {
                break;
            }
            sum += length;
        }
        singleBytes = sum;
        return at - block;
    }

    /** Goes back to where a work request began, to find it and those behind it again. */
    void seek(int toBlock, long toOffset) {
        block = toBlock;
        offset = toOffset;
    }

    /** Bytes of the blocks that {@link #singles} counted. */
    long singleBytes() {
        return singleBytes;
    }

    /**
     * Fills slots with the next blocks, which {@link #singles} has counted, and passes them.
     *
     * @param slotBytes gets the bytes of each slot's block
     */
    void takeSingles(
            int count,
            WorkRequests ring,
            int slot,
            long requestId,
            Direction direction,
            long[] slotBytes) {
        ring.fillRun(
                slot,
                count,
                requestId,
                direction.operation(),
                remoteMap.key(remoteIndex),
                localMap.key(localIndex),
                locals,
                remotes,
                lengths,
                block);
        System.arraycopy(lengths, block, slotBytes, slot, count);
        block += count;
    }

    boolean atEnd() {
        return block == size;
    }

    /** Block in which the next work request begins. */
    int block() {
        return block;
    }

    /** Where in its block the next work request begins. */
    long offset() {
        return offset;
    }

    /** Block in which the work request begins. */
    int firstBlock() {
        return firstBlock;
    }

    /** Where in its first block the work request begins. */
    long firstOffset() {
        return firstOffset;
    }

    long remoteAddress() {
        return remoteAddress;
    }

    int remoteKey() {
        return remoteKey;
    }

    long bytes() {
        return bytes;
    }

    int pieces() {
        return pieces;
    }

    long pieceAddress(int piece) {
        return pieceAddresses[piece];
    }

    int pieceLength(int piece) {
        return (int) pieceLengths[piece];
    }

    int pieceKey(int piece) {
        return pieceKeys[piece];
    }
}
