package dev.verbena.tcp;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.WorkRequests;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a lane sends: answers to the peer's requests, then requests of its own. Many of them go into
 * one gathering write, straight from the pools' memory. For the lane's thread alone.
 */
final class LaneOutput {
    private static final int FRAMES_A_WRITE = 64;
    private static final int BUFFERS_A_WRITE = 512;
    private static final long BYTES_A_WRITE = 1 << 20;

    /** A read of the peer that has not been answered. */
    private record Read(long request, Pool pool, long address, int lengthBytes) {}

    private final TcpLane lane;
    private final SocketChannel channel;
    private final ByteBuffer[] heads = new ByteBuffer[FRAMES_A_WRITE];

    // The write that is under way.
    private final List<ByteBuffer> filling = new ArrayList<>();
    private ByteBuffer[] buffers = {};
    private int firstBuffer;
    private int frames;
    private long bytes;

    /** Pools of its answers: they are not held by any transfer. */
    private final List<Pool> answering = new ArrayList<>();

    // What the peer has asked, and been told.
    private final ArrayDeque<Read> reads = new ArrayDeque<>();
    private long carriedOut;
    private long told;
    private @Nullable CompletionStatus refusal;

    LaneOutput(TcpLane lane, SocketChannel channel) {
        this.lane = lane;
        this.channel = channel;
        ByteBuffer all = ByteBuffer.allocateDirect(FRAMES_A_WRITE * Frame.BYTES);
        for (int i = 0; i < FRAMES_A_WRITE; i++) {
            heads[i] = all.slice(i * Frame.BYTES, Frame.BYTES);
        }
    }

    /** Counts a request of the peer as carried out. */
    void carriedOut() {
        carriedOut++;
    }

    /** Takes a read of the peer, which the answer carries out. */
    void answer(Pool pool, long address, int lengthBytes) {
        reads.add(new Read(carriedOut++, pool, address, lengthBytes));
    }

    int unansweredReads() {
        return reads.size();
    }

    /** Refuses the next request of the peer; the lane carries out nothing behind it. */
    void refuse(CompletionStatus status) {
        refusal = status;
    }

    /** Whether there is something to be sent that has not been put into a write. */
    boolean hasNews() {
        return bytes == 0
                && (!reads.isEmpty()
                        || told < carriedOut
                        || refusal != null
                        || lane.sends().hasUnsent());
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
        filling.clear();
        answering.clear();
        frames = 0;
        AddressMap<Pool> pools = lane.pools();
        while (frames < FRAMES_A_WRITE
                && filling.size() < BUFFERS_A_WRITE
                && bytes < BYTES_A_WRITE
                && add(pools)) {
            frames++;
        }
        buffers = filling.toArray(ByteBuffer[]::new);
        firstBuffer = 0;
    }

    /** Adds the next frame, if there is one. */
    private boolean add(AddressMap<Pool> pools) throws LaneFailure {
        Read read = reads.peek();
        long known = read == null ? carriedOut : read.request;
        if (told < known) {
            told = known;
            addHead(Frame.DONE, 0, known, 0, 0);
        } else if (read != null) {
            reads.remove();
            told = read.request + 1;
            addAnswer(read);
        } else if (refusal != null) {
            addHead(Frame.REFUSED, 0, carriedOut, 0, refusal.number());
            refusal = null;
            // All that went before is sent: nothing touches this side's memory any more.
            lane.refused();
        } else if (lane.sends().hasUnsent()) {
            addRequest(pools, lane.sends().send());
        } else {
            return false;
        }
        return true;
    }

    private void addAnswer(Read read) throws LaneFailure {
        addHead(Frame.READ_DATA, 0, read.request, read.lengthBytes, 0);
        if (read.lengthBytes == 0) {
            return;
        }
        if (!LaneMemory.hold(read.pool)) {
            throw closedWhileRead(read.pool);
        }
        try {
            addPayload(LaneMemory.view(read.pool, read.address, read.lengthBytes));
        } finally {
            read.pool.release();
        }
        answering.add(read.pool);
    }

    private void addRequest(AddressMap<Pool> pools, int slot) throws LaneFailure {
        WorkRequests ring = lane.sends().ring();
        int length = length(ring, slot);
        boolean reading = ring.operation(slot) == WorkRequests.Operation.READ;
        boolean immediate = ring.operation(slot) == WorkRequests.Operation.WRITE_WITH_IMMEDIATE;
        addHead(
                reading ? Frame.READ : immediate ? Frame.WRITE_IMMEDIATE : Frame.WRITE,
                ring.remoteKey(slot),
                ring.remoteAddress(slot),
                length,
                immediate ? ring.immediate(slot) : 0);
        for (int piece = 0; !reading && piece < ring.pieces(slot); piece++) {
            addPayload(
                    LaneMemory.local(
                            pools, ring.pieceAddress(slot, piece), ring.pieceLength(slot, piece)));
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
        ByteBuffer head = heads[frames];
        Frame.fill(head, kind, key, position, length, number);
        addPayload(head);
    }

    private void addPayload(ByteBuffer buffer) {
        filling.add(buffer);
        bytes += buffer.remaining();
    }

    private boolean write() throws IOException, LaneFailure {
        int held = 0;
        long written;
        try {
            for (Pool pool : answering) {
                if (!LaneMemory.hold(pool)) {
                    throw closedWhileRead(pool);
                }
                held++;
            }
            written = channel.write(buffers, firstBuffer, buffers.length - firstBuffer);
        } finally {
            answering.subList(0, held).forEach(Pool::release);
        }
        bytes -= written;
        while (firstBuffer < buffers.length && !buffers[firstBuffer].hasRemaining()) {
            firstBuffer++;
        }
        return written > 0;
    }

    private LaneFailure closedWhileRead(Pool pool) {
        return new LaneFailure(
                CompletionStatus.FLUSHED, pool + " was closed while the peer read from it");
    }
}
