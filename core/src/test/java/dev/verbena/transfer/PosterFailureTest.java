package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.verbena.bindings.Errno;
import dev.verbena.transfer.PosterRig.Shape;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.VerbsException;
import java.lang.invoke.MethodHandles;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Whichever work request fails and however, each transfer ends once, with the first cause, and says
 * of every block the truth as far as it can be known. Chains of a few requests over queues of
 * eight, failed at every position in turn, on one, two and four queue pairs.
 */
@Timeout(120)
class PosterFailureTest {
    private static final int BYTES = 16;
    private static final int CHAIN = 7;

    /** What a device says of a peer that does not answer. */
    private static final Set<CompletionStatus> SILENT =
            EnumSet.of(CompletionStatus.RETRY_EXCEEDED, CompletionStatus.RECEIVER_NOT_READY);

    // --- Posts that the driver takes in part ---

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void aFullQueueInTheMiddleOfAChainLosesAndRepeatsNothing(int queuePairs) throws Exception {
        for (boolean immediate : new boolean[] {false, true}) {
            for (int taken = 0; taken < CHAIN; taken++) {
                try (PosterRig rig = new PosterRig(Shape.of(queuePairs)).filled(taken)) {
                    TransferBatch batch = rig.scattered(CHAIN * queuePairs, BYTES);
                    rig.device.acceptOnly(taken, Errno.ENOMEM);
                    rig.device.acceptOnly(taken / 2, Errno.EAGAIN);

                    Transfer transfer = immediate ? rig.write(batch, 5) : rig.write(batch);
                    transfer.await();

                    assertThat(rig.device.accepted())
                            .isEqualTo(queuePairs * (CHAIN + (immediate ? 1 : 0)));
                    assertAllMoved(rig, batch);
                }
            }
        }
    }

    /** What was taken, unsignalled, has no completion of its own: yet its outcome is known. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void aRefusalForGoodFailsWithTheErrnoAndExactOutcomes(int queuePairs) {
        for (boolean held : new boolean[] {false, true}) {
            for (int taken = 0; taken < CHAIN; taken++) {
                try (PosterRig rig = new PosterRig(Shape.of(queuePairs)).filled(taken)) {
                    if (held) {
                        rig.device.hold();
                    }
                    TransferBatch batch = rig.scattered(CHAIN * queuePairs, BYTES);
                    rig.device.acceptOnly(taken, Errno.EINVAL);

                    Transfer transfer = rig.write(batch);
                    PosterRig.finish(rig, transfer);

                    TransferException failure = failure(transfer);
                    assertThat(failure.reason()).isEqualTo(FailureReason.POST_REFUSED);
                    assertThat(failure.blockIndex()).isEqualTo(taken);
                    assertThat(failure).hasMessageContaining("EINVAL");
                    assertThat(failure.getCause()).isInstanceOf(VerbsException.class);
                    for (int block = 0; block < batch.size(); block++) {
                        BlockOutcome expected =
                                block >= taken
                                        ? BlockOutcome.NOT_DONE
                                        : held ? BlockOutcome.UNKNOWN : BlockOutcome.DONE;
                        assertThat(failure.outcome(block))
                                .as("block %d of which %d taken", block, taken)
                                .isEqualTo(expected);
                    }
                }
            }
        }
    }

    /**
     * The errno of a refusal is that of the queue that refused, not of one that was full before.
     */
    @Test
    void namesTheQueuePairThatRefused() {
        try (PosterRig rig = new PosterRig(Shape.of(2))) {
            rig.device.acceptOnly(0, Errno.ENOMEM);
            Transfer transfer = rig.write(rig.scattered(4, BYTES));
            rig.device.acceptOnly(0, Errno.EINVAL);
            PosterRig.finish(rig, transfer);

            assertThat(failure(transfer))
                    .hasMessageContaining("EINVAL")
                    .hasMessageContaining(rig.pairs.get(1).toString());
        }
    }

