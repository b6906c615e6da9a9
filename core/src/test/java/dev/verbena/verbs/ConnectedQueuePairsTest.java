package dev.verbena.verbs;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.bindings.Errno;
import dev.verbena.verbs.WorkRequests.Operation;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Bytes arrive where they were sent, and every failure shows as what it is and where it was. */
@DeviceTest
class ConnectedQueuePairsTest {
    private final TwoQueuePairs pairs = TwoQueuePairs.open();

    @AfterEach
    void close() {
        pairs.close();
    }

    @Test
    void comesUpInOrder() {
        assertThat(pairs.near.state()).isEqualTo(QueuePairState.READY_TO_SEND);
        assertThat(pairs.near.queryState()).isEqualTo(QueuePairState.READY_TO_SEND);
        assertThat(pairs.near.number()).isNotEqualTo(pairs.far.number());
    }

    @Test
    void writesGatherPieces() {
        pairs.write(0, 100, 5000, 1000, true);
        pairs.ring.fill(
                0,
                7,
                Operation.WRITE,
                pairs.farRegion.address() + 5000,
                pairs.farRegion.remoteKey(),
                3,
                true);
        piece(0, 1, 9000, 1);
        piece(0, 2, 20_000, 12_345);

        assertThat(pairs.near.post(pairs.ring, 0, 1)).isEqualTo(1);

        assertThat(pairs.await(1)).containsExactly("7 SUCCESS");
        assertSame(100, 5000, 1000);
        assertSame(9000, 6000, 1);
        assertSame(20_000, 6001, 12_345);
        assertThat(pairs.farMemory.get(JAVA_BYTE, 4999)).isZero();
        assertThat(pairs.farMemory.get(JAVA_BYTE, 6001 + 12_345)).isZero();
    }

    @Test
    void readsScatterPieces() {
        pairs.farMemory.copyFrom(pairs.nearMemory);
        pairs.nearMemory.fill((byte) 0);
        pairs.ring.fill(
                0,
                8,
                Operation.READ,
                pairs.farRegion.address() + 3000,
                pairs.farRegion.remoteKey(),
                2,
                true);
        piece(0, 0, 50, 700);
        piece(0, 1, 40_000, 9000);

        pairs.near.post(pairs.ring, 0, 1);

        assertThat(pairs.await(1)).containsExactly("8 SUCCESS");
        assertSame(50, 3000, 700);
        assertSame(40_000, 3700, 9000);
        assertThat(pairs.nearMemory.get(JAVA_BYTE, 750)).isZero();
    }

    @Test
    void writeWithImmediateReachesAReceiveWithoutRoom() {
        try (ReceiveRequests receives = new ReceiveRequests(2, 1)) {
            receives.fill(0, 501, 0);
            receives.fill(1, 502, 0);
            pairs.far.postReceives(receives, 2);
            pairs.write(0, 0, 0, 777, true);
            pairs.ring.fill(
                    0,
                    9,
                    Operation.WRITE_WITH_IMMEDIATE,
                    pairs.farRegion.address(),
                    pairs.farRegion.remoteKey(),
                    1,
                    true);
            pairs.ring.immediate(0, 0x01020304);

            pairs.near.post(pairs.ring, 0, 1);

            boolean received = false;
            boolean sent = false;
            while (!received || !sent) {
                int count = pairs.queue.poll(pairs.completions);
                for (int i = 0; i < count; i++) {
                    assertThat(pairs.completions.status(i)).isEqualTo(CompletionStatus.SUCCESS);
                    if (pairs.completions.isReceive(i)) {
                        received = true;
                        assertThat(pairs.completions.workRequestId(i)).isEqualTo(501);
                        assertThat(pairs.completions.hasImmediate(i)).isTrue();
                        assertThat(pairs.completions.immediate(i)).isEqualTo(0x01020304);
                        assertThat(pairs.completions.byteLength(i)).isEqualTo(777);
                        assertThat(pairs.completions.queuePairNumber(i))
                                .isEqualTo(pairs.far.number());
                        assertSame(0, 0, 777);
                    } else {
                        sent = true;
                        assertThat(pairs.completions.workRequestId(i)).isEqualTo(9);
                    }
                }
            }
        }
    }

    @Test
    void onlySignalledWritesCompleteAndAllArrive() {
        for (int slot = 0; slot < 32; slot++) {
            pairs.write(slot, slot * 1000, slot * 1000, 1000, slot == 31);
        }

        assertThat(pairs.near.post(pairs.ring, 0, 32)).isEqualTo(32);

        assertThat(pairs.await(1)).containsExactly("31 SUCCESS");
        assertThat(pairs.queue.poll(pairs.completions)).isZero();
        assertSame(0, 0, 32_000);
    }

    @Test
    void badRemoteKeyFailsItsRequestAndFlushesThoseBehind() {
        for (int slot = 0; slot < 5; slot++) {
            pairs.write(slot, slot * 1000, slot * 1000, 1000, slot == 4);
        }
        pairs.ring.fill(
                2,
                2,
                Operation.WRITE,
                pairs.farRegion.address() + 2000,
                pairs.farRegion.remoteKey() ^ 0x5500,
                1,
                false);

        pairs.near.post(pairs.ring, 0, 5);

        assertThat(pairs.await(3)).containsExactly("2 REMOTE_ACCESS", "3 FLUSHED", "4 FLUSHED");
        assertThat(pairs.near.state()).as("as last set").isEqualTo(QueuePairState.READY_TO_SEND);
        assertThat(pairs.near.queryState()).isEqualTo(QueuePairState.ERROR);
        assertSame(0, 0, 2000);
        assertThat(pairs.farMemory.asSlice(2000, 3000).toArray(JAVA_BYTE)).containsOnly((byte) 0);
    }

