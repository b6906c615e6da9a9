package dev.verbena.transfer;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Handshakes, and frames in their order. Real sockets on loopback; the time-outs only stop a test
 * that hangs.
 */
@Timeout(60)
final class ControlConnectionTest {
    private static final ControlOptions OPTIONS = ControlOptions.defaults();

    @Test
    void exchangesTheFramesOfAHandshakeAndThenThoseOfWork() throws Exception {
        try (ControlPeers.Pair pair = ControlPeers.pair(OPTIONS)) {
            ControlPeers.Notes notes = new ControlPeers.Notes();
            Hello hello = ControlPeers.hello("near");

            pair.near().send(ControlFrame.HELLO, hello.encode());
            pair.near().send(ControlFrame.MESSAGE, "early".getBytes(UTF_8));
            ControlFrame received = pair.far().receive(ControlFrame.HELLO);
            pair.far().start(notes);
            pair.near().send(ControlFrame.POOLS, Hello.encodePools(hello.pools()));

            assertThat(Hello.decode(received.payload())).isEqualTo(hello);
            assertThat(notes.frames.take().words()).isEqualTo("early");
            assertThat(Hello.decodePools(notes.frames.take().payload())).isEqualTo(hello.pools());
        }
    }

    @Test
    void keepsTheOrderOfEachOfSeveralSenders() throws Exception {
        int senders = 4;
        int messages = 2000;
        try (ControlPeers.Pair pair = ControlPeers.pair(OPTIONS)) {
            ControlPeers.Notes notes = new ControlPeers.Notes();
            pair.far().start(notes);

            List<Thread> threads = new ArrayList<>();
            for (int sender = 0; sender < senders; sender++) {
                int id = sender;
                threads.add(Thread.ofVirtual().start(() -> sendNumbers(pair.near(), id, messages)));
            }

            int[] next = new int[senders];
            for (int i = 0; i < senders * messages; i++) {
                ByteBuffer payload = ByteBuffer.wrap(notes.frames.take().payload());
                assertThat(payload.getInt()).isEqualTo(next[payload.getInt()]++);
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
    }

    private static void sendNumbers(ControlConnection connection, int sender, int messages) {
        try {
            for (int i = 0; i < messages; i++) {
                byte[] payload = ByteBuffer.allocate(8).putInt(i).putInt(sender).array();
                connection.send(ControlFrame.MESSAGE, payload);
            }
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void tellsARefusalInThePeersWords() throws Exception {
        try (ControlPeers.Pair pair = ControlPeers.pair(OPTIONS)) {
            // What the other side has sent lies unread, and must not cost it the answer.
            pair.near().send(ControlFrame.HELLO, new byte[100_000]);
            pair.far().refuse("no room for you");

            assertThatThrownBy(() -> pair.near().receive(ControlFrame.WELCOME))
                    .isInstanceOf(ControlRefusedException.class)
                    .hasMessageContaining("no room for you")
                    .hasMessageContaining(ControlSocket.name(pair.near().remoteAddress()));
        }
    }

    @Test
    void startsOnce() throws Exception {
        try (ControlPeers.Pair pair = ControlPeers.pair(OPTIONS)) {
            pair.near().start(new ControlPeers.Notes());

            assertThatThrownBy(() -> pair.near().start(new ControlPeers.Notes()))
                    .isInstanceOf(IllegalStateException.class);
        }
    }

    @Test
    void refusesAFrameOutOfTurn() throws Exception {
        try (ControlPeers.Pair pair = ControlPeers.pair(OPTIONS)) {
            pair.near().send(ControlFrame.MESSAGE, new byte[3]);

            assertThatThrownBy(() -> pair.far().receive(ControlFrame.HELLO))
                    .isInstanceOf(ControlProtocolException.class)
                    .hasMessageContaining("MESSAGE frame of 3 bytes, where HELLO was due");
        }
    }

    @Test
    void endsAHandshakeWhoseBytesDripIn() throws Exception {
        ControlOptions hasty = OPTIONS.withHandshakeDeadline(Duration.ofMillis(300));
        try (ControlPeers.WithSocket ends = ControlPeers.withSocket(hasty)) {
            Thread dripper = Thread.ofVirtual().start(() -> drip(ends));

            assertThatThrownBy(() -> ends.connection().receive(ControlFrame.HELLO))
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("the handshake took more than 300 ms");
            dripper.join();
        }
    }

    /** Announces a long frame and sends a byte of it now and then, until nobody listens. */
    private static void drip(ControlPeers.WithSocket ends) {
        try {
            ends.sendBytes(
                    ByteBuffer.allocate(12)
                            .putInt(ControlFrame.MAGIC)
                            .putInt(0x01010000)
                            .putInt(99999)
                            .array());
            while (true) {
                ends.sendBytes((byte) 0);
                Thread.sleep(10);
            }
        } catch (IOException | InterruptedException e) {
            // The connection is closed, which is what this waits for.
        }
    }

    @Test
    void forgetsTheHandshakeDeadlineOnceStarted() throws Exception {
        ControlOptions hasty =
                OPTIONS.withHandshakeDeadline(Duration.ofSeconds(2))
                        .withHeartbeat(Duration.ofMillis(50), Duration.ofSeconds(30));
        try (ControlPeers.Pair pair = ControlPeers.pair(hasty)) {
            ControlPeers.Notes notes = new ControlPeers.Notes();
            pair.near().start(new ControlPeers.Notes());
            pair.far().start(notes);

            Thread.sleep(2500);
            pair.near().send(ControlFrame.MESSAGE, new byte[0]);

            assertThat(notes.frames.take().kind()).isEqualTo(ControlFrame.MESSAGE);
        }
    }

    @Test
    void givesASignOfLifeWhenThereIsNothingToSend() throws Exception {
        ControlOptions lively =
                OPTIONS.withHeartbeat(Duration.ofMillis(20), Duration.ofSeconds(50));
        try (ControlPeers.WithSocket ends = ControlPeers.withSocket(lively)) {
            for (int i = 0; i < 3; i++) {
                assertThat(ends.readFrame().kind()).isEqualTo(ControlFrame.PING);
            }
        }
    }

    @Test
    void passesOverPingsDuringAHandshake() throws Exception {
        try (ControlPeers.WithSocket ends = ControlPeers.withSocket(OPTIONS)) {
            ends.sendFrame(ControlFrame.PING, "");
            ends.sendFrame(ControlFrame.READY, "");

            assertThat(ends.connection().receive(ControlFrame.READY).kind())
                    .isEqualTo(ControlFrame.READY);
        }
    }

    @Test
    void refusesToSendMoreThanAFrame() throws Exception {
        try (ControlPeers.Pair pair = ControlPeers.pair(OPTIONS.withMaxFrameBytes(100))) {
            assertThatThrownBy(() -> pair.near().send(ControlFrame.MESSAGE, new byte[101]))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("MESSAGE frame of 101 bytes, where the limit is 100");
        }
    }

    @Test
    void namesAddressAndCauseWhenNobodyListens() throws Exception {
        int port;
        try (ServerSocket server = new ServerSocket()) {
            server.bind(ControlPeers.loopback(0));
            port = server.getLocalPort();
        }

        assertThatThrownBy(() -> ControlConnection.connect(ControlPeers.loopback(port), OPTIONS))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("cannot connect to ")
                .hasMessageContaining(":" + port)
                .hasMessageContaining("no node listens there");
    }

    @Test
    void namesTheHostThatIsUnknown() {
        assertThatThrownBy(() ->
                        ControlConnection.connect(
                                InetSocketAddress.createUnresolved("no.such.host", 7471), OPTIONS))
                .isInstanceOf(IOException.class)
                .hasMessage("cannot connect to no.such.host:7471: unknown host");
    }

    @Test
    void saysWhoHungUpDuringAHandshake() throws Exception {
        try (ControlPeers.WithSocket ends = ControlPeers.withSocket(OPTIONS)) {
            ends.socket().shutdownOutput();

            assertThatThrownBy(() -> ends.connection().receive(ControlFrame.WELCOME))
                    .isInstanceOf(EOFException.class)
                    .hasMessageContaining("the other side closed the connection")
                    .hasMessageContaining(":" + ends.connection().remoteAddress().getPort());
        }
    }

    @Test
    void sendsSmallFramesWithoutDelay() throws Exception {
        try (ServerSocket server = new ServerSocket()) {
            server.bind(ControlPeers.loopback(0));
            try (Socket socket =
                    ControlSocket.connect(ControlPeers.loopback(server.getLocalPort()), OPTIONS)) {
                assertThat(socket.getTcpNoDelay()).isTrue();
            }
        }
    }
}
