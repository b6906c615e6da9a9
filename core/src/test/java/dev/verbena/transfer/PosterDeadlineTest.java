package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.verbena.bindings.Errno;
import dev.verbena.memory.PoolDouble;
import dev.verbena.transfer.PosterRig.Shape;
import dev.verbena.verbs.Lifetime;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A peer or a device that does nothing more is given up after the deadline, and the transfer ends
 * only when the device can touch no memory for it: its queue pairs have stopped and given all back,
 * or are destroyed. Deadlines that are to strike are of tens of milliseconds; those that are not
 * to, of seconds, since a machine may be slow.
 */
@Timeout(120)
class PosterDeadlineTest {
    private static final Duration SHORT = Duration.ofMillis(40);
    private static final Duration LONG = Duration.ofSeconds(2);
    private static final Duration NEVER = Duration.ofMinutes(10);

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void aDeviceThatStandsStillIsStoppedAndDrainedBeforeTheEnd(int queuePairs) {
        Shape shape = Shape.of(queuePairs).withDeadlines(SHORT, NEVER);
        try (PosterRig rig = new PosterRig(shape)) {
            rig.device.hold();
            long start = System.nanoTime();
            Transfer transfer = rig.write(rig.scattered(40, 16));
            AtomicBoolean drained = new AtomicBoolean();
            transfer.completion()
                    .whenComplete((done, failed) ->
                            drained.set(
                                    rig.pairs.stream()
                                            .allMatch(p -> rig.device.outstanding(p) == 0)));

            assertThatExceptionOfType(TransferException.class)
                    .isThrownBy(transfer::await)
                    .satisfies(e -> assertThat(e.reason()).isEqualTo(FailureReason.DEADLINE))
                    .satisfies(e -> assertThat(e.outcome(0)).isEqualTo(BlockOutcome.UNKNOWN))
                    .satisfies(e -> assertThat(e.outcome(39)).isEqualTo(BlockOutcome.NOT_DONE))
                    .withMessageContaining("no work request completed for PT0.04S");

            assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(SHORT.toNanos());
            assertThat(drained).isTrue();
        }
    }

    @Test
    void aDeviceThatNeverFlushesLosesItsQueuePairs() {
        try (PosterRig rig = new PosterRig(Shape.of(2).withDeadlines(SHORT, SHORT))) {
            rig.device.hold();
            rig.device.loseCompletions(true);
            Transfer transfer = rig.write(rig.scattered(10, 16));

            assertThatExceptionOfType(TransferException.class)
                    .isThrownBy(transfer::await)
                    .satisfies(e -> assertThat(e.reason()).isEqualTo(FailureReason.DEADLINE))
                    .satisfies(e -> assertThat(e.notDone()).hasSize(1));

            // A destroyed queue pair says so.
            rig.pairs.forEach(pair ->
                    assertThatIllegalStateException()
                            .isThrownBy(pair::queryState)
                            .withMessageContaining("closed"));
        }
    }

    @Test
    void aDeviceThatDoesTheWorkAndForgetsToSaySoIsGivenUpToo() {
        try (PosterRig rig = new PosterRig(Shape.of(1).withDeadlines(SHORT, SHORT)).filled(1)) {
            rig.device.loseCompletions(true);
            TransferBatch batch = rig.scattered(8, 16);
            Transfer transfer = rig.write(batch);

            assertThatExceptionOfType(TransferException.class)
                    .isThrownBy(transfer::await)
                    .satisfies(e -> assertThat(e.outcome(0)).isEqualTo(BlockOutcome.UNKNOWN));
            assertThat(rig.moved(batch, 0)).isTrue();
        }
    }

    @Test
    void aQueuePairThatCannotBeStoppedIsDestroyed() {
        try (PosterRig rig = new PosterRig(Shape.of(1).withDeadlines(SHORT, SHORT))) {
            rig.device.hold();
            rig.device.failModify(Errno.EIO);
            Transfer transfer = rig.write(rig.scattered(3, 16));

            assertThatExceptionOfType(TransferException.class).isThrownBy(transfer::await);
            assertThat(rig.device.outstanding(rig.pairs.getFirst())).isZero();
        }
    }

    @Test
    void aQueuePairThatIsNotDestroyedAtOnceKeepsItsTransferUntilItIs() {
        try (PosterRig rig = new PosterRig(Shape.of(2).withDeadlines(SHORT, SHORT))) {
            rig.device.hold();
            rig.device.failModify(Errno.EIO);
            rig.device.failDestroys(5);
            Transfer transfer = rig.write(rig.scattered(10, 16));
            AtomicBoolean drained = new AtomicBoolean();
            transfer.completion()
                    .whenComplete((done, failed) ->
                            drained.set(
                                    rig.pairs.stream()
                                            .allMatch(p -> rig.device.outstanding(p) == 0)));

            assertThatExceptionOfType(TransferException.class)
                    .isThrownBy(transfer::await)
                    .satisfies(e -> assertThat(e.deviceLetGo()).isTrue());

            assertThat(drained).as("it ended only then").isTrue();
            assertThatNothingHolds(rig);
        }
    }