    @Test
    void memoryPastTheEndAndWithoutAccessIsRefusedByThePeer() {
        pairs.write(0, 0, TwoQueuePairs.MEMORY_BYTES - 10, 11, true);
        pairs.near.post(pairs.ring, 0, 1);
        assertThat(pairs.await(1)).containsExactly("0 REMOTE_ACCESS");

        reconnect();
        pairs.ring.fill(
                0,
                1,
                Operation.WRITE,
                pairs.nearRegion.address() + 1000,
                pairs.nearRegion.remoteKey(),
                1,
                true);
        pairs.near.post(pairs.ring, 0, 1);
        assertThat(pairs.await(1)).as("no remote access").containsExactly("1 REMOTE_ACCESS");
    }

    @Test
    void postToAFailedQueuePairIsFlushedUntilItIsBroughtUpAgain() {
        pairs.near.stop();
        pairs.write(3, 0, 0, 100, false);

        assertThat(pairs.near.post(pairs.ring, 3, 1)).isEqualTo(1);

        assertThat(pairs.await(1)).containsExactly("3 FLUSHED");
        reconnect();
        pairs.write(4, 0, 0, 100, true);
        pairs.near.post(pairs.ring, 4, 1);
        assertThat(pairs.await(1)).containsExactly("4 SUCCESS");
        assertSame(0, 0, 100);
    }

    @Test
    void writeWithImmediateWithoutReceiveSaysSo() {
        pairs.write(0, 0, 0, 100, true);
        pairs.ring.fill(
                0,
                1,
                Operation.WRITE_WITH_IMMEDIATE,
                pairs.farRegion.address(),
                pairs.farRegion.remoteKey(),
                1,
                true);

        pairs.near.post(pairs.ring, 0, 1);

        assertThat(pairs.await(1)).containsExactly("1 RECEIVER_NOT_READY");
    }

    @Test
    void peerThatIsGoneIsNoticed() {
        pairs.far.close();
        pairs.write(0, 0, 0, 100, false);
        pairs.write(1, 0, 0, 100, false);

        pairs.near.post(pairs.ring, 0, 2);

        assertThat(pairs.await(2)).containsExactly("0 RETRY_EXCEEDED", "1 FLUSHED");
    }

    @Test
    void stopFlushesAllThatAPeerDoesNotAnswer() {
        pairs.far.close();
        for (int slot = 0; slot < 10; slot++) {
            pairs.write(slot, 0, 0, 100, false);
        }
        pairs.near.post(pairs.ring, 0, 10);

        pairs.near.stop();

        List<String> ends = pairs.await(10);
        for (int slot = 0; slot < 10; slot++) {
            assertThat(ends.get(slot)).startsWith(slot + " ").doesNotContain("SUCCESS");
        }
    }

    @Test
    void chainLongerThanTheQueueIsTakenInPart() {
        try (TwoQueuePairs small = new TwoQueuePairs(new QueuePairOptions(16, 1, 1, 1))) {
            for (int slot = 0; slot < 64; slot++) {
                small.write(slot, slot * 100, slot * 100, 100, true);
            }

            int accepted = small.near.post(small.ring, 0, 64);

            // A device may grant more than was asked for: soft-RoCE makes 31 of 16.
            assertThat(accepted).isBetween(16, 63);
            assertThat(small.near.postErrno()).isEqualTo(Errno.ENOMEM);
            List<String> expected = new ArrayList<>();
            for (int slot = 0; slot < accepted; slot++) {
                expected.add(slot + " SUCCESS");
            }
            assertThat(small.await(accepted)).isEqualTo(expected);
            assertThat(small.near.post(small.ring, accepted, 64 - accepted)).isPositive();
        }
    }

    @Test
    void requestWithTooManyPiecesIsRefusedAndThoseBeforeItAreDone() {
        try (WorkRequests wide = new WorkRequests(4, 16)) {
            for (int slot = 0; slot < 4; slot++) {
                wide.fill(
                        slot,
                        slot,
                        Operation.WRITE,
                        pairs.farRegion.address(),
                        pairs.farRegion.remoteKey(),
                        slot == 2 ? 16 : 1,
                        true);
                for (int entry = 0; entry < 16; entry++) {
                    wide.piece(
                            slot,
                            entry,
                            pairs.nearRegion.address(),
                            10,
                            pairs.nearRegion.localKey());
                }
            }

            int accepted = pairs.near.post(wide, 0, 4);

            assertThat(accepted).isEqualTo(2);
            assertThat(pairs.near.postErrno()).isEqualTo(Errno.EINVAL);
            assertThat(pairs.await(2)).containsExactly("0 SUCCESS", "1 SUCCESS");
        }
    }

    private void reconnect() {
        for (QueuePair pair : new QueuePair[] {pairs.near, pairs.far}) {
            pair.modify(QueuePairState.RESET, new QueuePairAttributes());
        }
        pairs.connect();
    }

    private void piece(int slot, int entry, long offset, int lengthBytes) {
        pairs.ring.piece(
                slot,
                entry,
                pairs.nearRegion.address() + offset,
                lengthBytes,
                pairs.nearRegion.localKey());
    }

    private void assertSame(long nearOffset, long farOffset, long lengthBytes) {
        assertThat(
                        MemorySegment.mismatch(
                                pairs.nearMemory,
                                nearOffset,
                                nearOffset + lengthBytes,
                                pairs.farMemory,
                                farOffset,
                                farOffset + lengthBytes))
                .isEqualTo(-1);
    }
}
