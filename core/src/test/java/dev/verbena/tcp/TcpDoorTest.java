package dev.verbena.tcp;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.tcp.LaneSide.Done;
import dev.verbena.verbs.CompletionStatus;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Only who shows the token of a lane gets to it, and strangers keep nobody out. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class TcpDoorTest {
    private static final Duration SOON = Duration.ofSeconds(30);

    private final LaneToken token = LaneToken.random();
    private TcpDoor door;
    private LaneSide near;
    private LaneSide far;

    @BeforeEach
    void open() throws IOException {
        door = TcpDoor.open(InetAddress.getLoopbackAddress(), SOON);
        near = new LaneSide(64, LaneSide.OPEN);
        far = new LaneSide(64, LaneSide.OPEN);
        door.expect(token, far.lane);
    }

    @AfterEach
    void close() {
        near.close();
        far.close();
        door.close();
    }

    @Test
    void joinsTwoLanesByTheToken() throws Exception {
        near.lane.connect(address(), token, SOON);

        assertThat(far.lane.awaitConnected(SOON.toNanos())).isTrue();
        assertWorks();
    }

    @Test
    void aTokenOpensOnce() throws Exception {
        near.lane.connect(address(), token, SOON);
        far.lane.awaitConnected(SOON.toNanos());

        try (Socket second = new Socket(address().getAddress(), door.port())) {
            second.getOutputStream().write(bytes(token));
            assertThat(readUntilCutOff(second)).isNegative();
        }
        assertWorks();
    }

    @Test
    void strangersAreCutOffAndDisturbNobody() throws Exception {
        for (byte[] greeting :
                List.of(bytes(LaneToken.random()), "GET / HTTP/1.1\r\n\r\n".getBytes(US_ASCII))) {
            try (Socket stranger = new Socket(address().getAddress(), door.port())) {
                stranger.getOutputStream().write(greeting);
                assertThat(readUntilCutOff(stranger)).isNegative();
            }
        }
        try (Socket early = new Socket(address().getAddress(), door.port())) {
            early.getOutputStream().write(1);
        }

        near.lane.connect(address(), token, SOON);

        assertWorks();
    }

    /** More of them than there is room for; none says a word. */
    @Test
    void silentStrangersKeepNobodyOut() throws Exception {
        List<Socket> silent = new ArrayList<>();
        try {
            for (int i = 0; i < TcpDoor.MAX_GREETINGS + 10; i++) {
                silent.add(new Socket(address().getAddress(), door.port()));
            }

            near.lane.connect(address(), token, SOON);

            assertThat(far.lane.awaitConnected(SOON.toNanos())).isTrue();
            assertWorks();
            for (int i = 0; i < 10; i++) {
                assertThat(readUntilCutOff(silent.get(i))).as("the oldest gave way").isNegative();
            }
        } finally {
            for (Socket socket : silent) {
                socket.close();
            }
        }
    }

    @Test
    void whoTakesTooLongIsCutOff() throws Exception {
        try (TcpDoor strict =
                        TcpDoor.open(InetAddress.getLoopbackAddress(), Duration.ofMillis(50));
                Socket slow = new Socket(address().getAddress(), strict.port())) {
            slow.getOutputStream().write(new byte[LaneToken.BYTES - 1]);

            assertThat(readUntilCutOff(slow)).isNegative();
        }
    }

    @Test
    void aTokenThatIsForgottenOpensNothing() throws Exception {
        door.forget(token);

        near.lane.connect(address(), token, SOON);
        near.write(0, far, 8);
        near.lane.post(near.ring, 0, 1);

        assertThat(near.await(1)).containsExactly(Done.of(0, CompletionStatus.RETRY_EXCEEDED));
        assertThat(far.lane.awaitConnected(0)).isFalse();
    }

    @Test
    void closingEndsThoseWhoAreAtTheDoorAndLeavesThoseInside() throws Exception {
        near.lane.connect(address(), token, SOON);
        far.lane.awaitConnected(SOON.toNanos());
        try (Socket waiting = new Socket(address().getAddress(), door.port())) {
            waiting.getOutputStream().write(1);

            door.close();

            assertThat(readUntilCutOff(waiting)).isNegative();
        }
        assertWorks();
    }

    @Test
    void breakingOffEndsTheWaitOnBothSides() throws Exception {
        Thread waiting =
                Thread.startVirtualThread(() -> {
                    try {
                        assertThat(far.lane.awaitConnected(TimeUnit.DAYS.toNanos(1))).isFalse();
                    } catch (InterruptedException e) {
                        throw new AssertionError(e);
                    }
                });

        far.lane.breakOff();
        waiting.join();

        near.lane.breakOff();
        assertThatThrownBy(() -> near.lane.connect(address(), token, SOON))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("stopped");
    }

    @Test
    void aDoorThatIsNotThereIsNamed() throws Exception {
        int port;
        try (ServerSocket closed = new ServerSocket(0)) {
            port = closed.getLocalPort();
        }
        InetSocketAddress nowhere = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);

        assertThatThrownBy(() -> near.lane.connect(nowhere, token, SOON))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("data connection")
                .hasMessageContaining(Integer.toString(port));
    }

    private InetSocketAddress address() {
        return new InetSocketAddress(InetAddress.getLoopbackAddress(), door.port());
    }

    private void assertWorks() {
        near.filled(1).write(0, far, 64);
        near.lane.post(near.ring, 0, 1);
        assertThat(near.await(1)).containsExactly(Done.of(0, CompletionStatus.SUCCESS));
        assertThat(near.memory.mismatch(far.memory)).isEqualTo(-1);
    }

    private static byte[] bytes(LaneToken token) {
        ByteBuffer bytes = ByteBuffer.allocate(LaneToken.BYTES);
        token.put(bytes);
        return bytes.array();
    }

    /** Negative at the end, which may be a reset where bytes were left unread. */
    private static int readUntilCutOff(Socket socket) {
        try {
            return socket.getInputStream().read();
        } catch (IOException reset) {
            return -1;
        }
    }
}