    @Test
    void aRefusedImmediateFailsTheTransferAfterItsData() {
        try (PosterRig rig = new PosterRig(Shape.of(2)).filled(1)) {
            TransferBatch batch = rig.scattered(2, BYTES);
            // Chains of one, so the first two calls are not refused after all.
            rig.device.acceptOnly(1, Errno.ENOMEM);
            rig.device.acceptOnly(1, Errno.ENOMEM);
            rig.device.acceptOnly(0, Errno.EINVAL);
            Transfer transfer = rig.write(batch, 9);
            PosterRig.finish(rig, transfer);

            assertThat(failure(transfer).blockIndex()).isEqualTo(-1);
            assertThat(failure(transfer).notDone()).isEmpty();
        }
    }

    /** It moves no block, so it names none; and all blocks were moved before it. */
    @Test
    void anImmediateThatFailsNamesNoBlock() {
        try (PosterRig rig = new PosterRig(Shape.of(1)).filled(1)) {
            TransferBatch batch = rig.scattered(2, BYTES);
            rig.device.failRequest(2, CompletionStatus.REMOTE_OPERATION);
            Transfer transfer = rig.write(batch, 9);
            PosterRig.finish(rig, transfer);

            assertThat(failure(transfer).blockIndex()).isEqualTo(-1);
            assertThat(failure(transfer).notDone()).isEmpty();
            assertThat(transfer.bytesDone()).isEqualTo(batch.bytes());
        }
    }

    /**
     * A driver that does not say what it took may have taken all: nothing is known but the rest.
     */
    @Test
    void whatASilentDriverTookIsUnknownUntilTheQueuePairIsGone() {
        Shape shape = Shape.of(1).withDeadlines(Duration.ofSeconds(30), Duration.ofMillis(50));
        try (PosterRig rig = new PosterRig(shape)) {
            rig.device.refuseSilently(2, Errno.EIO);
            Transfer transfer = rig.write(rig.scattered(20, BYTES));
            PosterRig.finish(rig, transfer);

            TransferException failure = failure(transfer);
            assertThat(failure.reason()).isEqualTo(FailureReason.POST_REFUSED);
            assertThat(failure).hasMessageContaining("EIO");
            assertThat(failure.blockIndex()).isEqualTo(-1);
            for (int block = 0; block < 20; block++) {
                assertThat(failure.outcome(block))
                        .isEqualTo(block < 8 ? BlockOutcome.UNKNOWN : BlockOutcome.NOT_DONE);
            }
        }
    }

    // --- Requests that fail ---

    @ParameterizedTest
    @EnumSource(CompletionStatus.class)
    void anyStatusAtAnyPositionEndsTheTransferOnce(CompletionStatus status) {
        if (status == CompletionStatus.SUCCESS || status == CompletionStatus.UNKNOWN) {
            return;
        }
        int blocks = 20;
        for (int bad = 0; bad < blocks; bad++) {
            try (PosterRig rig = new PosterRig(Shape.of(1)).filled(bad)) {
                TransferBatch batch = rig.scattered(blocks, BYTES);
                rig.device.failRequest(bad, status);
                Transfer transfer = rig.write(batch);
                Ends ends = new Ends(transfer);
                PosterRig.finish(rig, transfer);

                TransferException failure = failure(transfer);
                boolean silent = SILENT.contains(status);
                assertThat(failure.reason())
                        .isEqualTo(silent ? FailureReason.PEER_LOST : FailureReason.WORK_REQUEST);
                assertThat(failure.reason().retryHelps()).isEqualTo(silent);
                assertThat(failure.blockIndex()).isEqualTo(bad);
                assertThat(failure)
                        .hasMessageContaining(status.name())
                        .hasMessageContaining("at block " + bad);
                assertThat(ends.count()).isEqualTo(1);
                long posted = rig.device.accepted();
                for (int block = 0; block < blocks; block++) {
                    BlockOutcome outcome = failure.outcome(block);
                    if (block < bad) {
                        assertThat(outcome).isEqualTo(BlockOutcome.DONE);
                        assertThat(rig.moved(batch, block)).isTrue();
                    } else if (block == bad || (block < posted && !status.stopsFollowers())) {
                        assertThat(outcome).isEqualTo(BlockOutcome.UNKNOWN);
                    } else {
                        assertThat(outcome).isEqualTo(BlockOutcome.NOT_DONE);
                        assertThat(rig.moved(batch, block)).isFalse();
                    }
                }
                assertThatIllegalStateException()
                        .isThrownBy(() -> rig.write(batch))
                        .withMessageContaining(status.name());
                assertThat(rig.poster.isOpen()).isFalse();
                assertThat(rig.stops).hasSize(1);
                assertThat(rig.stops.peek()).startsWith(failure.reason().name());
            }
        }
    }

