package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.verbena.memory.Pool;
import dev.verbena.memory.RemotePool;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.Lifetime;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Batches between two nodes, on each transport: every byte on the other side, whichever way, over
 * one queue pair and over four, across the edges of many small regions. Nothing stays open.
 */
abstract class NodeTransfers {
    static final Duration SOON = Duration.ofSeconds(30);
    private static final int POOL_BYTES = 4 << 20;

    private final TwoNodes.Transport transport;
    private long openBefore;

    NodeTransfers(TwoNodes.Transport transport) {
        this.transport = transport;
    }

    @BeforeEach
    void count() {
        openBefore = Lifetime.openCount();
    }

    @AfterEach
    void nothingStaysOpen() {
        assertThat(Lifetime.openCount()).isEqualTo(openBefore);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4})
    void writesAndReadsScatteredBlocks(int queuePairs) throws Exception {
        try (TwoNodes nodes = TwoNodes.withRegions(transport, queuePairs, 64 << 10)) {
            Pool here = nodes.source("here", POOL_BYTES, queuePairs);
            Pool there = nodes.target("there", POOL_BYTES);
            Peer peer = nodes.connect();
            RemotePool remote = peer.awaitPool("there", SOON);
            TransferBatch batch = scattered(here, remote, 2000, queuePairs);
            TransferPlan plan = peer.plan(batch);
            assertThat(plan.isAccepted()).isTrue();
            assertThat(plan.workRequests()).isGreaterThan(500);

            peer.write(batch).await();

            TwoNodes.assertSame(batch, here, there);
            here.segment().fill((byte) 0);
            peer.read(batch).await();
            TwoNodes.assertSame(batch, here, there);
        }
    }

    @Test
    void writesMessagesLongerThanThePortTakes() throws Exception {
        int bytes = 20 << 20;
        try (TwoNodes nodes = TwoNodes.of(transport, 2)) {
            Pool here = nodes.source("here", bytes, 5);
            Pool there = nodes.target("there", bytes);
            Peer peer = nodes.connect();
            RemotePool remote = peer.awaitPool("there", SOON);
            TransferBatch batch = new TransferBatch().add(here.address(), remote.address(), bytes);

            peer.write(batch).await();

            TwoNodes.assertSame(batch, here, there);
        }
    }

    /** When it has come on every queue pair, all data is there. */
    @Test
    void immediatesComeBehindTheData() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(transport, 4)) {
            Pool here = nodes.source("here", POOL_BYTES, 6);
            Pool there = nodes.target("there", POOL_BYTES);
            Peer peer = nodes.connect();
            Peer back = nodes.accepted();
            RemotePool remote = peer.awaitPool("there", SOON);
            assertThat(peer.queuePairs()).isEqualTo(4);
            for (int round = 1; round <= 5; round++) {
                there.segment().fill((byte) 0);
                TransferBatch batch = scattered(here, remote, 100, round);
                Transfer transfer = peer.write(batch, -round);
                for (int pair = 0; pair < 4; pair++) {
                    assertThat(nodes.immediate()).isEqualTo(new TwoNodes.Immediate(back, -round));
                }
                TwoNodes.assertSame(batch, here, there);
                transfer.await();
            }
            assertThat(nodes.farImmediates).isEmpty();
        }
    }

    /**
     * More of them than there are receives, by far: the other side keeps up, or the device waits.
     */
    @Test
    void aStormOfImmediatesIsTakenWhole() throws Exception {
        int count = 1000;
        try (TwoNodes nodes = TwoNodes.of(transport, 2)) {
            Peer peer = nodes.connect();
            TransferBatch empty = new TransferBatch();
            List<Transfer> transfers = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                transfers.add(peer.write(empty, i));
            }
            for (Transfer transfer : transfers) {
                transfer.await();
            }
            long sum = 0;
            for (int i = 0; i < 2 * count; i++) {
                sum += nodes.immediate().value();
            }
            assertThat(sum).isEqualTo((long) count * (count - 1));
        }
    }

    /**
     * Nobody waits for these transfers, so the thread that makes progress must be woken by their
     * completions. A wake-up that is lost costs it a second, until it looks by itself.
     */
    @Test
    void transfersEndWithoutAnybodyWaiting() throws Exception {
        int rounds = 21;
        try (TwoNodes nodes = TwoNodes.of(transport, 2)) {
            Pool here = nodes.source("here", 4096, 8);
            nodes.target("there", 4096);
            Peer peer = nodes.connect();
            RemotePool remote = peer.awaitPool("there", SOON);
            TransferBatch batch = new TransferBatch().add(here.address(), remote.address(), 4096);
            long[] nanos = new long[rounds];
            for (int round = 0; round < rounds; round++) {
                // Long enough for the thread to fall asleep.
                Thread.sleep(15);
                long start = System.nanoTime();
                peer.write(batch).completion().toCompletableFuture().get(60, TimeUnit.SECONDS);
                nanos[round] = System.nanoTime() - start;
            }
            Arrays.sort(nanos);
            assertThat(Duration.ofNanos(nanos[rounds / 2])).isLessThan(Duration.ofMillis(500));
        }
    }

    /** What is in flight of it drains over the wire, and its neighbours notice nothing. */
    @Test
    void aTransferThatIsCancelledLeavesThePeerAndOthersAsTheyWere() throws Exception {
        int bytes = 64 << 20;
        int chunk = 256 << 10;
        PosterOptions shortQueue = TwoNodes.posterOptions(SOON).withDepth(8, 4);
        try (TwoNodes nodes = new TwoNodes(transport, o -> o.queuePairs(2).poster(shortQueue))) {
            Pool here = nodes.source("here", bytes, 9);
            Pool there = nodes.target("there", bytes);
            Pool side = nodes.target("side", chunk);
            Peer peer = nodes.connect();
            RemotePool remote = peer.awaitPool("there", SOON);
            TransferBatch batch = new TransferBatch();
            // From back to front, so that no two are merged.
            for (long at = bytes - chunk; at >= 0; at -= chunk) {
                batch.add(here.address() + at, remote.address() + at, chunk);
            }
            Transfer cancelled = peer.write(batch);
            TransferBatch neighbours =
                    new TransferBatch()
                            .add(here.address(), peer.awaitPool("side", SOON).address(), chunk);
            Transfer neighbour = peer.write(neighbours);
            while (cancelled.bytesDone() == 0) {
                Thread.onSpinWait();
            }

            assertThat(cancelled.cancel("the request was withdrawn")).isTrue();

            assertThatExceptionOfType(TransferException.class)
                    .isThrownBy(cancelled::await)
                    .satisfies(e -> assertThat(e.reason()).isEqualTo(FailureReason.CANCELLED))
                    .withMessageContaining("the request was withdrawn");
            List<BlockOutcomes.Range> notDone = cancelled.failure().notDone();
            assertThat(notDone).hasSize(1);
            int done = notDone.getFirst().firstBlock();
            assertThat(notDone.getFirst())
                    .isEqualTo(new BlockOutcomes.Range(done, batch.size(), BlockOutcome.NOT_DONE));
            assertThat(cancelled.bytesDone()).isEqualTo((long) done * chunk);
            TransferBatch moved = new TransferBatch();
            for (int block = 0; block < done; block++) {
                moved.add(batch.localAddress(block), batch.remoteAddress(block), chunk);
            }
            TwoNodes.assertSame(moved, here, there);
            assertThat(there.segment().asSlice(0, (long) (batch.size() - done) * chunk))
                    .satisfies(rest -> assertThat(isZero(rest)).isTrue());
            neighbour.await();
            TwoNodes.assertSame(neighbours, here, side);
            peer.write(batch).await();
            TwoNodes.assertSame(batch, here, there);
        }
    }

    private static boolean isZero(MemorySegment memory) {
        for (long i = 0; i + 8 <= memory.byteSize(); i += 8) {
            if (memory.get(ValueLayout.JAVA_LONG, i) != 0) {
                return false;
            }
        }
        return true;
    }

    /** Swapped by pairs on this side, so that blocks are gathered and not merged. */
    static TransferBatch gathered(Pool here, RemotePool there, int blocks, int length) {
        TransferBatch batch = new TransferBatch(blocks);
        for (int i = 0; i < blocks; i++) {
            batch.add(
                    here.address() + (long) (i ^ 1) * length,
                    there.address() + (long) (i + i / 4 * 4) * length,
                    length);
        }
        return batch;
    }

    @Test
    void rangesOfThePeerAreRefusedHere() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(transport, 1)) {
            Pool here = nodes.source("here", 8192, 1);
            nodes.target("there", 4096);
            Pool hidden = nodes.far().registry().allocate("hidden", 4096, Access.LOCAL_WRITE);
            nodes.far().registry().allocate("slots", 4096, Access.REMOTE_WRITE);
            Peer peer = nodes.connect();
            RemotePool remote = peer.awaitPool("there", SOON);
            TransferBatch beyond =
                    new TransferBatch()
                            .add(here.address(), remote.address(), 8)
                            .add(here.address(), remote.address() + 4090, 8);
            TransferBatch secret = new TransferBatch().add(here.address(), hidden.address(), 8);
            TransferBatch slots =
                    new TransferBatch()
                            .add(here.address(), peer.awaitPool("slots", SOON).address(), 8);

            assertThatIllegalArgumentException()
                    .isThrownBy(() -> peer.write(beyond))
                    .withMessageContaining("block 1 of 2");
            assertThatIllegalArgumentException().isThrownBy(() -> peer.write(secret));
            assertThatIllegalArgumentException().isThrownBy(() -> peer.pool("hidden"));
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> peer.read(slots))
                    .withMessageContaining("REMOTE_READ");
            peer.write(slots).await();
            assertThat(peer.isOpen()).isTrue();
        }
    }

    @Test
    void poolsComeAndGoWhileConnected() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(transport, 1)) {
            Peer peer = nodes.connect();
            for (int round = 0; round < 5; round++) {
                Pool pool = nodes.target("pool-" + round, 4096);
                assertThat(peer.awaitPool("pool-" + round, SOON).address())
                        .isEqualTo(pool.address());
                pool.close();
            }
            nodes.target("last", 4096);
            peer.awaitPool("last", SOON);
            assertThat(peer.pools()).extracting(RemotePool::name).containsExactly("last");
        }
    }

    private static TransferBatch scattered(Pool here, RemotePool there, int blocks, long seed) {
        Random random = new Random(seed);
        long slot = here.lengthBytes() / blocks;
        int[] slots = new int[blocks];
        for (int i = 0; i < blocks; i++) {
            int j = random.nextInt(i + 1);
            slots[i] = slots[j];
            slots[j] = i;
        }
        TransferBatch batch = new TransferBatch(blocks);
        for (int i = 0; i < blocks; i++) {
            long length = random.nextBoolean() ? slot : 1 + random.nextLong(slot);
            batch.add(here.address() + slots[i] * slot, there.address() + i * slot, length);
        }
        return batch;
    }
}
