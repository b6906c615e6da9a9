package dev.verbena.tcp;

import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.WorkRequests;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/**
 * What a lane sends: answers to the peer's requests, then requests of its own. Many of them go into
 * one gathering write. Short payload is copied beside its head; longer goes straight from the
 * pools' memory. For the lane's thread alone.
 *
 * <p>Answers keep the order of the requests. A write that follows a read may be carried out before
 * the read is answered, as the answer waits for the socket: whoever needs the bytes of before waits
 * for the read.
 */
final class LaneOutput {
    /** Heads and short payload of one write, and so what a lane takes of memory. */
    static final int STAGING_BYTES = 1 << 16;

    /** Up to this length a copy costs less than a buffer of its own in the gathering write. */
    private static final int SHORT_BYTES = 1 << 11;

    private static final int BUFFERS_A_WRITE = 512;
    private static final long BYTES_A_WRITE = 1 << 20;

    /** A read of the peer that has not been answered. */
    private record Read(long request, TcpRegion region, long address, int lengthBytes) {}

    private final TcpLane lane;
    private final SocketChannel channel;
    private final ByteBuffer staging;
    private final int maxPieces;

    // The write that is under way.
    private final ByteBuffer[] buffers;
    private int bufferCount;
    private int firstBuffer;

    /** Where in the staging begins what is in none of the buffers. */
    private int stagedFrom;

    private long bytes;

    /** Regions of answers among them: no transfer of this side holds those. */
    private final List<TcpRegion> answering = new ArrayList<>();

    // What the peer has asked, and been told.
    private final ArrayDeque<Read> reads = new ArrayDeque<>();
    private long carriedOut;
    private long told;

    /** The request behind the last write that was carried out. */
    private long behindLastWrite;

    private boolean isRefusing;
    private boolean owesRefusal;
    private CompletionStatus refusal = CompletionStatus.REMOTE_ACCESS;

    LaneOutput(TcpLane lane, SocketChannel channel, ByteBuffer staging) {
        this.lane = lane;
        this.channel = channel;
        this.staging = staging;
        this.maxPieces = lane.options().sendSge();
        // A request is added whole: a buffer for each piece, and what is staged before each.
        this.buffers = new ByteBuffer[BUFFERS_A_WRITE + 2 * maxPieces + 1];
    }

    /** Counts a write of the peer as carried out. */
    void wrote() {
        carriedOut++;
        behindLastWrite = carriedOut;
    }

    /** Takes a read of the peer, which the answer carries out. */
    void answer(TcpRegion region, long address, int lengthBytes) {
        reads.add(new Read(carriedOut++, region, address, lengthBytes));
    }

    int unansweredReads() {
        return reads.size();
    }

    /** Refuses the next request of the peer; the lane carries out nothing behind it. */
    void refuse(CompletionStatus status) {
        isRefusing = true;
        owesRefusal = true;
        refusal = status;
    }

    /** Whether a request was refused, so that nothing more of the peer's is taken. */
    boolean isRefusing() {
        return isRefusing;
    }

    /** Whether there is something to be sent that has not been put into a write. */
    boolean hasNews() {
        return bytes == 0
                && (!reads.isEmpty() || told < carriedOut || owesRefusal || hasRequests());
    }

    private boolean hasRequests() {
        return !isRefusing && lane.sends().hasUnsent();
    }

    boolean waitsForSocket() {
        return bytes > 0;
    }

    /** Sends what the socket takes; gives whether it took any. */
    boolean turn() throws IOException, LaneFailure {
        if (bytes == 0) {
            fill();
        }
        return bytes > 0 && write();
    }

    private void fill() throws LaneFailure {
        staging.clear();
        stagedFrom = 0;
        bufferCount = 0;
        firstBuffer = 0;
        answering.clear();
        while (staging.remaining() >= Frame.BYTES
                && bufferCount < BUFFERS_A_WRITE
                && bytes < BYTES_A_WRITE
                && add()) {}
        endStaged();
    }

