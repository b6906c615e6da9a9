package dev.verbena.tcp;

import dev.verbena.memory.RegionSource;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.QueuePairOptions;
import dev.verbena.verbs.ReceiveRequests;
import dev.verbena.verbs.WorkCompletions;
import dev.verbena.verbs.WorkRequests;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;

/** One lane with what it needs: memory, a ring of requests, receives, and room for completions. */
final class LaneSide implements AutoCloseable {
    static final int DEPTH = 16;
    static final int MAX_SGE = 4;
    static final int RECEIVES = 4;
    static final Set<Access> OPEN = Set.of(Access.REMOTE_WRITE, Access.REMOTE_READ);

    /** Marks the identities of receives. */
    static final long RECEIVE = 1L << 32;

    /** A completion. */
    record Done(long identity, CompletionStatus status, boolean hasImmediate, int immediate) {
        static Done of(long identity, CompletionStatus status) {
            return new Done(identity, status, false, 0);
        }

        static Done immediate(long identity, int immediate) {
            return new Done(identity, CompletionStatus.SUCCESS, true, immediate);
        }
    }

    final Arena arena = Arena.ofShared();
    final MemorySegment memory;
    final TcpRegions regions = new TcpRegions();
    final RegionSource.Region region;
    final TcpCompletions completions = new TcpCompletions(new TcpEvents(), DEPTH + RECEIVES);
    final TcpLane lane =
            new TcpLane(
                    "test",
                    new QueuePairOptions(DEPTH, MAX_SGE, RECEIVES, 1),
                    completions,
                    regions);
    final WorkRequests ring = new WorkRequests(DEPTH, MAX_SGE);
    final ReceiveRequests receives = new ReceiveRequests(RECEIVES, 0);
    private final WorkCompletions room = new WorkCompletions(DEPTH);

    LaneSide(long bytes, Set<Access> access) {
        memory = arena.allocate(bytes, 64);
        region = regions.register(memory, access);
        for (int slot = 0; slot < RECEIVES; slot++) {
            receives.fill(slot, RECEIVE | slot, 0);
        }
    }

    /** Two sides, connected to each other. */
    static LaneSide[] pair(long bytes) throws IOException {
        LaneSide[] sides = {new LaneSide(bytes, OPEN), new LaneSide(bytes, OPEN)};
        SocketChannel[] ends = channels();
        sides[0].lane.connect(ends[0]);
        sides[1].lane.connect(ends[1]);
        return sides;
    }

    /** Connects the lane to a socket that does what the test makes it do. */
    SocketChannel connectToSocket() throws IOException {
        SocketChannel[] ends = channels();
        lane.connect(ends[0]);
        return ends[1];
    }

    static SocketChannel[] channels() throws IOException {
        try (ServerSocketChannel server = ServerSocketChannel.open()) {
            server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            SocketChannel one = SocketChannel.open(server.getLocalAddress());
            return new SocketChannel[] {one, server.accept()};
        }
    }

    LaneSide filled(long seed) {
        Random random = new Random(seed);
        for (long i = 0; i + 8 <= memory.byteSize(); i += 8) {
            memory.set(ValueLayout.JAVA_LONG, i, random.nextLong());
        }
        return this;
    }

    /** Fills a slot with a request of one piece, by offsets; its identity is the slot's number. */
    void fill(
            int slot,
            WorkRequests.Operation operation,
            long offset,
            LaneSide peer,
            long peerOffset,
            int length,
            boolean signaled) {
        ring.fill(
                slot,
                slot,
                operation,
                peer.memory.address() + peerOffset,
                peer.region.remoteKey(),
                1,
                signaled);
        ring.piece(slot, 0, memory.address() + offset, length, region.localKey());
    }

    void write(int slot, LaneSide peer, int length) {
        fill(slot, WorkRequests.Operation.WRITE, 0, peer, 0, length, true);
    }

    /** Fills a slot with a write that moves nothing but an immediate. */
    void immediate(int slot, int value) {
        ring.fill(slot, slot, WorkRequests.Operation.WRITE_WITH_IMMEDIATE, 0, 0, 0, true);
        ring.immediate(slot, value);
    }

    /** Takes completions until so many have come. */
    List<Done> await(int count) {
        List<Done> done = new ArrayList<>();
        while (done.size() < count) {
            take(done);
            if (Thread.interrupted()) {
                throw new AssertionError(count + " completions are due, but only: " + done);
            }
            Thread.onSpinWait();
        }
        return done;
    }

    /** Takes the completions there are. */
    List<Done> taken() {
        List<Done> done = new ArrayList<>();
        take(done);
        return done;
    }

    private void take(List<Done> done) {
        int count = completions.poll(room);
        for (int i = 0; i < count; i++) {
            boolean hasImmediate = room.hasImmediate(i);
            done.add(
                    new Done(
                            room.workRequestId(i),
                            room.status(i),
                            hasImmediate,
                            hasImmediate ? room.immediate(i) : 0));
        }
    }

    @Override
    public void close() {
        lane.close();
        completions.close();
        region.close();
        ring.close();
        receives.close();
        room.close();
        arena.close();
    }
}