    /** Several transfers on several queue pairs, and each request of all of them fails once. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void aFailureEndsAllTransfersUnderWayAndNoneThatWereDone(int queuePairs) {
        int blocks = 6;
        int transfers = 4;
        for (int bad = 0; bad < blocks * transfers; bad++) {
            for (CompletionStatus status :
                    Set.of(CompletionStatus.REMOTE_ACCESS, CompletionStatus.RETRY_EXCEEDED)) {
                try (PosterRig rig = new PosterRig(Shape.of(queuePairs)).filled(bad)) {
                    Transfer before = rig.write(rig.scattered(3, BYTES));
                    PosterRig.finish(rig, before);
                    rig.remote.fill((byte) 0);
                    rig.device.hold();
                    rig.device.failRequest(bad, status);
                    List<Transfer> under = new ArrayList<>();
                    List<Ends> ends = new ArrayList<>();
                    for (int i = 0; i < transfers; i++) {
                        TransferBatch batch = new TransferBatch();
                        for (int block = 0; block < blocks; block++) {
                            long offset = 1024L * i + 2L * BYTES * block;
                            rig.add(batch, offset, 64 + offset, BYTES);
                        }
                        under.add(rig.write(batch, i));
                        ends.add(new Ends(under.get(i)));
                    }
                    rig.device.release();
                    under.forEach(transfer -> PosterRig.finish(rig, transfer));

                    int failed = 0;
                    int causes = 0;
                    for (int i = 0; i < transfers; i++) {
                        assertThat(ends.get(i).count()).isEqualTo(1);
                        TransferException failure = under.get(i).failure();
                        failed += failure == null ? 0 : 1;
                        causes += failure != null && failure.blockIndex() >= 0 ? 1 : 0;
                        rig.assertTruthful(under.get(i));
                    }
                    assertThat(failed).isPositive();
                    assertThat(causes).isLessThanOrEqualTo(1);
                    assertThat(before.failure()).isNull();
                    assertThat(before.poll()).isTrue();
                }
            }
        }
    }

    /**
     * Block 1 is in two requests: the first, on one queue pair, is flushed behind the failure of
     * block 0, and the second, on the other, does its part. So the block is not untouched.
     */
    @Test
    void aBlockMovedInPartIsNeverCalledNotDone() {
        Shape shape = Shape.of(2).with(Shape.OPTIONS.withDepth(8, 2));
        try (PosterRig rig = new PosterRig(shape, 64).filled(1)) {
            TransferBatch batch = new TransferBatch();
            rig.add(batch, 0, 1000, 64);
            rig.add(batch, 100, 2000, 128);
            rig.device.failRequest(0, CompletionStatus.REMOTE_ACCESS);
            Transfer transfer = rig.write(batch);
            PosterRig.finish(rig, transfer);

            assertThat(rig.device.posted(rig.pairs.get(1))).hasSize(1);
            assertThat(failure(transfer).blockIndex()).isZero();
            assertThat(failure(transfer).outcome(1)).isEqualTo(BlockOutcome.UNKNOWN);
            rig.assertTruthful(transfer);
        }
    }

    @Test
    void aReadThatFailsIsToldAsAWriteIs() {
        try (PosterRig rig = new PosterRig(Shape.of(1))) {
            rig.device.failRequest(2, CompletionStatus.REMOTE_ACCESS);
            Transfer transfer = rig.read(rig.scattered(5, BYTES));
            PosterRig.finish(rig, transfer);

            assertThat(failure(transfer).blockIndex()).isEqualTo(2);
            assertThat(failure(transfer).outcome(1)).isEqualTo(BlockOutcome.DONE);
            assertThat(failure(transfer).outcome(3)).isEqualTo(BlockOutcome.NOT_DONE);
        }
    }

