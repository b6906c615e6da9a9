package dev.verbena.tcp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.bindings.Errno;
import dev.verbena.tcp.LaneSide.Done;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.Lifetime;
import dev.verbena.verbs.VerbsException;
import dev.verbena.verbs.WorkRequests;
import dev.verbena.verbs.WorkRequests.Operation;
import java.lang.foreign.MemorySegment;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A lane keeps the promises of a reliable connected queue pair, as {@code Endpoint} states them.
 * Lengths lie on both sides of where payload goes another way: 2 KiB when sent, 16 KiB when
 * received.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class TcpLaneTest {
    private static final int LARGE = 1 << 20;

    private long openBefore;

    @BeforeEach
    void count() {
        openBefore = Lifetime.openCount();
    }

    @AfterEach
    void nothingStaysOpen() {
        assertThat(Lifetime.openCount()).isEqualTo(openBefore);
    }

    @Test
    void movesBytesOfEveryLengthBothWays() throws Exception {
        LaneSide[] sides = LaneSide.pair(LARGE);
        try (LaneSide near = sides[0].filled(1);
                LaneSide far = sides[1]) {
            for (int length :
                    new int[] {1, 7, 2047, 2048, 2049, 16383, 16384, 16385, 65536, 70001, LARGE}) {
                near.write(0, far, length);
                assertThat(near.lane.post(near.ring, 0, 1)).isEqualTo(1);
                assertThat(near.await(1)).containsExactly(Done.of(0, CompletionStatus.SUCCESS));
                assertSame(near, 0, far, 0, length);

                far.filled(length);
                near.fill(1, Operation.READ, 0, far, 0, length, true);
                near.lane.post(near.ring, 1, 1);
                assertThat(near.await(1)).containsExactly(Done.of(1, CompletionStatus.SUCCESS));
                assertSame(near, 0, far, 0, length);
            }
        }
    }

    /** Long and short pieces in one request, over a ring's end, whatever the order. */
    @Test
    void gathersAndScattersPieces() throws Exception {
        LaneSide[] sides = LaneSide.pair(LARGE);
        try (LaneSide near = sides[0].filled(2);
                LaneSide far = sides[1]) {
            Random random = new Random(3);
            for (int round = 0; round < 200; round++) {
                Operation operation = round % 2 == 0 ? Operation.WRITE : Operation.READ;
                int slot = round % LaneSide.DEPTH;
                int pieces = 1 + random.nextInt(LaneSide.MAX_SGE);
                near.ring.fill(
                        slot,
                        slot,
                        operation,
                        far.memory.address() + 5,
                        far.region.remoteKey(),
                        pieces,
                        true);
                int[] lengths = new int[pieces];
                for (int piece = 0; piece < pieces; piece++) {
                    lengths[piece] = 1 + random.nextInt(random.nextBoolean() ? 3000 : 40_000);
                    near.ring.piece(
                            slot,
                            piece,
                            near.memory.address() + piece * 50_000,
                            lengths[piece],
                            near.region.localKey());
                }
                near.lane.post(near.ring, slot, 1);
                near.await(1);

                long at = 5;
                for (int piece = 0; piece < pieces; piece++) {
                    assertSame(near, piece * 50_000, far, at, lengths[piece]);
                    at += lengths[piece];
                }
            }
        }
    }

    /** Twice as much as is staged for one write, all of it short. */
    @Test
    void movesAFullQueueOfShortPieces() throws Exception {
        int length = 2000;
        int request = LaneSide.MAX_SGE * length;
        try (LaneSide near = new LaneSide(1 << 18, LaneSide.OPEN).filled(8);
                LaneSide far = new LaneSide(1 << 18, LaneSide.OPEN)) {
            for (int slot = 0; slot < LaneSide.DEPTH; slot++) {
                near.ring.fill(
                        slot,
                        slot,
                        Operation.WRITE,
                        far.memory.address() + slot * request,
                        far.region.remoteKey(),
                        LaneSide.MAX_SGE,
                        true);
                for (int piece = 0; piece < LaneSide.MAX_SGE; piece++) {
                    long at = slot * request + piece * length;
                    near.ring.piece(
                            slot,
                            piece,
                            near.memory.address() + at,
                            length,
                            near.region.localKey());
                }
            }
            near.lane.post(near.ring, 0, LaneSide.DEPTH);

            SocketChannel[] ends = LaneSide.channels();
            far.lane.connect(ends[1]);
            near.lane.connect(ends[0]);

            near.await(LaneSide.DEPTH);
            assertSame(near, 0, far, 0, LaneSide.DEPTH * request);
        }
    }

    @Test
    void completesWhatIsSignalledInOrderAndNothingElse() throws Exception {
        LaneSide[] sides = LaneSide.pair(4096);
        try (LaneSide near = sides[0];
                LaneSide far = sides[1]) {
            for (int slot = 0; slot < LaneSide.DEPTH; slot++) {
                Operation operation = slot % 3 == 0 ? Operation.READ : Operation.WRITE;
                near.fill(slot, operation, 0, far, 0, 64, slot % 5 == 0);
            }

            near.lane.post(near.ring, 0, LaneSide.DEPTH);

            assertThat(near.await(4)).extracting(Done::identity).containsExactly(0L, 5L, 10L, 15L);
            assertThat(near.taken()).isEmpty();
        }
    }

    /** Whoever sees a completion may post into the room it tells of. */
    @Test
    void hasRoomForAsMuchAsHasCompleted() throws Exception {
        LaneSide[] sides = LaneSide.pair(4096);
        try (LaneSide near = sides[0];
                LaneSide far = sides[1]) {
            for (int slot = 0; slot < LaneSide.DEPTH; slot++) {
                near.write(slot, far, 8);
            }
            assertThat(near.lane.post(near.ring, 0, LaneSide.DEPTH)).isEqualTo(LaneSide.DEPTH);
            int slot = 0;
            near.completions.requestNotify();
            for (int round = 0; round < 2000; round++) {
                int done = near.await(1).size();
                near.completions.requestNotify();
                assertThat(near.lane.post(near.ring, slot, done))
                        .as("round %d", round)
                        .isEqualTo(done);
                slot = (slot + done) % LaneSide.DEPTH;
            }
        }
    }

    @Test
    void takesNoMoreThanItsQueueHolds() throws Exception {
        try (LaneSide near = new LaneSide(4096, LaneSide.OPEN);
                LaneSide far = new LaneSide(4096, LaneSide.OPEN)) {
            for (int slot = 0; slot < LaneSide.DEPTH; slot++) {
                near.write(slot, far, 8);
            }
            assertThat(near.lane.post(near.ring, 0, 10)).isEqualTo(10);
            assertThat(near.lane.postErrno()).isZero();
            assertThat(near.lane.post(near.ring, 10, 10)).isEqualTo(6);
            assertThat(near.lane.postErrno()).isEqualTo(Errno.ENOMEM);
            assertThat(near.lane.post(near.ring, 0, 1)).isZero();

            SocketChannel[] ends = LaneSide.channels();
            far.lane.connect(ends[1]);
            near.lane.connect(ends[0]);

            assertThat(near.await(16))
                    .extracting(Done::status)
                    .containsOnly(CompletionStatus.SUCCESS);
        }
    }

    @Test
    void handsImmediatesToReceivesInOrder() throws Exception {
        LaneSide[] sides = LaneSide.pair(4096);
        try (LaneSide near = sides[0];
                LaneSide far = sides[1]) {
            far.lane.postReceives(far.receives, 2);
            for (int slot = 0; slot < 4; slot++) {
                near.immediate(slot, -slot);
            }

            near.lane.post(near.ring, 0, 4);

            assertThat(far.await(2))
                    .containsExactly(
                            Done.immediate(LaneSide.RECEIVE, 0),
                            Done.immediate(LaneSide.RECEIVE | 1, -1));
            assertThat(near.await(2)).extracting(Done::identity).containsExactly(0L, 1L);
            assertThat(near.taken()).as("those without a receive wait").isEmpty();
            far.lane.postReceives(far.receives, 4);
            assertThat(near.await(2)).extracting(Done::identity).containsExactly(2L, 3L);
            assertThat(far.await(2)).extracting(Done::immediate).containsExactly(-2, -3);
            assertThatThrownBy(() -> far.lane.postReceives(far.receives, 3))
                    .isInstanceOf(VerbsException.class)
                    .hasMessageContaining("ENOMEM");
        }
    }

    /** The sockets of both are full of requests and answers, and neither waits for the other. */
    @Test
    void readsAndWritesBothWaysDoNotLockUp() throws Exception {
        LaneSide[] sides = LaneSide.pair(2 * LARGE);
        try (LaneSide near = sides[0].filled(4);
                LaneSide far = sides[1].filled(5)) {
            for (int round = 0; round < 20; round++) {
                for (LaneSide side : sides) {
                    LaneSide other = side == near ? far : near;
                    for (int slot = 0; slot < LaneSide.DEPTH; slot++) {
                        Operation operation = slot % 2 == 0 ? Operation.READ : Operation.WRITE;
                        side.fill(slot, operation, LARGE, other, 0, LARGE, true);
                    }
                    side.lane.post(side.ring, 0, LaneSide.DEPTH);
                }
                assertThat(near.await(16)).hasSize(16);
                assertThat(far.await(16)).hasSize(16);
            }
        }
    }

    @Test
    void stopFlushesAllThatIsOutstanding() throws Exception {
        try (LaneSide near = new LaneSide(LARGE, LaneSide.OPEN);
                LaneSide far = new LaneSide(LARGE, LaneSide.OPEN);
                SocketChannel unread = near.connectToSocket()) {
            near.lane.postReceives(near.receives, 3);
            for (int slot = 0; slot < LaneSide.DEPTH; slot++) {
                near.fill(slot, Operation.WRITE, 0, far, 0, LARGE, false);
            }
            // The socket takes a part, and nobody reads it: posting does not wait for that.
            assertThat(near.lane.post(near.ring, 0, LaneSide.DEPTH)).isEqualTo(LaneSide.DEPTH);

            near.lane.stop();

            List<Done> flushed = near.await(LaneSide.DEPTH + 3);
            assertThat(flushed).extracting(Done::status).containsOnly(CompletionStatus.FLUSHED);
            assertThat(flushed)
                    .extracting(Done::identity)
                    .startsWith(IntStream.range(0, 16).mapToObj(Long::valueOf).toArray(Long[]::new))
                    .endsWith(LaneSide.RECEIVE, LaneSide.RECEIVE | 1, LaneSide.RECEIVE | 2);
            assertThat(unread.isOpen()).isTrue();

            near.lane.stop();
            near.lane.post(near.ring, 4, 2);
            near.lane.postReceives(near.receives, 1);
            assertThat(near.await(3)).extracting(Done::identity).contains(4L, 5L, LaneSide.RECEIVE);
        }
    }

    @Test
    void stopBeforeTheConnectionFlushesToo() throws Exception {
        try (LaneSide near = new LaneSide(64, LaneSide.OPEN);
                LaneSide far = new LaneSide(64, LaneSide.OPEN)) {
            near.write(0, far, 8);
            near.lane.post(near.ring, 0, 1);

            near.lane.stop();

            assertThat(near.await(1)).containsExactly(Done.of(0, CompletionStatus.FLUSHED));
            assertThat(near.lane.awaitConnected(0)).isFalse();
            SocketChannel[] ends = LaneSide.channels();
            assertThatThrownBy(() -> near.lane.connect(ends[0])).hasMessageContaining("stopped");
            ends[0].close();
            ends[1].close();
        }
    }

    @Test
    void aPeerThatGoesEndsAllAsUnanswered() throws Exception {
        try (LaneSide near = new LaneSide(4096, LaneSide.OPEN);
                LaneSide far = new LaneSide(4096, LaneSide.OPEN);
                SocketChannel peer = near.connectToSocket()) {
            near.lane.postReceives(near.receives, 1);
            near.write(0, far, 8);
            near.write(1, far, 8);
            near.lane.post(near.ring, 0, 2);

            peer.shutdownOutput();

            assertThat(near.await(3))
                    .containsExactly(
                            Done.of(0, CompletionStatus.RETRY_EXCEEDED),
                            Done.of(1, CompletionStatus.FLUSHED),
                            Done.of(LaneSide.RECEIVE, CompletionStatus.FLUSHED));
        }
    }

    @Test
    void aPeerThatGoesIsToldByAReceiveIfNothingElseIsOut() throws Exception {
        try (LaneSide near = new LaneSide(4096, LaneSide.OPEN);
                SocketChannel peer = near.connectToSocket()) {
            near.lane.postReceives(near.receives, 2);

            peer.shutdownOutput();

            assertThat(near.await(2))
                    .containsExactly(
                            Done.of(LaneSide.RECEIVE, CompletionStatus.RETRY_EXCEEDED),
                            Done.of(LaneSide.RECEIVE | 1, CompletionStatus.FLUSHED));
        }
    }

    /** As on a device: the one that was refused says so, and both sides stop. */
    @Test
    void aRefusedRequestStopsBothSides() throws Exception {
        LaneSide[] sides = LaneSide.pair(4096);
        try (LaneSide near = sides[0];
                LaneSide far = sides[1]) {
            far.lane.postReceives(far.receives, 1);
            near.write(0, far, 8);
            near.fill(1, Operation.WRITE, 0, far, 4090, 8, false);
            near.write(2, far, 16);
            near.filled(6);

            near.lane.post(near.ring, 0, 3);

            assertThat(near.await(3))
                    .containsExactly(
                            Done.of(0, CompletionStatus.SUCCESS),
                            Done.of(1, CompletionStatus.REMOTE_ACCESS),
                            Done.of(2, CompletionStatus.FLUSHED));
            assertThat(far.await(1))
                    .containsExactly(Done.of(LaneSide.RECEIVE, CompletionStatus.FLUSHED));
            assertSame(near, 0, far, 0, 8);
            assertThat(far.memory.asSlice(8).mismatch(MemorySegment.ofArray(new byte[4088])))
                    .as("nothing behind it was carried out")
                    .isEqualTo(-1);
            far.write(0, near, 8);
            far.lane.post(far.ring, 0, 1);
            assertThat(far.await(1)).containsExactly(Done.of(0, CompletionStatus.FLUSHED));
        }
    }

    @Test
    void aKeyOfAnEarlierRegistrationIsRefused() throws Exception {
        LaneSide[] sides = LaneSide.pair(4096);
        try (LaneSide near = sides[0];
                LaneSide far = sides[1]) {
            near.write(0, far, 8);
            near.write(1, far, 8);
            near.lane.post(near.ring, 0, 1);
            near.await(1);
            far.region.close();
            try (var again = far.regions.register(far.memory, LaneSide.OPEN)) {
                assertThat(again.remoteKey()).isNotEqualTo(far.region.remoteKey());

                near.lane.post(near.ring, 1, 1);

                assertThat(near.await(1))
                        .containsExactly(Done.of(1, CompletionStatus.REMOTE_ACCESS));
            }
        }
    }

    /** Own memory is looked up as well: a transfer holds it, but a ring may say anything. */
    @Test
    void aPieceOutsideOwnMemoryFailsHere() throws Exception {
        for (Operation operation : new Operation[] {Operation.WRITE, Operation.READ}) {
            LaneSide[] sides = LaneSide.pair(4096);
            try (LaneSide near = sides[0];
                    LaneSide far = sides[1]) {
                near.fill(0, operation, 4090, far, 0, 8, true);

                near.lane.post(near.ring, 0, 1);

                assertThat(near.await(1))
                        .containsExactly(Done.of(0, CompletionStatus.LOCAL_PROTECTION));
            }
        }
    }

    @Test
    void refusesWhatCannotBePosted() throws Exception {
        try (LaneSide near = new LaneSide(64, LaneSide.OPEN);
                WorkRequests wide = new WorkRequests(2, LaneSide.MAX_SGE + 1)) {
            assertThatIllegalArgumentException().isThrownBy(() -> near.lane.post(near.ring, 0, 0));
            assertThatIllegalArgumentException().isThrownBy(() -> near.lane.post(near.ring, 0, 17));
            assertThatThrownBy(() -> near.lane.post(near.ring, 16, 1))
                    .isInstanceOf(IndexOutOfBoundsException.class);
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> near.lane.post(wide, 0, 1))
                    .withMessageContaining("4 pieces")
                    .withMessageContaining("5");
            near.lane.close();
            assertThatIllegalStateException().isThrownBy(() -> near.lane.post(near.ring, 0, 1));
            assertThatIllegalStateException()
                    .isThrownBy(() -> near.lane.postReceives(near.receives, 1));
        }
    }

    /** Whenever it comes: afterwards nothing of the peer's is written any more. */
    @Test
    void nothingIsTouchedOnceARegionIsClosed() throws Exception {
        for (int round = 0; round < 30; round++) {
            LaneSide[] sides = LaneSide.pair(LARGE);
            try (LaneSide near = sides[0];
                    LaneSide far = sides[1]) {
                near.memory.fill((byte) 1);
                for (int slot = 0; slot < LaneSide.DEPTH; slot++) {
                    int length = round % 2 == 0 ? LARGE : 1024;
                    near.fill(slot, Operation.WRITE, 0, far, 0, length, true);
                }
                near.lane.post(near.ring, 0, LaneSide.DEPTH);
                for (int spin = 0; spin < round * 2000; spin++) {
                    Thread.onSpinWait();
                }

                far.region.close();
                far.memory.fill((byte) 2);
                List<Done> done = near.await(LaneSide.DEPTH);

                assertThat(far.memory.mismatch(filled(LARGE, (byte) 2))).isEqualTo(-1);
                assertThat(done)
                        .extracting(Done::status)
                        .isSubsetOf(
                                CompletionStatus.SUCCESS,
                                CompletionStatus.REMOTE_ACCESS,
                                CompletionStatus.FLUSHED);
            }
        }
    }

    private static MemorySegment filled(int bytes, byte value) {
        byte[] expected = new byte[bytes];
        Arrays.fill(expected, value);
        return MemorySegment.ofArray(expected);
    }

    private static void assertSame(
            LaneSide here, long offset, LaneSide there, long otherOffset, int length) {
        assertThat(
                        MemorySegment.mismatch(
                                here.memory,
                                offset,
                                offset + length,
                                there.memory,
                                otherOffset,
                                otherOffset + length))
                .as("%d bytes", length)
                .isEqualTo(-1);
    }
}
