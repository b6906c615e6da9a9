package dev.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.bindings.Errno;
import dev.verbena.verbs.WorkRequests.Operation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The double behaves as its description says, since other tests take it for a device. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class VerbsDoubleTest {
    private final VerbsDouble device = VerbsDouble.create();
    private final CompletionQueue queue = device.createCompletionQueue(16);
    private final QueuePair pair = device.createQueuePair(new QueuePairOptions(8, 2, 4, 1), queue);
    private final WorkRequests ring = new WorkRequests(8, 4);
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
    void successCompletesOnlyWhenSignalled() {
        fill(0, 1, false);
        fill(1, 2, true);
        fill(2, 3, false);

        pair.post(ring, 0, 3);

        assertThat(poll()).containsExactly("2 SUCCESS");
        assertThat(device.outstanding(pair)).isZero();
    }

    @Test
    void failureCompletesAndFlushesAllBehindIt() {
        device.failRequest(1, CompletionStatus.REMOTE_ACCESS);
        for (int slot = 0; slot < 4; slot++) {
            fill(slot, slot, false);
        }

        pair.post(ring, 0, 4);

        assertThat(poll()).containsExactly("1 REMOTE_ACCESS", "2 FLUSHED", "3 FLUSHED");
        pair.post(ring, 0, 1);
        assertThat(poll()).as("posted later").containsExactly("0 FLUSHED");
    }

    @Test
    void failureStaysWithItsQueuePair() {
        QueuePair other = device.createQueuePair(new QueuePairOptions(8, 2, 0, 0), queue);
        device.failRequest(0, CompletionStatus.RETRY_EXCEEDED);
        fill(0, 1, true);

        pair.post(ring, 0, 1);
        other.post(ring, 0, 1);

        assertThat(poll()).containsExactly("1 RETRY_EXCEEDED", "1 SUCCESS");
        assertThat(device.posted(other)).hasSize(1);
        other.close();
    }

    @Test
    void worksAgainOnceResetAndBroughtUp() {
        device.failQueuePair(pair, CompletionStatus.RETRY_EXCEEDED);
        fill(0, 1, true);
        pair.modify(QueuePairState.RESET, new QueuePairAttributes());
        assertThat(pair.post(ring, 0, 1)).isZero();
        assertThat(pair.postErrno()).isEqualTo(Errno.EINVAL);

        bringUp();

        assertThat(pair.post(ring, 0, 1)).isEqualTo(1);
        assertThat(poll()).containsExactly("1 SUCCESS");
    }

    @Test
    void resetForgetsWhatIsOutstanding() {
        device.hold();
        fill(0, 1, true);
        pair.post(ring, 0, 1);

        pair.modify(QueuePairState.RESET, new QueuePairAttributes());

        assertThat(device.outstanding(pair)).isZero();
        assertThat(poll()).isEmpty();
    }

    @Test
    void heldRequestsAreCarriedOutInOrderWhenReleased() {
        QueuePair other = device.createQueuePair(new QueuePairOptions(8, 2, 0, 0), queue);
        device.hold();
        fill(0, 1, true);
        fill(1, 2, true);
        pair.post(ring, 0, 1);
        other.post(ring, 1, 1);
        pair.post(ring, 0, 1);
        assertThat(poll()).isEmpty();
        assertThat(device.outstanding(pair)).isEqualTo(2);

        assertThat(device.release(2)).isEqualTo(2);
        assertThat(poll()).containsExactly("1 SUCCESS", "2 SUCCESS");
        device.release();
        assertThat(poll()).containsExactly("1 SUCCESS");
        pair.post(ring, 0, 1);
        assertThat(poll()).containsExactly("1 SUCCESS");
        other.close();
    }

    @Test
    void failingQueuePairFailsTheOldestOutstanding() {
        device.hold();
        fill(0, 1, false);
        fill(1, 2, true);
        pair.post(ring, 0, 2);

        device.failQueuePair(pair, CompletionStatus.RETRY_EXCEEDED);

        assertThat(poll()).containsExactly("1 RETRY_EXCEEDED", "2 FLUSHED");
    }

    @Test
    void lostCompletionsNeverCome() {
        device.loseCompletions(true);
        fill(0, 1, true);
        pair.post(ring, 0, 1);
        pair.stop();

        assertThat(poll()).isEmpty();
        assertThat(device.accepted()).isEqualTo(1);
    }

    @Test
    void sendQueueHasRoomAgainOnlyOncePolled() {
        for (int slot = 0; slot < 8; slot++) {
            fill(slot, slot, slot == 5);
        }
        assertThat(pair.post(ring, 0, 8)).isEqualTo(8);
        assertThat(pair.post(ring, 0, 1)).isZero();
        assertThat(pair.postErrno()).isEqualTo(Errno.ENOMEM);

        assertThat(poll()).containsExactly("5 SUCCESS");

        assertThat(pair.post(ring, 0, 7)).as("0 to 5 are retired").isEqualTo(6);
    }

    @Test
    void refusesMorePiecesThanTheQueuePairHas() {
        fill(0, 1, true);
        ring.fill(1, 2, Operation.WRITE, 0, 0, 3, true);

        assertThat(pair.post(ring, 0, 2)).isEqualTo(1);
        assertThat(pair.postErrno()).isEqualTo(Errno.EINVAL);
    }

    @Test
    void completionQueueThatOverflowsFails() {
        CompletionQueue small = device.createCompletionQueue(2);
        QueuePair other = device.createQueuePair(new QueuePairOptions(8, 2, 0, 0), small);
        for (int slot = 0; slot < 3; slot++) {
            fill(slot, slot, true);
        }
        other.post(ring, 0, 3);

        assertThat(device.overflowed()).isTrue();
        assertThatExceptionOfType(VerbsException.class).isThrownBy(() -> small.poll(completions));
        other.close();
        small.close();
    }

    @Test
    void copiesBytesBothWaysOnceMemoryIsDeclared() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment local = arena.allocate(64);
            MemorySegment remote = arena.allocate(64);
            device.declare(local, 1, 2);
            device.declare(remote, 3, 4);
            for (int i = 0; i < 64; i++) {
                local.set(ValueLayout.JAVA_BYTE, i, (byte) i);
            }

            ring.fill(0, 1, Operation.WRITE, remote.address() + 8, 4, 2, true);
            ring.piece(0, 0, local.address() + 16, 4, 1);
            ring.piece(0, 1, local.address() + 32, 2, 1);
            ring.fill(1, 2, Operation.READ, remote.address() + 8, 4, 2, true);
            ring.piece(1, 0, local.address(), 2, 1);
            ring.piece(1, 1, local.address() + 60, 4, 1);
            pair.post(ring, 0, 2);

            assertThat(poll()).containsExactly("1 SUCCESS", "2 SUCCESS");
            assertThat(remote.asSlice(8, 6).toArray(ValueLayout.JAVA_BYTE))
                    .containsExactly(16, 17, 18, 19, 32, 33);
            assertThat(local.asSlice(0, 2).toArray(ValueLayout.JAVA_BYTE)).containsExactly(16, 17);
            assertThat(local.asSlice(60, 4).toArray(ValueLayout.JAVA_BYTE))
                    .containsExactly(18, 19, 32, 33);
        }
    }

    @Test
    void refusesMemoryThatIsNotDeclared() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(64);
            device.declare(memory, 1, 2);
            long[][] cases = {
                {memory.address() + 1, 1, memory.address(), 2},
                {memory.address(), 9, memory.address(), 2},
                {memory.address(), 1, memory.address() + 1, 2},
                {memory.address(), 1, memory.address(), 9},
            };
            List<String> ends = new ArrayList<>();
            for (long[] c : cases) {
                ring.fill(0, 1, Operation.WRITE, c[2], (int) c[3], 1, true);
                ring.piece(0, 0, c[0], 64, (int) c[1]);
                pair.post(ring, 0, 1);
                ends.addAll(poll());
                pair.modify(QueuePairState.RESET, new QueuePairAttributes());
                bringUp();
            }

            assertThat(ends)
                    .containsExactly(
                            "1 LOCAL_PROTECTION",
                            "1 LOCAL_PROTECTION",
                            "1 REMOTE_ACCESS",
                            "1 REMOTE_ACCESS");
        }
    }

    @Test
    void stopFlushesReceivesToo() {
        try (ReceiveRequests receives = new ReceiveRequests(2, 0)) {
            receives.fill(0, 11, 0);
            receives.fill(1, 12, 0);
            pair.postReceives(receives, 2);

            pair.stop();

            assertThat(poll()).containsExactly("11 FLUSHED", "12 FLUSHED");
        }
    }

    @Test
    void tellsAtTheEndWhatBrokeInsideIt() {
        VerbsDouble broken = VerbsDouble.create();
        CompletionQueue itsQueue = broken.createCompletionQueue(1);
        broken.whilePolling(() -> {
            throw new IllegalStateException("in the driver");
        });
        assertThatThrownBy(() -> itsQueue.poll(completions)).isInstanceOf(VerbsException.class);
        itsQueue.close();

        assertThatThrownBy(broken::close)
                .isInstanceOf(AssertionError.class)
                .hasRootCauseMessage("in the driver");
    }

    @Test
    void closedQueuesAreRefusedByTheObjectsThemselves() {
        queue.close();

        assertThatIllegalStateException().isThrownBy(() -> queue.poll(completions));
    }

    private void bringUp() {
        pair.initialize(1, EnumSet.of(Access.REMOTE_WRITE));
        pair.modify(
                QueuePairState.READY_TO_RECEIVE,
                new QueuePairAttributes()
                        .set(QueuePairAttribute.PATH_MTU, 1024)
                        .set(QueuePairAttribute.PEER_QUEUE_PAIR, 1)
                        .set(QueuePairAttribute.RECEIVE_PSN, 0)
                        .set(QueuePairAttribute.READS_AS_RESPONDER, 1)
                        .set(QueuePairAttribute.MIN_RNR_TIMER, 12)
                        .destination(
                                new Destination(new Gid.Address(new byte[16]), 1, 0, 1, 64, 0, 0)));
        pair.modify(
                QueuePairState.READY_TO_SEND,
                new QueuePairAttributes()
                        .set(QueuePairAttribute.TIMEOUT, 14)
                        .set(QueuePairAttribute.RETRY_COUNT, 6)
                        .set(QueuePairAttribute.RNR_RETRY, 6)
                        .set(QueuePairAttribute.SEND_PSN, 0)
                        .set(QueuePairAttribute.READS_AS_REQUESTER, 1));
    }

    private void fill(int slot, long workRequestId, boolean signaled) {
        ring.fill(slot, workRequestId, Operation.WRITE, 0x1000, 7, 1, signaled);
        ring.piece(slot, 0, 0x2000, 64, 8);
    }

    private List<String> poll() {
        List<String> ends = new ArrayList<>();
        int count = queue.poll(completions);
        for (int i = 0; i < count; i++) {
            ends.add(completions.workRequestId(i) + " " + completions.status(i));
        }
        return ends;
    }
}
