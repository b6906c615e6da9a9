package dev.verbena.bench;

import dev.verbena.verbs.Access;
import dev.verbena.verbs.CompletionQueue;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.Destination;
import dev.verbena.verbs.Device;
import dev.verbena.verbs.Gid;
import dev.verbena.verbs.MemoryRegion;
import dev.verbena.verbs.ProtectionDomain;
import dev.verbena.verbs.QueuePair;
import dev.verbena.verbs.QueuePairAttribute;
import dev.verbena.verbs.QueuePairAttributes;
import dev.verbena.verbs.QueuePairOptions;
import dev.verbena.verbs.QueuePairState;
import dev.verbena.verbs.WorkCompletions;
import dev.verbena.verbs.WorkRequests;
import java.lang.foreign.Arena;
import java.util.EnumSet;
import java.util.Set;

/**
 * Reads by the verbs objects alone, without transfers, peers and their threads: two queue pairs of
 * the device, connected by hand. What a transfer adds shows beside it.
 */
final class VerbsReads implements AutoCloseable {
    private static final QueuePairOptions SIZE = new QueuePairOptions(4, 1, 1, 1);

    private final Arena arena = Arena.ofShared();
    private final Device device;
    private final ProtectionDomain domain;
    private final CompletionQueue queue;
    private final QueuePair near;
    private final QueuePair far;
    private final MemoryRegion here;
    private final MemoryRegion there;
    private final WorkRequests ring = new WorkRequests(1, 1);
    private final WorkCompletions completions = new WorkCompletions(1);

    VerbsReads(RdmaDevice which, long bytes) {
        device = Device.open(which.name());
        domain = device.allocateProtectionDomain();
        queue = device.createCompletionQueue(2 * SIZE.sendRequests());
        near = domain.createQueuePair(SIZE, queue, queue);
        far = domain.createQueuePair(SIZE, queue, queue);
        here = domain.register(arena.allocate(bytes, 4096), EnumSet.of(Access.LOCAL_WRITE));
        there = domain.register(arena.allocate(bytes, 4096), EnumSet.of(Access.REMOTE_READ));
        Gid gid =
                device.gids(1).stream()
                        .filter(candidate -> candidate.index() == which.gidIndex())
                        .findFirst()
                        .orElseThrow();
        connect(near, far, gid);
        connect(far, near, gid);
    }

    private void connect(QueuePair from, QueuePair to, Gid gid) {
        from.initialize(1, Set.of(Access.REMOTE_READ));
        from.modify(
                QueuePairState.READY_TO_RECEIVE,
                new QueuePairAttributes()
                        .set(QueuePairAttribute.PATH_MTU, device.port(1).activeMtuBytes())
                        .set(QueuePairAttribute.PEER_QUEUE_PAIR, to.number())
                        .set(QueuePairAttribute.RECEIVE_PSN, 0)
                        .set(QueuePairAttribute.READS_AS_RESPONDER, 1)
                        .set(QueuePairAttribute.MIN_RNR_TIMER, 12)
                        .destination(new Destination(gid.address(), gid.index(), 0, 1, 64, 0, 0)));
        from.modify(
                QueuePairState.READY_TO_SEND,
                new QueuePairAttributes()
                        .set(QueuePairAttribute.TIMEOUT, 14)
                        .set(QueuePairAttribute.RETRY_COUNT, 6)
                        .set(QueuePairAttribute.RNR_RETRY, 6)
                        .set(QueuePairAttribute.SEND_PSN, 0)
                        .set(QueuePairAttribute.READS_AS_REQUESTER, 1));
    }

    /** Reads so many bytes, and spins until they are here. */
    void read(int bytes) {
        ring.fill(0, 0, WorkRequests.Operation.READ, there.address(), there.remoteKey(), 1, true);
        ring.piece(0, 0, here.address(), bytes, here.localKey());
        if (near.post(ring, 0, 1) != 1) {
            throw new IllegalStateException("errno " + near.postErrno());
        }
        while (queue.poll(completions) == 0) {
            Thread.onSpinWait();
        }
        if (completions.status(0) != CompletionStatus.SUCCESS) {
            throw new IllegalStateException("a read failed: " + completions.status(0));
        }
    }

    @Override
    public void close() {
        near.close();
        far.close();
        queue.close();
        here.close();
        there.close();
        domain.close();
        device.close();
        ring.close();
        completions.close();
        arena.close();
    }
}
