package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.bindings.Errno;
import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import dev.verbena.memory.PoolDescriptor;
import dev.verbena.memory.PoolDouble;
import dev.verbena.memory.RemotePool;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.CompletionQueue;
import dev.verbena.verbs.CompletionSource;
import dev.verbena.verbs.QueuePair;
import dev.verbena.verbs.QueuePairOptions;
import dev.verbena.verbs.VerbsDouble;
import dev.verbena.verbs.VerbsException;
import dev.verbena.verbs.WorkCompletions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A poster over a device in software, with a pool on each side. The device moves the bytes for real
 * and fails what is outside the pools, so that a test sees what a peer would see.
 */
final class PosterRig implements AutoCloseable {
    private static final int KEY_STEP = 16;

    /** How a rig is built. Deadlines are short: nothing here takes long unless a test makes it. */
    record Shape(int queuePairs, int poolBytes, int regions, PosterOptions options) {
        static final PosterOptions OPTIONS =
                new PosterOptions(
                        8,
                        4,
                        8,
                        128,
                        8,
                        Duration.ofSeconds(30),
                        Duration.ofSeconds(30),
                        Duration.ofNanos(1000));

        static Shape of(int queuePairs) {
            return new Shape(queuePairs, 1 << 16, 1, OPTIONS);
        }

        Shape with(PosterOptions newOptions) {
            return new Shape(queuePairs, poolBytes, regions, newOptions);
        }

        Shape withPool(int bytes, int regionCount) {
            return new Shape(queuePairs, bytes, regionCount, options);
        }

        /** Short deadlines, for tests in which they strike. */
        Shape withDeadlines(Duration progress, Duration drain) {
            return with(options.withProgressDeadline(progress).withDrainDeadline(drain));
        }
    }

    final VerbsDouble device = VerbsDouble.create();
    final CompletionQueue completions;
    final AtomicInteger eventsAskedFor = new AtomicInteger();
    volatile boolean eventsRefused;
    final List<QueuePair> pairs = new ArrayList<>();
    final BatchPoster poster;
    final Arena arena = Arena.ofShared();
    final MemorySegment local;
    final MemorySegment remote;
    final Pool pool;
    final AddressMap<Pool> localMap;
    final AddressMap<RemotePool> remoteMap;
    final Queue<Integer> immediates = new ConcurrentLinkedQueue<>();
    final Queue<String> stops = new ConcurrentLinkedQueue<>();

    PosterRig(Shape shape) {
        this(shape, 1L << 30);
    }

    PosterRig(Shape shape, long maxMessageBytes) {
        PosterOptions options = shape.options();
        completions =
                device.createCompletionQueue(
                        BatchPoster.completionsNeeded(shape.queuePairs(), options));
        for (int i = 0; i < shape.queuePairs(); i++) {
            QueuePairOptions size =
                    new QueuePairOptions(
                            options.sendRequests(), options.maxSge(), options.receiveRequests(), 1);
            pairs.add(device.createQueuePair(size, completions));
        }
        local = arena.allocate(shape.poolBytes(), 64);
        remote = arena.allocate(shape.poolBytes(), 64);
        pool = PoolDouble.over("local", local, Access.LOCAL_WRITE);
        long regionBytes = shape.poolBytes() / shape.regions();
        List<AddressMap.Entry<Pool>> entries = new ArrayList<>();
        List<PoolDescriptor.Region> regions = new ArrayList<>();
        for (int i = 0; i < shape.regions(); i++) {
            int key = KEY_STEP * (i + 1);
            MemorySegment here = local.asSlice(i * regionBytes, regionBytes);
            device.declare(here, key, key + 1);
            device.declare(remote.asSlice(i * regionBytes, regionBytes), key + 2, key + 3);
            entries.add(new AddressMap.Entry<>(here.address(), regionBytes, key, pool));
            regions.add(new PoolDescriptor.Region(regionBytes, key + 3));
        }
        localMap = AddressMap.of(entries);
        remoteMap =
                RemotePool.map(
                        List.of(
                                new RemotePool(
                                        new PoolDescriptor(
                                                "remote",
                                                1,
                                                remote.address(),
                                                regionBytes * shape.regions(),
                                                Set.of(Access.REMOTE_WRITE, Access.REMOTE_READ),
                                                regions))));
        poster =
                new BatchPoster(
                        pairs,
                        new CountedEvents(),
                        maxMessageBytes,
                        options,
                        new BatchPoster.Listener() {
                            @Override
                            public void immediate(int immediate) {
                                immediates.add(immediate);
                            }

                            @Override
                            public void stopped(FailureReason reason, String message) {
                                stops.add(reason + ": " + message);
                            }
                        });
    }

