package dev.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.Set;

/**
 * Two queue pairs of one device, connected to each other by hand, with registered memory on either
 * side. Never one that is connected to itself, which soft-RoCE treats differently when it fails.
 */
public final class TwoQueuePairs implements AutoCloseable {
    static final int MEMORY_BYTES = 1 << 16;

    /** Short enough that a dead peer is noticed soon: 4.096 us times two to this power. */
    private static final int TIMEOUT = 12;

    final Device device = openDevice();
    final ProtectionDomain domain = device.allocateProtectionDomain();
    final CompletionQueue queue = device.createCompletionQueue(512);
    final QueuePair near;
    final QueuePair far;
    final WorkRequests ring;
    final WorkCompletions completions = new WorkCompletions(64);

    private final Arena arena = Arena.ofShared();
    final MemorySegment nearMemory = arena.allocate(MEMORY_BYTES, 4096);
    final MemorySegment farMemory = arena.allocate(MEMORY_BYTES, 4096);
    final MemoryRegion nearRegion = domain.register(nearMemory, EnumSet.of(Access.LOCAL_WRITE));
    final MemoryRegion farRegion =
            domain.register(farMemory, EnumSet.of(Access.REMOTE_WRITE, Access.REMOTE_READ));

    TwoQueuePairs(QueuePairOptions options) {
        near = domain.createQueuePair(options, queue, queue);
        far = domain.createQueuePair(options, queue, queue);
        ring = new WorkRequests(64, options.sendSge());
        Random random = new Random(options.sendRequests());
        for (int i = 0; i < MEMORY_BYTES; i++) {
            nearMemory.set(ValueLayout.JAVA_BYTE, i, (byte) random.nextInt());
        }
        connect();
    }

    static TwoQueuePairs open() {
        return new TwoQueuePairs(new QueuePairOptions(64, 4, 16, 1));
    }

    /**
     * Opens the machine's first device.
     *
     * @return the device, to be closed by the caller
     */
    public static Device openDevice() {
        return Device.open(DeviceTest.Required.names().getFirst());
    }

    /** A GID that reaches this machine itself: link-local ones need an interface's scope. */
    static Gid routableGid(Device device) {
        return device.gids(1).stream()
                .filter(gid -> gid.type() != Gid.Type.ROCE_V1)
                .filter(gid -> gid.scope() != Gid.Scope.LINK_LOCAL)
                .findFirst()
                .orElseThrow(() -> new AssertionError("no routable GID in " + device.gids(1)));
    }

    void connect() {
        connect(near, far);
        connect(far, near);
    }

    private void connect(QueuePair from, QueuePair to) {
        Gid gid = routableGid(device);
        from.initialize(1, Set.of(Access.REMOTE_WRITE, Access.REMOTE_READ));
        from.modify(
                QueuePairState.READY_TO_RECEIVE,
                new QueuePairAttributes()
                        .set(QueuePairAttribute.PATH_MTU, device.port(1).activeMtuBytes())
                        .set(QueuePairAttribute.PEER_QUEUE_PAIR, to.number())
                        .set(QueuePairAttribute.RECEIVE_PSN, 5)
                        .set(QueuePairAttribute.READS_AS_RESPONDER, 1)
                        .set(QueuePairAttribute.MIN_RNR_TIMER, 1)
                        .destination(new Destination(gid.address(), gid.index(), 0, 1, 64, 0, 0)));
        from.modify(
                QueuePairState.READY_TO_SEND,
                new QueuePairAttributes()
                        .set(QueuePairAttribute.TIMEOUT, TIMEOUT)
                        .set(QueuePairAttribute.RETRY_COUNT, 2)
                        .set(QueuePairAttribute.RNR_RETRY, 2)
                        .set(QueuePairAttribute.SEND_PSN, 5)
                        .set(QueuePairAttribute.READS_AS_REQUESTER, 1));
    }

    /** Fills a slot with a write of so many bytes from one offset to another. */
    void write(int slot, long nearOffset, long farOffset, int lengthBytes, boolean signaled) {
        ring.fill(
                slot,
                slot,
                WorkRequests.Operation.WRITE,
                farRegion.address() + farOffset,
                farRegion.remoteKey(),
                1,
                signaled);
        ring.piece(slot, 0, nearRegion.address() + nearOffset, lengthBytes, nearRegion.localKey());
    }

    /** Polls until so many completions have come: "identity status" of each. */
    List<String> await(int count) {
        List<String> ends = new ArrayList<>();
        while (ends.size() < count) {
            int came = queue.poll(completions);
            for (int i = 0; i < came; i++) {
                ends.add(completions.workRequestId(i) + " " + completions.status(i));
            }
            Thread.yield();
        }
        return ends;
    }

    @Override
    public void close() {
        near.close();
        far.close();
        queue.close();
        nearRegion.close();
        farRegion.close();
        domain.close();
        device.close();
        ring.close();
        completions.close();
        arena.close();
    }
}