    /**
     * The device goes on with what it has, so the memory is not free; but somebody waits, and is
     * told.
     */
    @Test
    void aQueuePairThatCannotBeDestroyedKeepsThePoolsWhenItsTransferEnds() {
        try (PosterRig rig = new PosterRig(Shape.of(1).withDeadlines(SHORT, SHORT)).filled(1)) {
            rig.device.hold();
            rig.device.failModify(Errno.EIO);
            rig.device.failDestroys(Integer.MAX_VALUE);
            long open = Lifetime.openCount();
            TransferBatch batch = rig.scattered(10, 16);
            Transfer transfer = rig.write(batch);
            Transfer waiting = rig.write(rig.scattered(10, 16));
            Ends ends = new Ends(transfer);

            assertThatExceptionOfType(TransferException.class)
                    .isThrownBy(transfer::await)
                    .withMessageContaining("could not be destroyed")
                    .satisfies(e -> assertThat(e.deviceLetGo()).isFalse())
                    .satisfies(e -> assertThat(e.reason()).isEqualTo(FailureReason.DEADLINE))
                    .satisfies(e -> assertThat(e.outcome(7)).isEqualTo(BlockOutcome.UNKNOWN))
                    .satisfies(e -> assertThat(e.outcome(8)).isEqualTo(BlockOutcome.NOT_DONE));

            assertThat(waiting.failure().deviceLetGo()).as("nothing of it was posted").isTrue();
            assertThatIllegalStateException()
                    .isThrownBy(() -> PoolDouble.close(rig.pool))
                    .withMessageContaining("1 transfers in flight");
            assertThat(rig.moved(batch, 7)).isFalse();
            rig.device.release();
            assertThat(rig.moved(batch, 7)).as("the device was still at it").isTrue();
            rig.poster.progress();
            assertThat(ends.count()).isEqualTo(1);
            assertThat(Lifetime.openCount()).as("the ring is not freed").isEqualTo(open);

            rig.device.failDestroys(0);
            while (Lifetime.openCount() == open) {
                rig.poster.progress();
            }
            assertThat(Lifetime.openCount()).as("queue pair, ring, receives").isEqualTo(open - 3);
            assertThatNothingHolds(rig);
        }
    }

    @Test
    void closingEndsWhatCannotBeDestroyedAndClosingAgainTriesAgain() {
        try (PosterRig rig = new PosterRig(Shape.of(2).withDeadlines(NEVER, SHORT))) {
            rig.device.hold();
            rig.device.loseCompletions(true);
            rig.device.failDestroys(Integer.MAX_VALUE);
            Transfer transfer = rig.write(rig.scattered(10, 16));

            rig.poster.close();

            assertThat(transfer.isDone()).isTrue();
            assertThat(transfer.failure().reason()).isEqualTo(FailureReason.CLOSED);
            assertThat(transfer.failure().deviceLetGo()).isFalse();
            assertThatIllegalStateException().isThrownBy(() -> PoolDouble.close(rig.pool));

            rig.device.failDestroys(0);
            rig.poster.close();
            assertThatNothingHolds(rig);
        }
    }

    private static void assertThatNothingHolds(PosterRig rig) {
        assertThatIllegalStateException()
                .isThrownBy(rig.pool::release)
                .withMessageContaining("more often than held");
    }

