package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.verbena.bindings.testing.AllocationCounter;
import dev.verbena.transfer.PosterRig.Shape;
import dev.verbena.verbs.QueuePair;
import dev.verbena.verbs.VerbsDouble.PostedRequest;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Bytes arrive where they should, whatever the batch and however short the queues, and a plan says
 * beforehand what the device then sees. Queues of eight requests make every batch wait for room,
 * and positions wrap around hundreds of times.
 */
@Timeout(120)
class BatchPosterTest {
    private static final int WRITE = 0;
    private static final int READ = 4;

    @ParameterizedTest
    @CsvSource({"1, 1", "1, 4", "2, 1", "2, 8", "4, 4"})
    void movesRandomBatchesBothWays(int queuePairs, int regions) throws Exception {
        for (long seed = 0; seed < 60; seed++) {
            Shape shape = Shape.of(queuePairs).withPool(1 << 14, regions);
            try (PosterRig rig = new PosterRig(shape, 1 + seed * 16).filled(seed)) {
                TransferBatch batch = random(rig, seed);
                TransferPlan plan = rig.plan(batch);

                rig.write(batch).await();

                assertMoved(rig, batch, seed);
                assertPlanned(plan, rig.device.posted(), seed);
                rig.local.fill((byte) 0);
                rig.read(batch).await();
                assertMoved(rig, batch, seed);
                assertThat(rig.device.posted())
                        .extracting(PostedRequest::opcode)
                        .containsOnly(WRITE, READ)
                        .hasSize(2 * (int) plan.workRequests());
            }
        }
    }

    @Test
    void anEmptyBatchEndsAtOnce() {
        try (PosterRig rig = new PosterRig(Shape.of(2))) {
            assertThat(rig.write(new TransferBatch()).isDone()).isTrue();
            assertThat(rig.device.accepted()).isZero();
        }
    }

    @Test
    void aRefusedBatchPostsNothingAndHoldsNothing() {
        try (PosterRig rig = new PosterRig(Shape.of(1))) {
            TransferBatch batch = rig.scattered(5, 16).add(rig.local.address(), 1, 1);

            assertThatIllegalArgumentException()
                    .isThrownBy(() -> rig.write(batch))
                    .withMessageContaining("block 5 of 6");

            assertThat(rig.device.doorbells()).isZero();
            assertThat(rig.plan(batch).isAccepted()).isFalse();
            assertThat(rig.plan(batch).workRequests()).isZero();
            assertThatIllegalStateException().isThrownBy(rig.pool::release);
        }
    }

