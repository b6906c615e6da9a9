package dev.verbena.tcp;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.WorkRequests;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * What a lane receives: the peer's requests, which it checks and carries out, and the peer's
 * answers to its own. Payload goes straight into the pools' memory, and the head of the next frame
 * is read along with it. For the lane's thread alone.
 */
final class LaneInput {
    /** Reads of the socket before the lane sends again. */
    private static final int READS_A_TURN = 64;

    private static final int SCRATCH_BYTES = 1 << 16;

    private final TcpLane lane;
    private final SocketChannel channel;
    private final ByteBuffer head = ByteBuffer.allocateDirect(Frame.BYTES);

    // The frame whose head has been taken.
    private boolean isOpen;
    private byte kind;
    private long position;
    private int number;

    /** Where its payload goes, and behind that the next head. */
    private ByteBuffer[] buffers = {head};

    private int firstBuffer;

    /** Pool of a request's payload: no transfer of this side holds it. */
    private @Nullable Pool pool;

    /** The payload is there, but no receive for the immediate. */
    private boolean waitsForReceive;

    /** A request was refused; takes what comes, and drops it. */
    private @Nullable ByteBuffer scratch;

    LaneInput(TcpLane lane, SocketChannel channel) {
        this.lane = lane;
        this.channel = channel;
    }

    boolean waitsForSocket() {
        return !waitsForReceive;
    }

    /** Whether a receive has come that it waited for. */
    boolean canGoOn() {
        return waitsForReceive && lane.hasReceive();
    }

    /** Takes what the socket has, up to a limit; gives whether there was any. */
    boolean turn(LaneOutput output) throws IOException, LaneFailure {
        for (int i = 0; i < READS_A_TURN; i++) {
            if (!step(output)) {
                return i > 0;
            }
        }
        return true;
    }

    private boolean step(LaneOutput output) throws IOException, LaneFailure {
        if (scratch != null) {
            return read(new ByteBuffer[] {scratch.clear()}, 0);
        }
        if (waitsForReceive) {
            return finish(output);
        }
        if (!isOpen && head.hasRemaining()) {
            boolean some = read(buffers, firstBuffer);
            if (head.hasRemaining()) {
                return some;
            }
        }
        if (!isOpen) {
            open(output);
        } else if (!readPayload(output)) {
            return false;
        }
        if (scratch == null && isOpen && firstBuffer == buffers.length - 1) {
            finish(output);
        }
        return true;
    }

    private boolean readPayload(LaneOutput output) throws IOException {
        Pool target = pool;
        if (target != null && !LaneMemory.hold(target)) {
            refuse(output);
            return true;
        }
        boolean some;
        try {
            some = read(buffers, firstBuffer);
        } finally {
            if (target != null) {
                target.release();
            }
        }
        while (firstBuffer < buffers.length - 1 && !buffers[firstBuffer].hasRemaining()) {
            firstBuffer++;
        }
        return some;
    }

    private boolean read(ByteBuffer[] into, int first) throws IOException {
        long count = channel.read(into, first, into.length - first);
        if (count < 0) {
            throw new EOFException("the peer closed the connection");
        }
        return count > 0;
    }

    /** Takes a head, and sees where its payload goes. */
    private void open(LaneOutput output) throws LaneFailure {
        kind = Frame.kind(head);
        position = Frame.position(head);
        number = Frame.number(head);
        int key = Frame.key(head);
        int length = Frame.length(head);
        head.clear();
        isOpen = true;
        pool = null;
        payload();
        if (length < 0) {
            throw nonsense("length " + length);
        }
        switch (kind) {
            case Frame.WRITE, Frame.WRITE_IMMEDIATE -> openWrite(output, length, key);
            case Frame.READ -> openRead(output, length, key);
            case Frame.DONE -> retireBefore(position);
            case Frame.READ_DATA -> openReadData(length);
            case Frame.REFUSED -> refused();
            default -> throw nonsense("kind " + kind);
        }
    }

