package dev.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.bindings.Errno;
import dev.verbena.bindings.testing.AllocationCounter;
import dev.verbena.verbs.VerbsDouble.PostedRequest;
import dev.verbena.verbs.WorkRequests.Operation;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A post hands exactly its slots to the driver, says exactly how many were taken, and leaves the
 * ring whole whatever happened; a poll brings what the driver put there. Nothing of it allocates,
 * and no order of closing lets the driver see freed memory.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class PostingTest {
    private static final int CAPACITY = 8;
    private static final int MAX_SGE = 2;

    private final VerbsDouble device = VerbsDouble.create();
    private final CompletionQueue queue = device.createCompletionQueue(64);
    private final QueuePair pair =
            device.createQueuePair(new QueuePairOptions(32, MAX_SGE, 8, 1), queue);
    private final WorkRequests ring = new WorkRequests(CAPACITY, MAX_SGE);
    private final WorkCompletions completions = new WorkCompletions(16);

    @AfterEach
    void close() {
        pair.close();
        queue.close();
        ring.close();
        completions.close();
        device.close();
    }

    @Test
    void postsAChainWithOneDoorbell() {
        fill(0, 5);

        assertThat(pair.post(ring, 0, 5)).isEqualTo(5);

        assertThat(device.doorbells()).isEqualTo(1);
        assertThat(postedIds()).containsExactly(0, 1, 2, 3, 4);
        assertThat(pair.postErrno()).isZero();
    }

    @Test
    void driverSeesAllThatWasFilledIn() {
        ring.fill(0, 77, Operation.WRITE_WITH_IMMEDIATE, -0x1000, 0xabcd, 2, true);
        ring.piece(0, 0, 0x5000, 100, 8);
        ring.piece(0, 1, 0x7000, -1, 9);
        ring.immediate(0, 0x01020304);

        pair.post(ring, 0, 1);

        assertThat(device.posted())
                .containsExactly(
                        new PostedRequest(
                                pair.number(),
                                77,
                                1,
                                2,
                                -0x1000,
                                0xabcd,
                                0x01020304,
                                List.of(
                                        new VerbsDouble.Piece(0x5000, 100, 8),
                                        new VerbsDouble.Piece(0x7000, -1, 9))));
    }

    @Test
    void chainsMayPassTheEndOfTheRing() {
        for (int first = 0; first < CAPACITY; first++) {
            for (int count = 1; count <= CAPACITY; count++) {
                device.forgetPosted();
                fill(0, CAPACITY);
                int start = first;

                assertThat(pair.post(ring, first, count)).isEqualTo(count);

                long[] expected =
                        LongStream.range(0, count).map(i -> (start + i) % CAPACITY).toArray();
                assertThat(postedIds()).containsExactly(expected);
                drain();
            }
        }
    }

    @Test
    void tellsHowManyWereTakenWhenTheDriverRefusesMidChain() {
        for (int first = 0; first < CAPACITY; first++) {
            for (int count = 1; count <= CAPACITY; count++) {
                for (int taken = 0; taken < count; taken++) {
                    device.forgetPosted();
                    device.acceptOnly(taken, Errno.ENOMEM);
                    fill(0, CAPACITY);

                    assertThat(pair.post(ring, first, count)).isEqualTo(taken);

                    assertThat(pair.postErrno()).isEqualTo(Errno.ENOMEM);
                    assertThat(device.posted()).hasSize(taken);
                    drain();
                }
            }
        }
    }

    @Test
    void ringIsWholeAgainAfterARefusal() {
        device.acceptOnly(2, Errno.ENOMEM);
        fill(0, CAPACITY);
        pair.post(ring, 0, 5);
        device.forgetPosted();

        assertThat(pair.post(ring, 2, CAPACITY)).isEqualTo(CAPACITY);

        assertThat(postedIds()).containsExactly(2, 3, 4, 5, 6, 7, 0, 1);
        assertThat(pair.postErrno()).isZero();
    }

    @Test
    void fullQueueTakesWhatFits() {
        device.hold();
        fill(0, CAPACITY);
        for (int i = 0; i < 3; i++) {
            assertThat(pair.post(ring, 0, CAPACITY)).isEqualTo(CAPACITY);
        }
        pair.post(ring, 0, 5);

        assertThat(pair.post(ring, 0, 6)).isEqualTo(3);
        assertThat(pair.postErrno()).isEqualTo(Errno.ENOMEM);
        assertThat(pair.post(ring, 0, 1)).isZero();
    }

    @Test
    void doesNotGuessWhatASilentDriverTook() {
        device.refuseSilently(2, Errno.EINVAL);
        fill(0, 4);

        assertThat(pair.post(ring, 0, 4)).isEqualTo(QueuePair.ACCEPTED_UNKNOWN);
        assertThat(pair.postErrno()).isEqualTo(Errno.EINVAL);
    }

    /** Else the pointer of an earlier refusal would be read as an answer to this one. */
    @Test
    void doesNotTakeAnOldAnswerForANewOne() {
        fill(0, 4);
        device.acceptOnly(1, Errno.ENOMEM);
        assertThat(pair.post(ring, 0, 4)).isEqualTo(1);

        device.refuseSilently(0, Errno.EIO);
        assertThat(pair.post(ring, 0, 4)).isEqualTo(QueuePair.ACCEPTED_UNKNOWN);
    }

    @Test
    void refusesCountsAndSlotsOutOfRange() {
        for (int count : new int[] {0, -1, CAPACITY + 1, Integer.MAX_VALUE}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> pair.post(ring, 0, count))
                    .withMessageContaining("1.." + CAPACITY);
        }
        for (int slot : new int[] {-1, CAPACITY, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
            assertThatThrownBy(() -> pair.post(ring, slot, 1))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
        assertThat(device.doorbells()).isZero();

        fill(0, CAPACITY);
        assertThat(pair.post(ring, 0, CAPACITY)).isEqualTo(CAPACITY);
        assertThat(postedIds()).hasSize(CAPACITY);
    }

    @Test
    void refusesAClosedRingAndStaysUsable() {
        WorkRequests closed = new WorkRequests(CAPACITY, MAX_SGE);
        closed.close();

        assertThatIllegalStateException()
                .isThrownBy(() -> pair.post(closed, 0, 1))
                .withMessageContaining("closed");

        fill(0, 1);
        assertThat(pair.post(ring, 0, 1)).isEqualTo(1);
        pair.close();
    }

    @Test
    void refusesPostsOnceTheQueuePairIsClosed() {
        pair.close();

        assertThatIllegalStateException().isThrownBy(() -> pair.post(ring, 0, 1));
        assertThat(device.doorbells()).isZero();
    }

    @Test
    void ringIsNotFreedUnderAPost() throws InterruptedException {
        closesOnlyAfterThePost(ring::close);
    }

    @Test
    void queuePairIsNotDestroyedUnderAPost() throws InterruptedException {
        closesOnlyAfterThePost(pair::close);
    }

    private void closesOnlyAfterThePost(Runnable close) throws InterruptedException {
        CountDownLatch posting = new CountDownLatch(1);
        CountDownLatch mayGoOn = new CountDownLatch(1);
        AtomicBoolean closed = new AtomicBoolean();
        AtomicBoolean closedUnderThePost = new AtomicBoolean();
        device.whilePosting(() -> {
            posting.countDown();
            LifetimeTest.await(mayGoOn);
            closedUnderThePost.set(closed.get());
        });
        fill(0, CAPACITY);
        Thread poster = Thread.ofPlatform().start(() -> pair.post(ring, 0, CAPACITY));
        posting.await();

        Thread closer =
                Thread.ofPlatform()
                        .start(() -> {
                            close.run();
                            closed.set(true);
                        });
        LifetimeTest.awaitParked(closer);
        mayGoOn.countDown();
        poster.join();
        closer.join();

        assertThat(closedUnderThePost).isFalse();
        assertThat(postedIds()).hasSize(CAPACITY);
    }

    @Test
    void roomForCompletionsIsNotFreedUnderAPoll() throws InterruptedException {
        closesOnlyAfterThePoll(completions::close);
    }

    @Test
    void completionQueueIsNotDestroyedUnderAPoll() throws InterruptedException {
        closesOnlyAfterThePoll(queue::close);
    }

    private void closesOnlyAfterThePoll(Runnable close) throws InterruptedException {
        CountDownLatch polling = new CountDownLatch(1);
        CountDownLatch mayGoOn = new CountDownLatch(1);
        AtomicBoolean closed = new AtomicBoolean();
        AtomicBoolean closedUnderThePoll = new AtomicBoolean();
        device.whilePolling(() -> {
            polling.countDown();
            LifetimeTest.await(mayGoOn);
            closedUnderThePoll.set(closed.get());
        });
        fill(0, 1);
        pair.post(ring, 0, 1);
        Thread poller = Thread.ofPlatform().start(() -> queue.poll(completions));
        polling.await();

        Thread closer =
                Thread.ofPlatform()
                        .start(() -> {
                            close.run();
                            closed.set(true);
                        });
        LifetimeTest.awaitParked(closer);
        mayGoOn.countDown();
        poller.join();
        closer.join();

        assertThat(closedUnderThePoll).isFalse();
        assertThat(device.pending(queue)).isZero();
    }

    @Test
    void refusesToPollIntoClosedRoom() {
        completions.close();

        assertThatIllegalStateException()
                .isThrownBy(() -> queue.poll(completions))
                .withMessageContaining("closed");
        queue.close();
    }

    @Test
    void pollBringsWhatTheDriverPutThere() {
        device.failRequest(2, CompletionStatus.REMOTE_ACCESS);
        fill(0, 4);
        pair.post(ring, 0, 4);

        assertThat(queue.poll(completions)).isEqualTo(4);

        assertThat(completions.count()).isEqualTo(4);
        for (int i = 0; i < 4; i++) {
            assertThat(completions.workRequestId(i)).isEqualTo(i);
            assertThat(completions.queuePairNumber(i)).isEqualTo(pair.number());
        }
        assertThat(completions.status(1)).isEqualTo(CompletionStatus.SUCCESS);
        assertThat(completions.status(2)).isEqualTo(CompletionStatus.REMOTE_ACCESS);
        assertThat(completions.statusNumber(2)).isEqualTo(10);
        assertThat(completions.vendorError(2)).isEqualTo(0x10a);
        assertThat(completions.status(3)).isEqualTo(CompletionStatus.FLUSHED);
        assertThat(completions.isReceive(0)).isFalse();
        assertThat(completions.hasImmediate(0)).isFalse();
    }

    @Test
    void pollBringsAtMostWhatThereIsRoomFor() {
        try (WorkCompletions two = new WorkCompletions(2)) {
            fill(0, 5);
            pair.post(ring, 0, 5);

            assertThat(queue.poll(two)).isEqualTo(2);
            assertThat(two.workRequestId(1)).isEqualTo(1);
            assertThat(queue.poll(two)).isEqualTo(2);
            assertThat(two.workRequestId(0)).isEqualTo(2);
            assertThat(queue.poll(two)).isEqualTo(1);
            assertThat(two.workRequestId(0)).isEqualTo(4);
            assertThatThrownBy(() -> two.workRequestId(1))
                    .as("the entry of an earlier poll")
                    .isInstanceOf(IndexOutOfBoundsException.class);
            assertThat(queue.poll(two)).isZero();
            assertThat(two.count()).isZero();
        }
    }

    @Test
    void failedPollThrowsAndForgetsWhatWasThere() {
        fill(0, 2);
        pair.post(ring, 0, 2);
        queue.poll(completions);
        device.failPolls(1);

        assertThatExceptionOfType(VerbsException.class)
                .isThrownBy(() -> queue.poll(completions))
                .withMessageContaining("ibv_poll_cq failed")
                .withMessageContaining("overflowed");

        assertThat(completions.count()).isZero();
        assertThat(queue.poll(completions)).isZero();
    }

    @Test
    void receivesComeBackWithTheirImmediate() {
        try (ReceiveRequests receives = new ReceiveRequests(4, 0)) {
            for (int slot = 0; slot < 4; slot++) {
                receives.fill(slot, 100 + slot, 0);
            }
            pair.postReceives(receives, 3);

            assertThat(device.deliverImmediate(pair, 0x01020304, 4096)).isTrue();
            assertThat(device.deliverImmediate(pair, -1, 0)).isTrue();
            assertThat(device.deliverImmediate(pair, 3, 0)).isTrue();
            assertThat(device.deliverImmediate(pair, 4, 0)).as("only three").isFalse();

            assertThat(queue.poll(completions)).isEqualTo(3);
            assertThat(completions.workRequestId(0)).isEqualTo(100);
            assertThat(completions.isReceive(0)).isTrue();
            assertThat(completions.hasImmediate(0)).isTrue();
            assertThat(completions.immediate(0)).isEqualTo(0x01020304);
            assertThat(completions.byteLength(0)).isEqualTo(4096);
            assertThat(completions.immediate(1)).isEqualTo(-1);
            assertThat(completions.workRequestId(2)).isEqualTo(102);
        }
    }

    @Test
    void receiveChainIsWholeAfterEveryPost() {
        try (ReceiveRequests receives = new ReceiveRequests(4, 1)) {
            for (int count : new int[] {1, 4, 2, 4}) {
                for (int slot = 0; slot < 4; slot++) {
                    receives.fill(slot, slot, 1);
                    receives.piece(slot, 0, 0x1000, 64, 5);
                }
                pair.postReceives(receives, count);
                for (int i = 0; i < count; i++) {
                    assertThat(device.deliverImmediate(pair, i, 0)).isTrue();
                }
                assertThat(device.deliverImmediate(pair, 0, 0)).isFalse();
            }
        }
    }

    @Test
    void fullReceiveQueueThrows() {
        try (ReceiveRequests receives = new ReceiveRequests(6, 0)) {
            pair.postReceives(receives, 6);

            assertThatExceptionOfType(VerbsException.class)
                    .isThrownBy(() -> pair.postReceives(receives, 6))
                    .withMessageContaining("ibv_post_recv failed: ENOMEM (12)")
                    .withMessageContaining("count=6");
        }
    }

    @Test
    void refusesReceivesOutOfRangeAndClosedChains() {
        ReceiveRequests receives = new ReceiveRequests(2, 1);
        for (int count : new int[] {0, -1, 3}) {
            assertThatThrownBy(() -> pair.postReceives(receives, count))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
        assertThatThrownBy(() -> receives.fill(0, 1, 2))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> receives.fill(2, 1, 1))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> receives.piece(0, 1, 1, 1, 1))
                .isInstanceOf(IndexOutOfBoundsException.class);
        receives.close();
        receives.close();
        assertThatIllegalStateException().isThrownBy(() -> pair.postReceives(receives, 1));
        pair.close();
    }

    @Test
    void stopFlushesWhatIsOutstanding() {
        device.hold();
        fill(0, 3);
        pair.post(ring, 0, 3);
        assertThat(queue.poll(completions)).isZero();

        pair.stop();

        assertThat(pair.state()).isEqualTo(QueuePairState.ERROR);
        assertThat(queue.poll(completions)).isEqualTo(3);
        for (int i = 0; i < 3; i++) {
            assertThat(completions.status(i)).isEqualTo(CompletionStatus.FLUSHED);
        }
        pair.stop();
        assertThat(queue.poll(completions)).isZero();
    }

    @Test
    void refusedStopTellsWhyAndLeavesTheState() {
        device.failModify(Errno.EIO);

        assertThatExceptionOfType(VerbsException.class)
                .isThrownBy(pair::stop)
                .withMessageContaining("ibv_modify_qp failed: EIO (5)")
                .withMessageContaining("READY_TO_SEND to ERROR");

        assertThat(pair.state()).isEqualTo(QueuePairState.READY_TO_SEND);
        pair.stop();
        assertThat(pair.state()).isEqualTo(QueuePairState.ERROR);
    }

    @Test
    void queueWithoutChannelCannotNotify() {
        assertThatIllegalStateException()
                .isThrownBy(queue::requestNotify)
                .withMessageContaining("without a channel");
    }

    @Test
    void fillingPostingAndPollingAllocateNothing() {
        device.recordPosts(false);

        long bytes =
                AllocationCounter.bytesOnceWarm(
                        2_000,
                        0,
                        () -> {
                            fill(0, CAPACITY);
                            if (pair.post(ring, 3, CAPACITY) != CAPACITY
                                    || queue.poll(completions) != CAPACITY) {
                                throw new AssertionError();
                            }
                            for (int i = 0; i < CAPACITY; i++) {
                                if (completions.status(i) != CompletionStatus.SUCCESS) {
                                    throw new AssertionError();
                                }
                            }
                        });

        assertThat(bytes).isZero();
    }

    private void fill(int first, int count) {
        for (int slot = first; slot < first + count; slot++) {
            ring.fill(slot, slot, Operation.WRITE, 0x1000 + slot, 7, 1, true);
            ring.piece(slot, 0, 0x2000 + slot, 64, 8);
        }
    }

    private void drain() {
        while (queue.poll(completions) > 0) {
            // Polling alone makes room in the send queue again.
        }
    }

    private long[] postedIds() {
        return device.posted().stream().mapToLong(PostedRequest::workRequestId).toArray();
    }
}