    /** The completion queue, without the events that the device in software cannot give. */
    private final class CountedEvents implements CompletionSource {
        @Override
        public int entries() {
            return completions.entries();
        }

        @Override
        public int poll(WorkCompletions taken) {
            return completions.poll(taken);
        }

        @Override
        public void requestNotify() {
            eventsAskedFor.incrementAndGet();
            if (eventsRefused) {
                throw new VerbsException("ibv_req_notify_cq", Errno.EIO, "as the test says");
            }
        }

        @Override
        public void close() {
            completions.close();
        }
    }

    /** Fills the local pool with bytes of a seed, and the remote one with zeros. */
    PosterRig filled(long seed) {
        Random random = new Random(seed);
        for (long i = 0; i + 8 <= local.byteSize(); i += 8) {
            local.set(ValueLayout.JAVA_LONG, i, random.nextLong() | 0x0101010101010101L);
        }
        remote.fill((byte) 0);
        return this;
    }

    TransferBatch add(TransferBatch batch, long localOffset, long remoteOffset, long length) {
        return batch.add(local.address() + localOffset, remote.address() + remoteOffset, length);
    }

    /** Blocks that are adjacent on no side, so that each is a work request. */
    TransferBatch scattered(int blocks, int length) {
        TransferBatch batch = new TransferBatch(blocks);
        for (int i = 0; i < blocks; i++) {
            add(batch, (long) i * 2 * length, (long) (blocks - 1 - i) * 2 * length, length);
        }
        return batch;
    }

    Transfer write(TransferBatch batch) {
        return poster.post(Direction.WRITE, batch, localMap, remoteMap, OptionalInt.empty());
    }

    Transfer write(TransferBatch batch, int immediate) {
        return poster.post(Direction.WRITE, batch, localMap, remoteMap, OptionalInt.of(immediate));
    }

    Transfer read(TransferBatch batch) {
        return poster.post(Direction.READ, batch, localMap, remoteMap, OptionalInt.empty());
    }

    TransferPlan plan(TransferBatch batch) {
        return poster.plan(Direction.WRITE, batch, localMap, remoteMap);
    }

    /** Whether the bytes of a block are the same on both sides. */
    boolean moved(TransferBatch batch, int block) {
        long localOffset = batch.localAddress(block) - local.address();
        long remoteOffset = batch.remoteAddress(block) - remote.address();
        long length = batch.length(block);
        return MemorySegment.mismatch(
                        local,
                        localOffset,
                        localOffset + length,
                        remote,
                        remoteOffset,
                        remoteOffset + length)
                < 0;
    }

    /** No outcome claims more than the bytes at the peer show, which were zeros before. */
    void assertTruthful(Transfer transfer) {
        TransferBatch batch = transfer.batch();
        TransferException failure = transfer.failure();
        for (int block = 0; block < batch.size(); block++) {
            BlockOutcome outcome = failure == null ? BlockOutcome.DONE : failure.outcome(block);
            if (outcome == BlockOutcome.DONE) {
                if (!moved(batch, block)) {
                    throw new AssertionError("block " + block + " is called done and is not");
                }
            } else if (outcome == BlockOutcome.NOT_DONE) {
                long offset = batch.remoteAddress(block) - remote.address();
                assertThat(
                                remote.asSlice(offset, batch.length(block))
                                        .toArray(ValueLayout.JAVA_BYTE))
                        .as("block %d is not done", block)
                        .containsOnly(0);
            }
        }
    }

    /** Makes progress until a transfer has ended. */
    static void finish(PosterRig rig, Transfer transfer) {
        while (!transfer.isDone()) {
            rig.poster.progress();
            if (Thread.interrupted()) {
                throw new AssertionError(transfer + " does not end");
            }
        }
    }

    @Override
    public void close() {
        device.whilePolling(null);
        device.whilePosting(null);
        device.loseCompletions(false);
        device.failDestroys(0);
        poster.close();
        boolean overflowed = device.overflowed();
        completions.close();
        device.close();
        arena.close();
        if (overflowed) {
            throw new AssertionError("a completion was lost for want of room");
        }
        // Whatever happened, nothing holds the pool.
        PoolDouble.close(pool);
    }
}