    /** The deadline is a lack of progress: a transfer may take longer. */
    @Test
    void aSlowTransferIsNotGivenUp() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1).withDeadlines(LONG, NEVER))) {
            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(40, 16));
            Thread device =
                    Thread.startVirtualThread(() -> {
                        while (!transfer.isDone()) {
                            sleep(LONG.dividedBy(4));
                            rig.device.release(8);
                        }
                    });

            transfer.await();

            device.join();
            assertThat(transfer.bytesDone()).isEqualTo(40 * 16);
        }
    }

    @Test
    void aWaitMayBeLessPatientThanThePoster() {
        try (PosterRig rig = new PosterRig(Shape.of(1).withDeadlines(NEVER, NEVER))) {
            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(3, 16));
            assertThatIllegalArgumentException().isThrownBy(() -> transfer.await(Duration.ZERO));

            assertThatExceptionOfType(TransferException.class)
                    .isThrownBy(() -> transfer.await(SHORT))
                    .satisfies(e -> assertThat(e.reason()).isEqualTo(FailureReason.DEADLINE));
        }
    }

    @Test
    void aWaitIsNeverMorePatientThanThePoster() {
        try (PosterRig rig = new PosterRig(Shape.of(1).withDeadlines(SHORT, NEVER))) {
            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(3, 16));

            assertThatExceptionOfType(TransferException.class)
                    .isThrownBy(() -> transfer.await(NEVER))
                    .satisfies(e -> assertThat(e.reason()).isEqualTo(FailureReason.DEADLINE));
        }
    }

    /** More nanoseconds than a long counts are no error, and do not strike. */
    @Test
    void deadlinesOfCenturiesMeanForEver() throws Exception {
        Duration forEver = Duration.ofSeconds(Long.MAX_VALUE);
        PosterOptions patient =
                Shape.OPTIONS
                        .withProgressDeadline(forEver)
                        .withDrainDeadline(forEver)
                        .withSpin(forEver);
        try (PosterRig rig = new PosterRig(Shape.of(2).with(patient)).filled(1)) {
            Transfer transfer = rig.write(rig.scattered(30, 16));
            transfer.await(forEver);
            rig.assertTruthful(transfer);

            rig.device.hold();
            Transfer closed = rig.write(rig.scattered(30, 16));
            rig.poster.progress();
            assertThat(rig.poster.isOpen()).isTrue();
            rig.poster.close();
            assertThat(closed.failure().reason()).isEqualTo(FailureReason.CLOSED);
        }
    }

    /** Time in which nobody looked is no lack of progress: completions may be there to be taken. */
    @Test
    void completionsThatNobodyTookYetCountAsProgress() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1).withDeadlines(NEVER, NEVER))) {
            Transfer transfer = rig.write(rig.scattered(30, 16));
            Duration patience = LONG.dividedBy(2);
            sleep(patience.plus(SHORT));

            transfer.await(patience);

            assertThat(transfer.failure()).isNull();
        }
    }

    @Test
    void theClockOfAnIdlePosterStartsWithTheNextTransfer() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1).withDeadlines(LONG, NEVER))) {
            rig.write(rig.scattered(1, 16)).await();
            sleep(LONG.plus(SHORT));
            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(1, 16));
            rig.poster.progress();

            assertThat(rig.poster.isOpen()).isTrue();
            rig.device.release();
            transfer.await();
        }
    }

    @Test
    void aCompletionQueueThatFailsEndsAll() {
        try (PosterRig rig = new PosterRig(Shape.of(2).withDeadlines(NEVER, SHORT))) {
            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(10, 16));
            rig.device.failPolls(1);

            assertThatExceptionOfType(TransferException.class)
                    .isThrownBy(transfer::await)
                    .satisfies(e -> assertThat(e.reason()).isEqualTo(FailureReason.DEVICE))
                    .withMessageContaining("ibv_poll_cq");
        }
    }

    @Test
    void aCompletionQueueThatFailsForGoodEndsAllToo() {
        try (PosterRig rig = new PosterRig(Shape.of(2).withDeadlines(NEVER, SHORT))) {
            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(10, 16));
            rig.device.failPolls(Integer.MAX_VALUE);

            assertThatExceptionOfType(TransferException.class).isThrownBy(transfer::await);
            assertThat(transfer.failure().reason()).isEqualTo(FailureReason.DEVICE);
            rig.device.failPolls(0);
        }
    }

    @Test
    void poolsAreHeldUntilTheEndAndNoLonger() {
        try (PosterRig rig = new PosterRig(Shape.of(1).withDeadlines(NEVER, NEVER))) {
            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(3, 16));

            assertThatIllegalStateException()
                    .isThrownBy(() -> PoolDouble.close(rig.pool))
                    .withMessageContaining("1 transfers in flight");

            rig.device.release();
            PosterRig.finish(rig, transfer);
            // The rig closes the pool.
        }
    }

    @Test
    void closingEndsTransfersUnderWayWithinTheDrainDeadline() {
        for (boolean hung : new boolean[] {false, true}) {
            PosterRig rig = new PosterRig(Shape.of(2).withDeadlines(NEVER, SHORT));
            rig.device.hold();
            rig.device.loseCompletions(hung);
            Transfer transfer = rig.write(rig.scattered(30, 16));

            rig.poster.close();

            assertThat(transfer.isDone()).isTrue();
            assertThat(transfer.failure().reason()).isEqualTo(FailureReason.CLOSED);
            assertThatIllegalStateException().isThrownBy(() -> rig.write(rig.scattered(1, 16)));
            rig.poster.close();
            rig.close();
        }
    }

    private static void sleep(Duration time) {
        try {
            Thread.sleep(time);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