    private void openWrite(LaneOutput output, int length, int key) {
        if (length == 0) {
            return;
        }
        Pool target = LaneMemory.remote(lane.pools(), position, length, key, Access.REMOTE_WRITE);
        if (target == null || !LaneMemory.hold(target)) {
            refuse(output);
            return;
        }
        try {
            payload(LaneMemory.view(target, position, length));
            pool = target;
        } finally {
            target.release();
        }
    }

    private void openRead(LaneOutput output, int length, int key) throws LaneFailure {
        if (output.unansweredReads() >= lane.maxReads()) {
            throw nonsense("more than " + lane.maxReads() + " reads at a time");
        }
        Pool source = LaneMemory.remote(lane.pools(), position, length, key, Access.REMOTE_READ);
        if (source == null) {
            refuse(output);
        } else {
            output.answer(source, position, length);
        }
    }

    private void openReadData(int length) throws LaneFailure {
        int slot = outstanding();
        retireBefore(position);
        WorkRequests ring = lane.sends().ring();
        if (ring.operation(slot) != WorkRequests.Operation.READ
                || LaneOutput.length(ring, slot) != length) {
            throw nonsense("an answer of " + length + " bytes to another request");
        }
        AddressMap<Pool> pools = lane.pools();
        ByteBuffer[] pieces = new ByteBuffer[ring.pieces(slot)];
        for (int piece = 0; piece < pieces.length; piece++) {
            pieces[piece] =
                    LaneMemory.local(
                            pools, ring.pieceAddress(slot, piece), ring.pieceLength(slot, piece));
        }
        payload(pieces);
    }

    private void refused() throws LaneFailure {
        outstanding();
        retireBefore(position);
        CompletionStatus status = CompletionStatus.of(number);
        throw new LaneFailure(
                status == CompletionStatus.SUCCESS ? CompletionStatus.REMOTE_OPERATION : status,
                "the peer refused a request");
    }

    /** Ends a frame whose payload is there; false if it must wait. */
    private boolean finish(LaneOutput output) throws LaneFailure {
        waitsForReceive = kind == Frame.WRITE_IMMEDIATE && !lane.hasReceive();
        if (waitsForReceive) {
            return false;
        }
        switch (kind) {
            case Frame.WRITE -> output.carriedOut();
            case Frame.WRITE_IMMEDIATE -> {
                lane.deliver(number);
                output.carriedOut();
            }
            case Frame.READ_DATA -> lane.sends().retireBefore(position + 1);
            default -> {}
        }
        isOpen = false;
        pool = null;
        return true;
    }

    /** Goes on to drop what comes, so that the refusal is not lost by a reset. */
    private void refuse(LaneOutput output) {
        output.refuse(CompletionStatus.REMOTE_ACCESS);
        scratch = ByteBuffer.allocateDirect(SCRATCH_BYTES);
    }

    private void payload(ByteBuffer... into) {
        buffers = Arrays.copyOf(into, into.length + 1);
        buffers[into.length] = head;
        firstBuffer = 0;
    }

    /** The slot of the request that the frame answers. */
    private int outstanding() throws LaneFailure {
        PostedSends sends = lane.sends();
        if (position < sends.done() || position >= sends.sent()) {
            throw nonsense("an answer to request " + position);
        }
        return sends.slot(position);
    }

    /** Retires requests that carry no answer of their own. */
    private void retireBefore(long request) throws LaneFailure {
        PostedSends sends = lane.sends();
        if (request < sends.done() || request > sends.sent()) {
            throw nonsense("request %d done, of %d".formatted(request, sends.sent()));
        }
        for (long i = sends.done(); i < request; i++) {
            if (sends.ring().operation(sends.slot(i)) == WorkRequests.Operation.READ) {
                throw nonsense("a read done without its data");
            }
        }
        sends.retireBefore(request);
    }

    private static LaneFailure nonsense(String what) {
        return new LaneFailure(CompletionStatus.BAD_RESPONSE, "the peer makes no sense: " + what);
    }
}