    /** Adds the next frame, if there is one. */
    private boolean add() throws LaneFailure {
        Read read = reads.peek();
        long known = read == null ? carriedOut : read.request;
        if (told < known) {
            told = known;
            addHead(Frame.DONE, 0, known, 0, 0);
        } else if (read != null) {
            addAnswer(read);
        } else if (owesRefusal) {
            owesRefusal = false;
            addHead(Frame.REFUSED, 0, carriedOut, 0, refusal.number());
            // All that went before is sent: nothing touches this side's memory any more.
            lane.refused();
        } else if (hasRequests()) {
            addRequest(lane.sends().send());
        } else {
            return false;
        }
        return true;
    }

    private void addAnswer(Read read) {
        if (!read.region.enter()) {
            refuseRead(read);
            return;
        }
        try {
            addHead(Frame.READ_DATA, 0, read.request, read.lengthBytes, 0);
            if (addPayload(read.region, read.address, read.lengthBytes)) {
                answering.add(read.region);
            }
        } finally {
            read.region.exit();
        }
        reads.remove();
        told = read.request + 1;
    }

    /**
     * Refuses a read whose region has been closed since it was taken. If the peer's writes behind
     * it have been carried out, the status must not say that nothing was.
     */
    private void refuseRead(Read read) {
        refuse(
                behindLastWrite > read.request
                        ? CompletionStatus.REMOTE_ABORT
                        : CompletionStatus.REMOTE_ACCESS);
        reads.clear();
        carriedOut = read.request;
    }

    private void addRequest(int slot) throws LaneFailure {
        WorkRequests ring = lane.sends().ring();
        WorkRequests.Operation operation = ring.operation(slot);
        byte kind =
                switch (operation) {
                    case READ -> Frame.READ;
                    case WRITE -> Frame.WRITE;
                    case WRITE_WITH_IMMEDIATE -> Frame.WRITE_IMMEDIATE;
                };
        addHead(
                kind,
                ring.remoteKey(slot),
                ring.remoteAddress(slot),
                length(ring, slot),
                kind == Frame.WRITE_IMMEDIATE ? ring.immediate(slot) : 0);
        int pieces = kind == Frame.READ ? 0 : ring.pieces(slot);
        for (int piece = 0; piece < pieces; piece++) {
            addPayload(
                    lane.local(ring, slot, piece, null),
                    ring.pieceAddress(slot, piece),
                    ring.pieceLength(slot, piece));
        }
    }

    /** Bytes of all pieces of a work request. */
    static int length(WorkRequests ring, int slot) {
        int length = 0;
        for (int piece = 0; piece < ring.pieces(slot); piece++) {
            length += ring.pieceLength(slot, piece);
        }
        return length;
    }

    private void addHead(byte kind, int key, long position, int length, int number) {
        Frame.put(staging, kind, key, position, length, number);
        bytes += Frame.BYTES;
    }

    /** Adds payload; gives whether it is sent from where it is, rather than from a copy. */
    private boolean addPayload(TcpRegion region, long address, int length) {
        bytes += length;
        if (length <= SHORT_BYTES && length <= staging.remaining()) {
            region.get(address, staging, length);
            return false;
        }
        endStaged();
        buffers[bufferCount++] = region.view(address, length);
        return true;
    }

    private void endStaged() {
        int end = staging.position();
        if (end > stagedFrom) {
            buffers[bufferCount++] = staging.slice(stagedFrom, end - stagedFrom);
            stagedFrom = end;
        }
    }

    private boolean write() throws IOException, LaneFailure {
        int entered = 0;
        long written;
        try {
            for (TcpRegion region : answering) {
                if (!region.enter()) {
                    throw new LaneFailure(
                            CompletionStatus.FLUSHED,
                            "a pool was closed while the peer read from it");
                }
                entered++;
            }
            written = channel.write(buffers, firstBuffer, bufferCount - firstBuffer);
        } finally {
            answering.subList(0, entered).forEach(TcpRegion::exit);
        }
        bytes -= written;
        while (firstBuffer < bufferCount && !buffers[firstBuffer].hasRemaining()) {
            firstBuffer++;
        }
        return written > 0;
    }
}