    /** Of one chain and one queue pair, where the plan need not foresee how room comes back. */
    @Test
    void planCountsDoorbells() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1))) {
            for (int blocks : new int[] {1, 7, 8}) {
                long before = rig.device.doorbells();
                TransferBatch batch = rig.scattered(blocks, 16);

                rig.write(batch).await();

                assertThat(rig.device.doorbells() - before).isEqualTo(rig.plan(batch).doorbells());
            }
        }
    }

    @Test
    void severalQueuePairsShareABatch() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(4))) {
            TransferBatch batch = rig.scattered(16, 16);
            assertThat(rig.plan(batch).doorbells()).isEqualTo(4);

            rig.write(batch).await();

            assertThat(rig.device.doorbells()).isEqualTo(4);
            for (QueuePair pair : rig.pairs) {
                assertThat(rig.device.posted(pair)).hasSize(4);
            }
        }
    }

    @Test
    void signalsTheLastOfEachChainAndOneInHalfAQueue() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1))) {
            rig.write(rig.scattered(1, 16)).await();
            rig.write(rig.scattered(6, 16)).await();

            assertThat(rig.device.posted())
                    .extracting(PostedRequest::signaled)
                    .containsExactly(true, false, false, true, false, false, true);
        }
    }

    @Test
    void signalsAsOftenAsTheOptionsSayAndTheLastOfEachChain() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1).with(Shape.OPTIONS.withSignals(2)))) {
            rig.write(rig.scattered(7, 16)).await();

            assertThat(rig.device.posted())
                    .extracting(PostedRequest::signaled)
                    .containsExactly(false, true, false, true, false, true, true);
        }
    }

    /** A deadline sees what is signalled only: so not a whole queue of large messages at once. */
    @Test
    void signalsLargeMessagesMoreOften() throws Exception {
        int pool = 96 << 20;
        PosterOptions options = PosterOptions.defaults();
        Shape shape = new Shape(1, pool, 1, options);
        try (PosterRig rig = new PosterRig(shape, 8 << 20)) {
            rig.write(rig.add(new TransferBatch(), 0, 0, pool)).await();

            assertThat(rig.device.posted()).hasSize(12);
            assertThat(rig.device.posted().get(7).signaled()).isTrue();
            assertThat(rig.device.posted().get(6).signaled()).isFalse();
        }
    }

    @Test
    void messagesAreNeverSoLongThatADeadlineCouldStrikeWithinOne() {
        Shape shape = new Shape(1, 130 << 20, 1, Shape.OPTIONS);
        try (PosterRig rig = new PosterRig(shape, 1L << 31)) {
            TransferPlan plan = rig.plan(rig.add(new TransferBatch(), 0, 0, 130 << 20));

            assertThat(plan.longestMessageBytes()).isEqualTo(64L << 20);
            assertThat(plan.workRequests()).isEqualTo(3);
        }
    }

    @Test
    void aMillionBlocksPassThroughAQueueOfEight() throws Exception {
        int blocks = 1 << 20;
        try (PosterRig rig = new PosterRig(Shape.of(2).withPool(4 << 20, 1)).filled(3)) {
            rig.device.recordPosts(false);
            TransferBatch batch = new TransferBatch(blocks);
            for (int i = 0; i < blocks; i++) {
                // Neighbours are swapped, so that none are adjacent on this side.
                rig.add(batch, 4L * (i ^ 1), 4L * i, 4);
            }
            assertThat(rig.plan(batch).workRequests()).isEqualTo(blocks / 4);

            Transfer transfer = rig.write(batch);
            transfer.await();

            assertThat(rig.device.accepted()).isEqualTo(blocks / 4);
            assertThat(transfer.bytesDone()).isEqualTo(4L << 20);
            for (int block = 0; block < blocks; block += 1009) {
                assertThat(rig.moved(batch, block)).isTrue();
            }
        }
    }

    /** All that a transfer allocates is its handle and cursor, however many requests it has. */
    @Test
    void allocatesNothingPerRequestOnceWarm() {
        int requests = 4096;
        PosterOptions options = Shape.OPTIONS.withDepth(256, 128);
        try (PosterRig rig = new PosterRig(Shape.of(2).with(options).withPool(1 << 20, 1))) {
            rig.device.recordPosts(false);
            TransferBatch batch = rig.scattered(requests, 16);

            // Those two take 624 bytes a transfer; an object of every chain would be 512 at least.
            long enough = 4 * 800;
            long bytes =
                    AllocationCounter.bytesOnceWarm(
                            4, enough, () -> PosterRig.finish(rig, rig.write(batch)));

            assertThat(bytes).as("four transfers").isLessThanOrEqualTo(enough);
        }
    }

    /** Where positions leave 32 bits, and where they leave the 48 that an identity has. */
    @ParameterizedTest
    @ValueSource(longs = {(1L << 31) - 20, (1L << 32) - 20, (1L << 48) - 20, (1L << 49) - 4})
    void positionsWrapAround(long start) throws Exception {
        for (int queuePairs : new int[] {1, 4}) {
            try (PosterRig rig = new PosterRig(Shape.of(queuePairs)).filled(start)) {
                startAt(rig.poster, start);
                for (int round = 0; round < 40; round++) {
                    rig.remote.fill((byte) 0);
                    TransferBatch batch = rig.scattered(1 + round % 30, 24);
                    rig.write(batch, round).await();
                    assertMoved(rig, batch, start);
                }
            }
        }
    }

    @Test
    void goesOnForThousandsOfRounds() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(2)).filled(8)) {
            rig.device.recordPosts(false);
            TransferBatch batch = rig.scattered(13, 24);
            for (int round = 0; round < 5000; round++) {
                rig.write(batch).await();
            }
            assertThat(rig.device.accepted()).isEqualTo(5000 * 13);
            assertMoved(rig, batch, 0);
        }
    }

    @Test
    void transfersShareTheQueuesInOrder() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1)).filled(5)) {
            rig.device.hold();
            List<Transfer> transfers = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                transfers.add(rig.write(rig.scattered(3, 16)));
            }
            assertThat(rig.device.accepted()).isEqualTo(8);
            rig.device.release(3);
            rig.poster.progress();

            assertThat(transfers.get(0).isDone()).isTrue();
            assertThat(transfers.get(1).isDone()).isFalse();
            rig.device.release();
            for (Transfer transfer : transfers) {
                transfer.await();
            }
            assertThat(rig.device.accepted()).isEqualTo(30);
        }
    }

    @Test
    void saysHowFarItHasCome() {
        try (PosterRig rig = new PosterRig(Shape.of(1))) {
            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(16, 16));
            rig.device.release(8);
            rig.poster.progress();

            assertThat(transfer.bytesDone()).isEqualTo(8 * 16);
            assertThat(transfer.poll()).isFalse();
            assertThat(transfer.failure()).isNull();
            rig.device.release();
            PosterRig.finish(rig, transfer);
            assertThat(transfer.bytesDone()).isEqualTo(16 * 16);
            assertThat(transfer.poll()).isTrue();
        }
    }

    private static TransferBatch random(PosterRig rig, long seed) {
        Random random = new Random(seed);
        TransferBatch batch = new TransferBatch();
        // A byte at the peer is written once, so the remote side goes on; the local side jumps.
        long remote = 0;
        long local = random.nextInt(100);
        while (true) {
            int length = 1 + random.nextInt(random.nextBoolean() ? 300 : 20);
            remote += random.nextBoolean() ? 0 : random.nextInt(50);
            if (random.nextBoolean()) {
                local = random.nextInt((int) rig.local.byteSize() - 300);
            }
            if (remote + length > rig.remote.byteSize() || local + length > rig.local.byteSize()) {
                return batch;
            }
            rig.add(batch, local, remote, length);
            remote += length;
            local += length;
        }
    }

    private static void assertMoved(PosterRig rig, TransferBatch batch, long seed) {
        for (int block = 0; block < batch.size(); block++) {
            assertThat(rig.moved(batch, block)).as("block %d, seed %d", block, seed).isTrue();
        }
    }

    private static void assertPlanned(TransferPlan plan, List<PostedRequest> posted, long seed) {
        assertThat(plan.workRequests()).as("requests, seed %d", seed).isEqualTo(posted.size());
        assertThat(plan.scatterGatherEntries())
                .isEqualTo(posted.stream().mapToLong(r -> r.pieces().size()).sum());
        assertThat(plan.bytes())
                .isEqualTo(posted.stream().mapToLong(PostedRequest::lengthBytes).sum());
        assertThat(plan.longestMessageBytes())
                .isEqualTo(posted.stream().mapToLong(PostedRequest::lengthBytes).max().orElse(0));
    }

    /** Makes a new poster believe that it has been at work for years. */
    private static void startAt(BatchPoster poster, long position) throws Exception {
        MethodHandles.Lookup own = MethodHandles.lookup();
        MethodHandles.Lookup in = MethodHandles.privateLookupIn(SendQueue.class, own);
        VarHandle head = in.findVarHandle(SendQueue.class, "head", long.class);
        VarHandle tail = in.findVarHandle(SendQueue.class, "tail", long.class);
        VarHandle chainHead = in.findVarHandle(SendQueue.class, "chainHead", int.class);
        VarHandle chainTail = in.findVarHandle(SendQueue.class, "chainTail", int.class);
        VarHandle queues =
                MethodHandles.privateLookupIn(BatchPoster.class, own)
                        .findVarHandle(BatchPoster.class, "queues", PosterQueues.class);
        VarHandle sends =
                MethodHandles.privateLookupIn(PosterQueues.class, own)
                        .findVarHandle(PosterQueues.class, "sends", SendQueue[].class);
        for (SendQueue queue : (SendQueue[]) sends.get((PosterQueues) queues.get(poster))) {
            head.set(queue, position);
            tail.set(queue, position);
            chainHead.set(queue, Integer.MAX_VALUE - 3);
            chainTail.set(queue, Integer.MAX_VALUE - 3);
        }
    }
}
