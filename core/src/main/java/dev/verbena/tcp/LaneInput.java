package dev.verbena.tcp;

import dev.verbena.verbs.Access;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.WorkRequests;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import org.jspecify.annotations.Nullable;

/**
 * What a lane receives: the peer's requests, which it checks and carries out, and the peer's
 * answers to its own. Short frames are read many at a time and their payload copied; the payload of
 * long ones goes from the socket straight into the pools' memory, with the head of the next frame
 * read along. For the lane's thread alone.
 */
final class LaneInput {
    /** Reads of the socket before the lane sends again. */
    private static final int READS_A_TURN = 64;

    /** How much is read ahead, and so what a lane takes of memory in this direction. */
    static final int AHEAD_BYTES = 1 << 16;

    /** From this length of payload on a read of its own costs less than a second copy. */
    private static final int LONG_BYTES = 1 << 14;

    private final TcpLane lane;
    private final SocketChannel channel;

    /** What has come and was not looked at, from its position to its limit. */
    private final ByteBuffer ahead;

    // The frame whose head has been taken.
    private boolean isOpen;
    private boolean isLong;
    private byte kind;
    private long position;
    private int number;
    private final LanePayload payload;

    /** Region of a request's payload: no transfer of this side holds it. */
    private @Nullable TcpRegion region;

    /** The payload is there, but no receive for the immediate. */
    private boolean waitsForReceive;

    LaneInput(TcpLane lane, SocketChannel channel, ByteBuffer ahead) {
        this.lane = lane;
        this.channel = channel;
        this.ahead = ahead.limit(0);
        this.payload = new LanePayload(lane.options().sendSge());
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
        boolean some = false;
        for (int i = 0; i < READS_A_TURN; i++) {
            some |= digest(output);
            if (waitsForReceive || !read(output)) {
                return some;
            }
            some = true;
        }
        return true;
    }

    /** Takes the frames of what has come; gives whether there was any. */
    private boolean digest(LaneOutput output) throws LaneFailure {
        boolean some = false;
        while (!output.isRefusing()) {
            if (!isOpen) {
                if (ahead.remaining() < Frame.BYTES) {
                    return some;
                }
                open(output);
            }
            if (!takePayload(output) || !finish(output)) {
                return some;
            }
            some = true;
        }
        // Goes on to drop what comes, so that the refusal is not lost by a reset.
        ahead.position(ahead.limit());
        return some;
    }

    /** Reads once; false if the socket has nothing now. */
    private boolean read(LaneOutput output) throws IOException {
        boolean straight = isOpen && isLong && payload.left() > 0;
        if (!straight || output.isRefusing()) {
            ahead.compact();
            // Behind a long frame mostly comes another, whose payload had better not come in here.
            if (isLong && !output.isRefusing() && ahead.position() < Frame.BYTES) {
                ahead.limit(Frame.BYTES);
            }
            try {
                return count(channel.read(ahead)) > 0;
            } finally {
                ahead.flip();
            }
        }
        TcpRegion target = region;
        if (target != null && !target.enter()) {
            output.refuse(CompletionStatus.REMOTE_ACCESS);
            return true;
        }
        ahead.clear().limit(Frame.BYTES);
        try {
            ByteBuffer[] views = payload.views(ahead);
            long count = count(channel.read(views));
            payload.filled(Math.min(count, payload.left()));
            return count > 0;
        } finally {
            ahead.flip();
            if (target != null) {
                target.exit();
            }
        }
    }

    private static long count(long read) throws EOFException {
        if (read < 0) {
            throw new EOFException("the peer closed the connection");
        }
        return read;
    }

    /** Takes a head, and sees where its payload goes. */
    private void open(LaneOutput output) throws LaneFailure {
        int at = ahead.position();
        kind = Frame.kind(ahead, at);
        position = Frame.position(ahead, at);
        number = Frame.number(ahead, at);
        int key = Frame.key(ahead, at);
        int length = Frame.length(ahead, at);
        ahead.position(at + Frame.BYTES);
        isOpen = true;
        isLong = length >= LONG_BYTES;
        region = null;
        payload.clear();
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
        TcpRegion target = lane.regions().find(key);
        if (target == null || !target.grants(Access.REMOTE_WRITE, position, length)) {
            output.refuse(CompletionStatus.REMOTE_ACCESS);
            return;
        }
        payload.add(target, position, length);
        region = target;
    }

    private void openRead(LaneOutput output, int length, int key) throws LaneFailure {
        isLong = false;
        if (output.unansweredReads() >= TcpLane.MAX_READS) {
            throw nonsense("more than " + TcpLane.MAX_READS + " reads at a time");
        }
        TcpRegion source = lane.regions().find(key);
        if (source == null || !source.grants(Access.REMOTE_READ, position, length)) {
            output.refuse(CompletionStatus.REMOTE_ACCESS);
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
        for (int piece = 0; piece < ring.pieces(slot); piece++) {
            payload.add(
                    lane.local(ring, slot, piece, Access.LOCAL_WRITE),
                    ring.pieceAddress(slot, piece),
                    ring.pieceLength(slot, piece));
        }
    }

    private void refused() throws LaneFailure {
        outstanding();
        retireBefore(position);
        CompletionStatus status = CompletionStatus.of(number);
        throw new LaneFailure(
                status == CompletionStatus.SUCCESS ? CompletionStatus.REMOTE_OPERATION : status,
                "the peer refused a request");
    }

    /** Takes payload that has come already; false if more of it is to come. */
    private boolean takePayload(LaneOutput output) {
        if (payload.left() > 0 && ahead.hasRemaining()) {
            TcpRegion target = region;
            if (target != null && !target.enter()) {
                output.refuse(CompletionStatus.REMOTE_ACCESS);
                return true;
            }
            try {
                payload.take(ahead);
            } finally {
                if (target != null) {
                    target.exit();
                }
            }
        }
        return payload.left() == 0;
    }

    /** Ends a frame whose payload is there; false if it must wait. */
    private boolean finish(LaneOutput output) throws LaneFailure {
        if (output.isRefusing()) {
            return true;
        }
        waitsForReceive = kind == Frame.WRITE_IMMEDIATE && !lane.hasReceive();
        if (waitsForReceive) {
            return false;
        }
        switch (kind) {
            case Frame.WRITE -> output.wrote();
            case Frame.WRITE_IMMEDIATE -> {
                lane.deliver(number);
                output.wrote();
            }
            case Frame.READ_DATA -> lane.sends().retireBefore(position + 1);
            default -> {}
        }
        isOpen = false;
        region = null;
        return true;
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
