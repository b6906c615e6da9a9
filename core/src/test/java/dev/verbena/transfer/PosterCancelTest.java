package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.verbena.bindings.Errno;
import dev.verbena.memory.PoolDouble;
import dev.verbena.transfer.PosterRig.Shape;
import dev.verbena.verbs.CompletionStatus;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A transfer that is cancelled posts nothing more, ends once and only when what was in flight has
 * come back, and says of every block what became of it. Its neighbours notice nothing.
 */
@Timeout(120)
class PosterCancelTest {
    private static final int BYTES = 16;

    @Test
    void whileWaitingItEndsAtOnceAndPostsNothing() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1)).filled(1)) {
            rig.device.hold();
            Transfer before = rig.write(rig.scattered(12, BYTES));
            Transfer waiting = rig.write(rig.scattered(30, BYTES), 7);
            Transfer behind = rig.write(rig.scattered(3, BYTES));

            assertThat(waiting.cancel("changed my mind")).isTrue();

            assertCancelled(waiting, "changed my mind");
            assertThat(waiting.failure().notDone())
                    .containsExactly(new BlockOutcomes.Range(0, 30, BlockOutcome.NOT_DONE));
            rig.device.release();
            before.await();
            behind.await();
            assertThat(rig.device.accepted()).isEqualTo(15);
            assertGoesOn(rig);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void partlyPostedItEndsOnceThatHasDrained(int queuePairs) throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(queuePairs)).filled(2)) {
            int posted = 8 * queuePairs;
            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(50, BYTES), 7);
            Transfer behind = rig.write(elsewhere(rig));
            Ends ends = new Ends(transfer);

            assertThat(transfer.cancel("as meant")).isTrue();
            rig.device.release(posted - 1);
            rig.poster.progress();

            assertThat(transfer.isDone()).as("one request is in flight").isFalse();
            assertThatIllegalStateException().isThrownBy(() -> PoolDouble.close(rig.pool));
            rig.device.release();
            rig.poster.progress();
            assertCancelled(transfer, "as meant");
            assertThat(ends.count()).isEqualTo(1);
            assertThat(transfer.failure().notDone())
                    .containsExactly(new BlockOutcomes.Range(posted, 50, BlockOutcome.NOT_DONE));
            rig.assertTruthful(transfer);
            assertThat(transfer.bytesDone()).isEqualTo((long) posted * BYTES);
            behind.await();
            assertThat(rig.device.accepted()).isEqualTo(posted + 3);
            assertGoesOn(rig);
        }
    }

    @Test
    void allPostedItEndsAsCancelledWithAllBlocksDone() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(2)).filled(3)) {
            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(5, BYTES), 7);

            assertThat(transfer.cancel("too late to matter")).isTrue();

            assertThat(transfer.isDone()).isFalse();
            rig.device.release();
            PosterRig.finish(rig, transfer);
            assertCancelled(transfer, "too late to matter");
            assertThat(transfer.failure().notDone()).isEmpty();
            rig.assertTruthful(transfer);
            assertGoesOn(rig);
        }
    }

    @Test
    void hasNoEffectASecondTimeNorOnceItHasEnded() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1))) {
            Transfer done = rig.write(rig.scattered(2, BYTES));
            // Done at the device, though nobody has looked.
            assertThat(done.cancel("too late")).isFalse();
            assertThat(done.poll()).isTrue();

            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(20, BYTES));
            assertThat(transfer.cancel("first")).isTrue();
            assertThat(transfer.cancel("second")).isFalse();
            rig.device.release();
            PosterRig.finish(rig, transfer);
            assertThat(transfer.cancel("third")).isFalse();
            assertCancelled(transfer, "first");
            assertGoesOn(rig);
        }
    }

    @Test
    void hasNoEffectOnATransferThatIsFailing() {
        // Closing waits for completions that are lost, so it had better not wait for long.
        Shape shape = Shape.of(1).withDeadlines(Duration.ofMinutes(10), Duration.ofMillis(40));
        try (PosterRig rig = new PosterRig(shape)) {
            rig.device.hold();
            rig.device.loseCompletions(true);
            Transfer transfer = rig.write(rig.scattered(3, BYTES));
            rig.poster.fail(FailureReason.PEER_LOST, "gone", null);

            assertThat(transfer.isDone()).isFalse();
            assertThat(transfer.cancel("too late")).isFalse();
            rig.poster.close();
            assertThat(transfer.failure().reason()).isEqualTo(FailureReason.PEER_LOST);
            assertThat(transfer.cancel("after the end")).isFalse();
        }
    }

    /** The ends of both are found in one turn; the third is under way, and the callback's own. */
    @Test
    void fromACallbackOfAnotherAndOfItsOwn() {
        try (PosterRig rig = new PosterRig(Shape.of(1)).filled(4)) {
            rig.device.hold();
            Transfer first = rig.write(elsewhere(rig));
            Transfer second = rig.write(elsewhere(rig));
            Transfer third = rig.write(rig.scattered(30, BYTES));
            List<Boolean> effects = new ArrayList<>();
            first.completion()
                    .thenRun(() -> {
                        effects.add(first.cancel("own"));
                        effects.add(second.cancel("ended in the same turn"));
                        effects.add(third.cancel("under way"));
                    });
            rig.device.release(6);
            rig.poster.progress();

            assertThat(effects).containsExactly(false, false, true);
            assertThat(second.poll()).isTrue();
            rig.device.release();
            PosterRig.finish(rig, third);
            assertCancelled(third, "under way");
            rig.assertTruthful(third);
        }
    }

    /**
     * The driver took a part of a chain, whose last request is unsignalled, and nothing comes
     * behind it: without a request that is, nobody would hear of its end.
     */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void whatIsInFlightUnsignalledIsDrivenToItsEnd(int queuePairs) throws Exception {
        for (boolean refusedAgain : new boolean[] {false, true}) {
            try (PosterRig rig = new PosterRig(Shape.of(queuePairs)).filled(5)) {
                rig.device.acceptOnly(3, Errno.ENOMEM);
                Transfer transfer = rig.write(rig.scattered(30, BYTES));
                if (refusedAgain) {
                    rig.device.acceptOnly(0, Errno.ENOMEM);
                    rig.device.acceptOnly(0, Errno.EAGAIN);
                }

                assertThat(transfer.cancel("as meant")).isTrue();

                PosterRig.finish(rig, transfer);
                assertCancelled(transfer, "as meant");
                assertThat(transfer.failure().notDone())
                        .containsExactly(new BlockOutcomes.Range(3, 30, BlockOutcome.NOT_DONE));
                rig.assertTruthful(transfer);
                assertThat(rig.device.accepted()).as("three and the marker").isEqualTo(4);
                assertThat(rig.device.posted().getLast().lengthBytes()).isZero();
                assertGoesOn(rig);
            }
        }
    }

    @Test
    void aMarkerThatIsRefusedForGoodStopsAll() {
        try (PosterRig rig = new PosterRig(Shape.of(2)).filled(6)) {
            rig.device.acceptOnly(3, Errno.ENOMEM);
            Transfer transfer = rig.write(rig.scattered(30, BYTES));
            Transfer other = rig.write(elsewhere(rig));
            rig.device.acceptOnly(0, Errno.EINVAL);

            assertThat(transfer.cancel("as meant")).isTrue();

            PosterRig.finish(rig, transfer);
            PosterRig.finish(rig, other);
            assertCancelled(transfer, "as meant");
            rig.assertTruthful(transfer);
            assertThat(other.failure().reason()).isEqualTo(FailureReason.POST_REFUSED);
            assertThat(rig.poster.isOpen()).isFalse();
        }
    }

    /** One queue pair has its immediate, for the other there was no room. */
    @Test
    void immediatesThatAreOwedAreNotSent() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(2))) {
            rig.device.acceptOnly(1, Errno.ENOMEM);
            rig.device.acceptOnly(0, Errno.ENOMEM);
            Transfer transfer = rig.write(new TransferBatch(), 7);

            assertThat(transfer.cancel("as meant")).isTrue();

            PosterRig.finish(rig, transfer);
            assertCancelled(transfer, "as meant");
            assertThat(rig.device.accepted()).isEqualTo(1);
            assertGoesOn(rig);
        }
    }

    @Test
    void aFailureWhileItDrainsIsTruthfullyTold() {
        try (PosterRig rig = new PosterRig(Shape.of(1)).filled(7)) {
            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(20, BYTES));
            rig.device.failRequest(5 - 8, CompletionStatus.RETRY_EXCEEDED);
            assertThat(transfer.cancel("as meant")).isTrue();
            rig.device.release();
            PosterRig.finish(rig, transfer);

            assertCancelled(transfer, "as meant");
            assertThat(transfer.failure().notDone())
                    .containsExactly(
                            new BlockOutcomes.Range(5, 8, BlockOutcome.UNKNOWN),
                            new BlockOutcomes.Range(8, 20, BlockOutcome.NOT_DONE));
            assertThat(transfer.bytesDone()).isEqualTo(5 * BYTES);
            assertThat(rig.poster.isOpen()).isFalse();
        }
    }

    /** Whoever wins, what cancel returned is what the transfer ended with, once. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void racesWithItsOwnCompletionHaveOneWinner(int queuePairs) throws Exception {
        for (long seed = 0; seed < 100; seed++) {
            Random random = new Random(seed);
            try (PosterRig rig = new PosterRig(Shape.of(queuePairs)).filled(seed)) {
                rig.device.recordPosts(false);
                if (random.nextBoolean()) {
                    rig.device.acceptOnly(random.nextInt(4), Errno.ENOMEM);
                }
                rig.device.hold();
                Transfer transfer = rig.write(rig.scattered(1 + random.nextInt(40), BYTES), 3);
                Transfer other = rig.write(elsewhere(rig));
                Ends ends = new Ends(transfer);
                List<Boolean> effects = Collections.synchronizedList(new ArrayList<>());
                AtomicReference<Throwable> failure = new AtomicReference<>();
                CountDownLatch start = new CountDownLatch(1);
                List<Thread> threads = new ArrayList<>();
                for (int i = 0; i < 2; i++) {
                    int spin = random.nextInt(20_000);
                    threads.add(
                            start(
                                    start,
                                    failure,
                                    () -> {
                                        spin(spin);
                                        effects.add(transfer.cancel("raced"));
                                    }));
                }
                threads.add(start(start, failure, rig.device::release));
                threads.add(start(start, failure, other::await));
                start.countDown();
                for (Thread thread : threads) {
                    thread.join();
                }
                PosterRig.finish(rig, transfer);

                assertThat(failure.get()).as("seed %d", seed).isNull();
                boolean cancelled = transfer.failure() != null;
                assertThat(effects).filteredOn(effect -> effect).hasSize(cancelled ? 1 : 0);
                if (cancelled) {
                    assertCancelled(transfer, "raced");
                }
                assertThat(ends.count()).isEqualTo(1);
                rig.assertTruthful(transfer);
                assertThat(other.failure()).isNull();
                assertGoesOn(rig);
            }
        }
    }

    /** Three blocks that no batch of scattered ones touches. */
    private static TransferBatch elsewhere(PosterRig rig) {
        TransferBatch batch = new TransferBatch();
        for (int block = 0; block < 3; block++) {
            rig.add(batch, 4096L + 32L * block, 8192L + 32L * block, BYTES);
        }
        return batch;
    }

    private interface Step {
        void run() throws InterruptedException;
    }

    private static Thread start(
            CountDownLatch start, AtomicReference<Throwable> failure, Step step) {
        return Thread.ofPlatform()
                .start(() -> {
                    try {
                        start.await();
                        step.run();
                    } catch (Throwable thrown) {
                        failure.set(thrown);
                    }
                });
    }

    private static void spin(int times) {
        for (int i = 0; i < times; i++) {
            Thread.onSpinWait();
        }
    }

    private static void assertCancelled(Transfer transfer, String reason) {
        assertThat(transfer.isDone()).isTrue();
        TransferException failure = transfer.failure();
        assertThat(failure).isNotNull().hasMessageContaining(reason);
        assertThat(failure.reason()).isEqualTo(FailureReason.CANCELLED);
        assertThat(failure.blockIndex()).isEqualTo(-1);
    }

    /** The poster has not failed, and its queues have lost no room. */
    private static void assertGoesOn(PosterRig rig) throws InterruptedException {
        assertThat(rig.stops).isEmpty();
        rig.remote.fill((byte) 0);
        Transfer next = rig.write(rig.scattered(70, BYTES), 9);
        next.await();
        rig.assertTruthful(next);
    }
}