    @Test
    void aQueuePairThatFailsOnItsOwnEndsAll() {
        try (PosterRig rig = new PosterRig(Shape.of(2))) {
            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(10, BYTES));
            rig.device.failQueuePair(rig.pairs.get(1), CompletionStatus.RETRY_EXCEEDED);
            PosterRig.finish(rig, transfer);

            assertThat(failure(transfer).reason()).isEqualTo(FailureReason.PEER_LOST);
            assertThat(failure(transfer)).hasMessageContaining("RETRY_EXCEEDED");
            assertThat(rig.device.outstanding(rig.pairs.get(0))).isZero();
        }
    }

    /** A queue pair that stops while idle gives its receives back, and nothing else. */
    @Test
    void aQueuePairThatStopsWhileIdleIsNoticed() {
        try (PosterRig rig = new PosterRig(Shape.of(2))) {
            rig.device.failQueuePair(rig.pairs.get(1), CompletionStatus.FATAL);
            rig.poster.progress();

            assertThat(rig.stops).hasSize(1);
            assertThat(rig.stops.peek()).startsWith(FailureReason.PEER_LOST.name());
            assertThat(rig.poster.isOpen()).isFalse();
        }
    }

    @Test
    void failingFromOutsideGivesTheCauseToAll() {
        IllegalStateException cause = new IllegalStateException("why");
        try (PosterRig rig = new PosterRig(Shape.of(2))) {
            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(30, BYTES));

            rig.poster.fail(FailureReason.PEER_LOST, "the cable is cut", cause);
            rig.poster.fail(FailureReason.DEVICE, "a second time", null);

            assertThat(transfer.isDone()).isTrue();
            TransferException failure = failure(transfer);
            assertThat(failure.reason()).isEqualTo(FailureReason.PEER_LOST);
            assertThat(failure).hasMessageContaining("the cable is cut").hasCause(cause);
            assertThat(failure.blockIndex()).isEqualTo(-1);
            assertThat(failure.outcome(0)).isEqualTo(BlockOutcome.UNKNOWN);
            assertThat(failure.outcome(29)).isEqualTo(BlockOutcome.NOT_DONE);
            assertThat(failure.notDone()).hasSize(2);
        }
    }

    /** As when the other side learns of it first, and says goodbye. */
    @Test
    void aRequestThatHasFailedIsTheCauseThoughNobodyLookedYet() {
        try (PosterRig rig = new PosterRig(Shape.of(2))) {
            Transfer done = rig.write(rig.scattered(2, BYTES));
            rig.device.failRequest(1, CompletionStatus.REMOTE_ACCESS);
            Transfer failing = rig.write(rig.scattered(6, BYTES));

            rig.poster.fail(FailureReason.PEER_LOST, "the peer said goodbye", null);

            assertThat(done.poll()).isTrue();
            assertThat(failure(failing).reason()).isEqualTo(FailureReason.WORK_REQUEST);
            assertThat(failure(failing)).hasMessageContaining("REMOTE_ACCESS");
        }
    }

    // --- What must not keep an end from being told ---

    @Test
    void aHandleThatCannotBeMadeHoldsNothing() {
        try (PosterRig rig = new PosterRig(Shape.of(1))) {
            TransferBatch batch = rig.scattered(3, BYTES);

            assertThatNullPointerException()
                    .isThrownBy(() ->
                            rig.poster.post(
                                    Direction.WRITE, batch, rig.localMap, rig.remoteMap, null));

            assertNothingHeld(rig);
            assertThat(batch.clear().isEmpty()).isTrue();
        }
    }

    /** The message cannot name the block; all else is told, to this one and to the next. */
    @Test
    void anEndThatCannotBeDescribedIsToldAllTheSame() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1)).filled(1)) {
            rig.device.hold();
            rig.device.failRequest(1, CompletionStatus.REMOTE_ACCESS);
            TransferBatch batch = rig.scattered(3, BYTES);
            Transfer failing = rig.write(batch);
            Transfer next = rig.write(rig.scattered(3, BYTES));
            MethodHandles.privateLookupIn(TransferBatch.class, MethodHandles.lookup())
                    .findVarHandle(TransferBatch.class, "lengths", long[].class)
                    .set(batch, new long[0]);
            rig.device.release();
            PosterRig.finish(rig, failing);

            assertThat(failure(failing))
                    .hasMessageStartingWith("WRITE of 3 blocks, 48 bytes failed")
                    .hasMessageContaining("REMOTE_ACCESS");
            assertThat(failure(failing).notDone())
                    .containsExactly(
                            new BlockOutcomes.Range(1, 2, BlockOutcome.UNKNOWN),
                            new BlockOutcomes.Range(2, 3, BlockOutcome.NOT_DONE));
            assertThat(next.isDone()).isTrue();
            assertNothingHeld(rig);
        }
    }

    @Test
    void aPoolThatSomebodyElseReleasesDoesNotKeepTheEndFromBeingTold() {
        try (PosterRig rig = new PosterRig(Shape.of(1))) {
            rig.device.hold();
            Transfer first = rig.write(rig.scattered(3, BYTES));
            Transfer second = rig.write(rig.scattered(3, BYTES));
            rig.pool.release();
            rig.device.release();
            PosterRig.finish(rig, first);
            PosterRig.finish(rig, second);

            assertThat(first.poll()).isTrue();
            assertThat(second.poll()).isTrue();
        }
    }

    /** What is posted then fails, rather than the thread that made progress. */
    @Test
    void aQueuePairThatSomebodyElseClosesFailsTheTransfers() {
        Shape shape = Shape.of(1).withDeadlines(Duration.ofSeconds(30), Duration.ofMillis(50));
        try (PosterRig rig = new PosterRig(shape)) {
            rig.device.hold();
            Transfer inFlight = rig.write(rig.scattered(3, BYTES));
            rig.pairs.getFirst().close();
            Transfer transfer = rig.write(rig.scattered(3, BYTES));

            PosterRig.finish(rig, transfer);
            PosterRig.finish(rig, inFlight);
            for (Transfer failed : List.of(transfer, inFlight)) {
                assertThat(failure(failed).reason()).isEqualTo(FailureReason.DEVICE);
                assertThat(failure(failed)).hasMessageContaining("closed");
            }
            assertThat(failure(transfer).outcome(0)).isEqualTo(BlockOutcome.NOT_DONE);
            assertThat(failure(inFlight).outcome(0)).isEqualTo(BlockOutcome.UNKNOWN);
            assertNothingHeld(rig);
        }
    }

    private static void assertNothingHeld(PosterRig rig) {
        assertThatIllegalStateException()
                .isThrownBy(rig.pool::release)
                .withMessageContaining("more often than held");
    }

    /** Whoever gets round the batch's own refusal harms that transfer and no other. */
    @Test
    void aBatchThatIsChangedUnderWayFailsAlone() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1)).filled(4)) {
            rig.device.hold();
            TransferBatch changed = rig.scattered(20, BYTES);
            Transfer failing = rig.write(changed);
            TransferBatch good = rig.scattered(3, BYTES);
            Transfer sound = rig.write(good);
            // As a thread could that races with the posting; add and clear refuse.
            Arrays.fill(changed.localAddresses(), 1);
            rig.device.release();

            assertThatThrownBy(failing::await).isInstanceOf(TransferException.class);
            TransferException failure = failure(failing);
            assertThat(failure.reason()).isEqualTo(FailureReason.BATCH_CHANGED);
            assertThat(failure.notDone())
                    .as("what was posted before had been checked")
                    .containsExactly(new BlockOutcomes.Range(8, 20, BlockOutcome.NOT_DONE));
            sound.await();
            assertAllMoved(rig, good);
        }
    }

    private static TransferException failure(Transfer transfer) {
        TransferException failure = transfer.failure();
        assertThat(failure).isNotNull();
        assertThat(catchThrowableOfType(TransferException.class, transfer::poll)).isSameAs(failure);
        return failure;
    }

    private static void assertAllMoved(PosterRig rig, TransferBatch batch) {
        for (int block = 0; block < batch.size(); block++) {
            assertThat(rig.moved(batch, block)).as("block %d", block).isTrue();
        }
    }
}
