package dev.verbena.tcp;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.tcp.LaneSide.Done;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.Lifetime;
import dev.verbena.verbs.WorkRequests.Operation;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A lane whose other end is not one: whatever comes, no byte outside what was granted is written or
 * told, and what this side has posted ends.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LaneStrangersTest {
    private static final int BYTES = 4096;

    private final List<TcpLane> others = new ArrayList<>();
    private LaneSide side;
    private SocketChannel stranger;
    private long openBefore;

    @BeforeEach
    void connect() throws IOException {
        openBefore = Lifetime.openCount();
        side = new LaneSide(BYTES, LaneSide.OPEN).filled(1);
        stranger = side.connectToSocket();
    }

    @AfterEach
    void close() throws IOException {
        stranger.close();
        others.forEach(TcpLane::close);
        side.close();
        assertThat(Lifetime.openCount()).isEqualTo(openBefore);
    }

    @ParameterizedTest
    @CsvSource({
        // Before the start, over the end, beyond it, and around the address space.
        "-1, 8",
        "4089, 8",
        "4096, 1",
        "1000000, 8",
        "0, 4097",
        "0, 2147483647",
        "9223372036854775807, 8",
        "-9223372036854775808, 8",
    })
    void refusesWritesAndReadsOutsideTheRegion(long offset, int length) throws Exception {
        byte[] before = bytes();

        for (byte kind : new byte[] {Frame.WRITE, Frame.WRITE_IMMEDIATE, Frame.READ}) {
            try (SocketChannel other = anotherStranger()) {
                send(other, kind, side.region.remoteKey(), side.memory.address() + offset, length);

                assertRefused(other, CompletionStatus.REMOTE_ACCESS);
            }
        }
        assertThat(bytes()).isEqualTo(before);
    }

    @Test
    void refusesKeysThatItDidNotGive() throws Exception {
        byte[] before = bytes();

        for (int key : new int[] {0, -1, side.region.remoteKey() + 1, ~side.region.remoteKey()}) {
            try (SocketChannel other = anotherStranger()) {
                send(other, Frame.WRITE, key, side.memory.address(), 8);

                assertRefused(other, CompletionStatus.REMOTE_ACCESS);
            }
        }
        assertThat(bytes()).isEqualTo(before);
    }

    @Test
    void refusesAccessThatIsNotGranted() throws Exception {
        for (Access granted : new Access[] {Access.REMOTE_READ, Access.REMOTE_WRITE}) {
            byte kind = granted == Access.REMOTE_READ ? Frame.WRITE : Frame.READ;
            try (LaneSide guarded = new LaneSide(64, Set.of(granted));
                    SocketChannel other = guarded.connectToSocket()) {
                send(other, kind, guarded.region.remoteKey(), guarded.memory.address(), 8);

                assertRefused(other, CompletionStatus.REMOTE_ACCESS);
            }
        }
    }

    /** Its data still comes, a megabyte of it, and must not keep the refusal from being heard. */
    @Test
    void dropsWhatFollowsARefusal() throws Exception {
        byte[] before = bytes();
        int length = 1 << 20;

        send(stranger, Frame.WRITE, 0, side.memory.address(), length);
        write(stranger, ByteBuffer.allocate(length));
        send(stranger, Frame.WRITE, side.region.remoteKey(), side.memory.address(), 8);
        write(stranger, ByteBuffer.allocate(8));

        assertRefused(stranger, CompletionStatus.REMOTE_ACCESS);
        assertThat(bytes()).isEqualTo(before);
    }

    @ParameterizedTest
    @ValueSource(bytes = {0, 7, 71, -1})
    void aKindThatDoesNotExistEndsTheConnection(byte kind) throws Exception {
        post();

        send(stranger, kind, 0, 0, 0);

        assertEnded(CompletionStatus.BAD_RESPONSE);
    }

    @ParameterizedTest
    @ValueSource(bytes = {Frame.WRITE, Frame.READ, Frame.READ_DATA, Frame.DONE})
    void aNegativeLengthEndsTheConnection(byte kind) throws Exception {
        post();

        send(stranger, kind, side.region.remoteKey(), side.memory.address(), -8);

        assertEnded(CompletionStatus.BAD_RESPONSE);
    }

    /** Two requests are out: a write, and a read of 16 bytes. Done, or answered, are others. */
    @ParameterizedTest
    @CsvSource({
        "4, -1, 0",
        "4, 3, 0",
        "4, 2, 0",
        "4, 9223372036854775807, 0",
        "5, 0, 16",
        "5, 1, 15",
        "5, 1, 17",
        "5, 2, 16",
        "5, -1, 16",
        "5, 1, 0",
        "6, 2, 0",
        "6, -1, 0",
    })
    void answersToNoRequestEndTheConnection(byte kind, long position, int length) throws Exception {
        post();
        byte[] before = bytes();

        send(stranger, kind, 0, position, length);
        write(stranger, ByteBuffer.allocate(Math.max(0, length)));

        assertThat(side.await(2))
                .extracting(Done::status)
                .last()
                .isNotEqualTo(CompletionStatus.SUCCESS);
        assertThat(bytes()).isEqualTo(before);
    }

    @ParameterizedTest
    @CsvSource({"0, REMOTE_OPERATION", "10, REMOTE_ACCESS", "99, UNKNOWN", "-5, UNKNOWN"})
    void aRefusalFailsItsRequestWithAStatusThatIsOne(int number, CompletionStatus status)
            throws Exception {
        post();

        ByteBuffer head = ByteBuffer.allocate(Frame.BYTES);
        Frame.put(head, Frame.REFUSED, 0, 1, 0, number);
        write(stranger, head.flip());

        assertThat(side.await(2))
                .containsExactly(Done.of(0, CompletionStatus.SUCCESS), Done.of(1, status));
    }

    /** The socket ends in every place of a frame. */
    @Test
    void anEndInMidFrameEndsTheRequests() throws Exception {
        for (int length = 0; length < Frame.BYTES + 8; length++) {
            try (LaneSide near = new LaneSide(64, LaneSide.OPEN);
                    SocketChannel other = near.connectToSocket()) {
                ByteBuffer frame = ByteBuffer.allocate(Frame.BYTES + 8);
                int key = near.region.remoteKey();
                Frame.put(frame, Frame.WRITE, key, near.memory.address(), 8, 0);
                near.write(0, side, 8);
                near.lane.post(near.ring, 0, 1);
                write(other, frame.duplicate().position(0).limit(length));
                other.shutdownOutput();

                assertThat(near.await(1))
                        .containsExactly(Done.of(0, CompletionStatus.RETRY_EXCEEDED));
            }
        }
    }

    /** More than this side's own queue holds: how many it may have is the peer's affair. */
    @Test
    void answersManyReadsThatNobodyTakesYet() throws Exception {
        int reads = 10_000;
        ByteBuffer asked = ByteBuffer.allocate(reads * Frame.BYTES);
        for (int i = 0; i < reads; i++) {
            Frame.put(asked, Frame.READ, side.region.remoteKey(), side.memory.address(), BYTES, 0);
        }
        write(stranger, asked.flip());

        byte[] expected = bytes();
        ByteBuffer answer = ByteBuffer.allocate(Frame.BYTES + BYTES);
        byte[] payload = new byte[BYTES];
        for (int i = 0; i < reads; i++) {
            read(stranger, answer.clear());
            assertThat(Frame.kind(answer, 0)).isEqualTo(Frame.READ_DATA);
            assertThat(Frame.position(answer, 0)).isEqualTo(i);
            answer.get(Frame.BYTES, payload);
            assertThat(payload).isEqualTo(expected);
        }
    }

    @Test
    void readsWithoutEndEndTheConnection() throws Exception {
        post();
        ByteBuffer asked = ByteBuffer.allocate(1000 * Frame.BYTES);
        for (int i = 0; i < 1000; i++) {
            Frame.put(asked, Frame.READ, side.region.remoteKey(), side.memory.address(), BYTES, 0);
        }
        asked.flip();
        try {
            for (int i = 0; i < TcpLane.MAX_READS / 1000 + 10; i++) {
                write(stranger, asked.duplicate());
            }
            // The answers fill the socket, so nearly all of them wait.
            assertEnded(CompletionStatus.BAD_RESPONSE);
        } catch (IOException cutOff) {
            assertEnded(CompletionStatus.BAD_RESPONSE);
        }
    }

    /**
     * A read waits for the socket when its pool is closed; a write behind it was carried out. So
     * the refusal must not be of the kind that says that nothing behind it was.
     */
    @Test
    void aPoolThatIsClosedBeforeItsReadIsAnsweredIsNotRead() throws Exception {
        int blocks = 5000;
        try (LaneSide large = new LaneSide(1 << 20, LaneSide.OPEN);
                SocketChannel other = large.connectToSocket()) {
            MemorySegment secret = large.arena.allocate(64);
            secret.fill((byte) 7);
            var region = large.regions.register(secret, LaneSide.OPEN);
            ByteBuffer asked = ByteBuffer.allocate((blocks + 2) * Frame.BYTES + 8);
            long address = large.memory.address();
            for (int i = 0; i < blocks; i++) {
                Frame.put(asked, Frame.READ, large.region.remoteKey(), address, 1 << 20, 0);
            }
            Frame.put(asked, Frame.READ, region.remoteKey(), secret.address(), 64, 0);
            Frame.put(asked, Frame.WRITE, large.region.remoteKey(), address, 8, 0);
            write(other, asked.putLong(-1).flip());
            while (large.memory.get(ValueLayout.JAVA_LONG, 0) != -1) {
                Thread.onSpinWait();
            }

            region.close();

            ByteBuffer answer = ByteBuffer.allocate(Frame.BYTES + (1 << 20));
            for (int i = 0; i < blocks; i++) {
                read(other, answer.clear());
                assertThat(Frame.position(answer, 0)).isEqualTo(i);
            }
            ByteBuffer refused = ByteBuffer.allocate(Frame.BYTES);
            read(other, refused);
            assertThat(Frame.kind(refused, 0)).isEqualTo(Frame.REFUSED);
            assertThat(Frame.position(refused, 0)).isEqualTo(blocks);
            CompletionStatus status = CompletionStatus.of(Frame.number(refused, 0));
            assertThat(status).isEqualTo(CompletionStatus.REMOTE_ABORT);
            assertThat(status.stopsFollowers()).isFalse();
        }
    }

    /** Whatever the frames: memory behind the region stays as it is, and the lane closes. */
    @Test
    void survivesRandomFrames() throws Exception {
        Random random = new Random(20);
        for (int round = 0; round < 300; round++) {
            try (LaneSide near = new LaneSide(BYTES, LaneSide.OPEN);
                    SocketChannel other = near.connectToSocket()) {
                MemorySegment half = near.memory.asSlice(BYTES / 2, BYTES / 2);
                near.region.close();
                var region =
                        near.regions.register(near.memory.asSlice(0, BYTES / 2), LaneSide.OPEN);
                near.lane.postReceives(near.receives, LaneSide.RECEIVES);
                near.fill(0, Operation.READ, 0, side, 0, 8, true);
                near.lane.post(near.ring, 0, 1);
                ByteBuffer frames = ByteBuffer.allocate(1 << 14);
                while (frames.remaining() > Frame.BYTES + 100) {
                    int length = random.nextInt(100);
                    Frame.put(
                            frames,
                            (byte) random.nextInt(8),
                            random.nextInt(4) == 0 ? random.nextInt() : region.remoteKey(),
                            random.nextInt(4) == 0
                                    ? random.nextInt(3)
                                    : near.memory.address() + random.nextInt(-50, BYTES / 2 + 50),
                            random.nextInt(20) == 0 ? random.nextInt() : length,
                            random.nextInt());
                    for (int i = 0; i < length; i++) {
                        frames.put((byte) random.nextInt());
                    }
                }
                try {
                    write(other, frames.flip());
                    other.shutdownOutput();
                } catch (IOException cutOff) {
                    // As good an answer as any.
                }
                near.lane.close();
                assertThat(half.mismatch(MemorySegment.ofArray(new byte[BYTES / 2]))).isEqualTo(-1);
                region.close();
            }
        }
    }

    /** Posts a write, and a read of 16 bytes, and waits until they have come to the stranger. */
    private void post() throws IOException {
        side.fill(0, Operation.WRITE, 0, side, 0, 8, true);
        side.fill(1, Operation.READ, 16, side, 0, 16, true);
        side.lane.post(side.ring, 0, 2);
        read(stranger, ByteBuffer.allocate(2 * Frame.BYTES + 8));
    }

    private void assertEnded(CompletionStatus status) {
        assertThat(side.await(2))
                .containsExactly(Done.of(0, status), Done.of(1, CompletionStatus.FLUSHED));
    }

    private SocketChannel anotherStranger() throws IOException {
        SocketChannel[] ends = LaneSide.channels();
        TcpLane lane = new TcpLane("other", side.lane.options(), side.completions, side.regions);
        others.add(lane);
        lane.connect(ends[0]);
        return ends[1];
    }

    private byte[] bytes() {
        return side.memory.toArray(ValueLayout.JAVA_BYTE);
    }

    private static void send(SocketChannel to, byte kind, int key, long position, int length)
            throws IOException {
        ByteBuffer head = ByteBuffer.allocate(Frame.BYTES);
        Frame.put(head, kind, key, position, length, 0);
        write(to, head.flip());
    }

    private static void assertRefused(SocketChannel by, CompletionStatus status)
            throws IOException {
        ByteBuffer answer = ByteBuffer.allocate(Frame.BYTES);
        read(by, answer);
        assertThat(Frame.kind(answer, 0)).isEqualTo(Frame.REFUSED);
        assertThat(Frame.position(answer, 0)).isZero();
        assertThat(CompletionStatus.of(Frame.number(answer, 0))).isEqualTo(status);
    }

    private static void write(SocketChannel to, ByteBuffer bytes) throws IOException {
        while (bytes.hasRemaining()) {
            to.write(bytes);
        }
    }

    private static void read(SocketChannel from, ByteBuffer into) throws IOException {
        while (into.hasRemaining()) {
            if (from.read(into) < 0) {
                throw new AssertionError("the lane hung up " + into.remaining() + " bytes early");
            }
        }
    }
}
