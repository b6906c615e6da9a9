package dev.verbena.transfer;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Whatever one stranger does, the next proper peer is served. Real sockets on loopback. */
@Timeout(60)
final class ControlListenerTest {
    private static final ControlOptions OPTIONS = ControlOptions.defaults();

    /** Welcomes everybody under the name of "listener". */
    private static final ControlListener.Greeter WELCOMING =
            (hello, connection) -> {
                connection.send(ControlFrame.WELCOME, ControlPeers.hello("listener").encode());
                connection.start(new ControlPeers.Notes());
            };

    @Test
    void welcomesAPeer() throws Exception {
        BlockingQueue<Hello> hellos = new LinkedBlockingQueue<>();
        ControlListener.Greeter greeter =
                (hello, connection) -> {
                    hellos.add(hello);
                    WELCOMING.greet(hello, connection);
                };
        try (ControlListener listener = listen(OPTIONS, greeter)) {
            assertThat(listener.port()).isPositive();

            assertThat(meet(listener)).isEqualTo(ControlPeers.hello("listener"));
            assertThat(hellos.take()).isEqualTo(ControlPeers.hello("client"));
        }
    }

    @ParameterizedTest
    @CsvSource({
        "'GET /metrics HTTP/1.1', HTTP request",
        "'\u0016\u0003\u0001\u0002', TLS",
        "'complete nonsense', garbage",
        "'VRBN\u0002\u0001\u0000\u0000\u0000\u0000\u0000\u0000', another version",
        "'VRBN\u0001\u0001\u0000\u0000@\u0000\u0000\u0000', where the limit is",
        "'VRBN\u0001\u0006\u0000\u0000\u0000\u0000\u0000\u0000', HELLO was due",
        "'VRBN\u0001\u0001\u0000\u0000\u0000\u0000\u0000\u0001a', cut short",
        "'VRBN\u0001', cut short",
    })
    void tellsAStrangerWhyAndServesTheNext(String bytes, String message) throws Exception {
        try (ControlListener listener = listen(OPTIONS, WELCOMING)) {
            try (Socket stranger = new Socket(listenerHost(), listener.port())) {
                stranger.getOutputStream().write(bytes.getBytes(US_ASCII));
                stranger.shutdownOutput();

                ControlFrame answer = answer(stranger);

                assertThat(answer.kind()).isEqualTo(ControlFrame.REFUSED);
                assertThat(answer.words()).contains(message);
            }
            assertThat(meet(listener)).isNotNull();
        }
    }

    @Test
    void servesOthersWhileOneDrips() throws Exception {
        ControlOptions hasty = OPTIONS.withHandshakeDeadline(Duration.ofSeconds(3));
        try (ControlListener listener = listen(hasty, WELCOMING)) {
            Socket dripper = new Socket(listenerHost(), listener.port());
            CountDownLatch dripping = new CountDownLatch(1);
            Thread drips = Thread.ofVirtual().start(() -> drip(dripper, dripping));
            dripping.await();

            assertThat(meet(listener)).isNotNull();

            ControlFrame answer = answer(dripper);
            assertThat(answer.words()).contains("the handshake took more than 3000 ms");
            dripper.close();
            drips.join();
        }
    }

    private static void drip(Socket socket, CountDownLatch dripping) {
        try {
            byte[] header =
                    ByteBuffer.allocate(12)
                            .putInt(ControlFrame.MAGIC)
                            .putInt(0x01010000)
                            .putInt(99_999)
                            .array();
            socket.getOutputStream().write(header);
            dripping.countDown();
            while (true) {
                socket.getOutputStream().write(0);
                Thread.sleep(20);
            }
        } catch (IOException | InterruptedException e) {
            // The connection is closed, which is what this waits for.
        }
    }

    @Test
    void tellsAProperPeerThatIdleOnesKeepEverythingBusy() throws Exception {
        List<Socket> idle = new ArrayList<>();
        try (ControlListener listener =
                listen(OPTIONS.withHandshakeDeadline(Duration.ofMinutes(5)), WELCOMING)) {
            for (int i = 0; i < ControlListener.MAX_HANDSHAKES; i++) {
                idle.add(new Socket(listenerHost(), listener.port()));
            }

            // Connections are accepted in the order of their coming, so this one is one too many.
            assertThatThrownBy(() -> meet(listener))
                    .isInstanceOf(ControlRefusedException.class)
                    .hasMessageContaining("64 handshakes are in progress");

            for (Socket socket : idle) {
                socket.close();
            }
            meetAtLast(listener);
        }
    }

    /** Tries until the listener has noticed that the idle ones are gone. */
    private static void meetAtLast(ControlListener listener) throws Exception {
        while (true) {
            try {
                meet(listener);
                return;
            } catch (ControlRefusedException e) {
                Thread.sleep(10);
            }
        }
    }

    @Test
    void sendsThePeerWhatTheGreeterThrew() throws Exception {
        ControlListener.Greeter strict =
                (hello, connection) -> {
                    throw new IllegalStateException(hello.nodeName() + " is too much");
                };
        try (ControlListener listener = listen(OPTIONS, strict)) {
            assertThatThrownBy(() -> meet(listener))
                    .isInstanceOf(ControlRefusedException.class)
                    .hasMessageContaining("is too much");
        }
    }

    @Test
    void survivesAGreeterThatThrowsAnErrorWithoutAMessage() throws Exception {
        AtomicInteger calls = new AtomicInteger();
        ControlListener.Greeter shaky =
                (hello, connection) -> {
                    if (calls.getAndIncrement() == 0) {
                        throw new StackOverflowError();
                    }
                    WELCOMING.greet(hello, connection);
                };
        try (ControlListener listener = listen(OPTIONS, shaky)) {
            assertThatThrownBy(() -> meet(listener))
                    .isInstanceOf(ControlRefusedException.class)
                    .hasMessageContaining("StackOverflowError");
            assertThat(meet(listener)).isNotNull();
        }
    }

    @Test
    void refusesAHelloThatMakesNoSense() throws Exception {
        try (ControlListener listener = listen(OPTIONS, WELCOMING);
                ControlConnection connection =
                        ControlConnection.connect(
                                ControlPeers.loopback(listener.port()), OPTIONS)) {
            connection.send(ControlFrame.HELLO, new byte[] {0, 1, 'n'});

            assertThatThrownBy(() -> connection.receive(ControlFrame.WELCOME))
                    .isInstanceOf(ControlRefusedException.class)
                    .hasMessageContaining("cut short");
        }
    }

    /** The system has no file handle left: accepting fails for a while, and then goes on. */
    @Test
    void goesOnAcceptingAfterFailuresToAccept() throws Exception {
        AtomicInteger failures = new AtomicInteger(4);
        ServerSocket starved =
                new ServerSocket() {
                    @Override
                    public Socket accept() throws IOException {
                        if (failures.getAndDecrement() > 0) {
                            throw new SocketException("Too many open files");
                        }
                        return super.accept();
                    }
                };
        starved.bind(ControlPeers.loopback(0));
        try (ControlListener listener = ControlListener.over(starved, OPTIONS, WELCOMING)) {
            assertThat(meet(listener)).isNotNull();
            assertThat(failures).hasNonPositiveValue();
        }
    }

    @Test
    void endsHandshakesInProgressWhenClosedAndKeepsWhatWasGreeted() throws Exception {
        BlockingQueue<ControlConnection> greeted = new LinkedBlockingQueue<>();
        AtomicInteger greeting = new AtomicInteger();
        CountDownLatch waiting = new CountDownLatch(1);
        ControlListener.Greeter greeter =
                (hello, connection) -> {
                    if (hello.nodeName().equals("slow")) {
                        greeting.incrementAndGet();
                        waiting.countDown();
                        try {
                            connection.receive(ControlFrame.READY);
                        } finally {
                            greeting.decrementAndGet();
                        }
                    }
                    WELCOMING.greet(hello, connection);
                    greeted.add(connection);
                };
        ControlListener listener = listen(OPTIONS, greeter);
        try (ControlConnection early = connect(listener, "early");
                ControlConnection slow = connect(listener, "slow")) {
            ControlPeers.Notes notes = new ControlPeers.Notes();
            early.receive(ControlFrame.WELCOME);
            early.start(notes);
            ControlConnection theirs = greeted.take();
            waiting.await();

            listener.close();

            assertThat(greeting).as("greeters that still run").hasValue(0);
            assertThatThrownBy(() -> slow.receive(ControlFrame.WELCOME))
                    .isInstanceOf(IOException.class);
            assertThatThrownBy(() -> meet(listener)).isInstanceOf(IOException.class);
            theirs.send(ControlFrame.MESSAGE, new byte[0]);
            assertThat(notes.frames.take().kind()).isEqualTo(ControlFrame.MESSAGE);
            theirs.close();
        }
        listener.close();
    }

    @Test
    void namesTheAddressThatIsTaken() throws Exception {
        try (ControlListener listener = listen(OPTIONS, WELCOMING)) {
            assertThatThrownBy(() ->
                            ControlListener.bind(
                                    ControlPeers.loopback(listener.port()), OPTIONS, WELCOMING))
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("cannot listen on ")
                    .hasMessageContaining(":" + listener.port());
        }
    }

    /** Mutated HELLO frames over a real socket: each is answered or closed, and none is fatal. */
    @Test
    void survivesMutatedHellos() throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        new ControlFrame(ControlFrame.HELLO, ControlPeers.hello("client").encode()).write(out);
        try (ControlListener listener = listen(OPTIONS, WELCOMING)) {
            ControlMutations.forEach(
                    out.toByteArray(),
                    500,
                    bytes -> {
                        try (Socket socket = new Socket(listenerHost(), listener.port())) {
                            socket.getOutputStream().write(bytes);
                            socket.shutdownOutput();
                            assertThat(answer(socket).kind())
                                    .isIn(ControlFrame.WELCOME, ControlFrame.REFUSED);
                        } catch (EOFException | SocketException closed) {
                            // Also right, where what follows a good hello is bad or missing.
                        }
                    });
            assertThat(meet(listener)).isNotNull();
        }
    }

    /** Reads what a listener answers, signs of life aside. */
    private static ControlFrame answer(Socket socket) throws IOException {
        ControlFrame frame;
        do {
            frame = ControlFrame.read(socket.getInputStream(), 1 << 20);
        } while (frame.kind() == ControlFrame.PING);
        return frame;
    }

    private static String listenerHost() {
        return ControlPeers.loopback(0).getAddress().getHostAddress();
    }

    private static ControlListener listen(ControlOptions options, ControlListener.Greeter greeter)
            throws IOException {
        return ControlListener.bind(ControlPeers.loopback(0), options, greeter);
    }

    private static ControlConnection connect(ControlListener listener, String name)
            throws IOException {
        ControlConnection connection =
                ControlConnection.connect(ControlPeers.loopback(listener.port()), OPTIONS);
        connection.send(ControlFrame.HELLO, ControlPeers.hello(name).encode());
        return connection;
    }

    /** Does what a proper peer does, and gives what it was answered. */
    private static Hello meet(ControlListener listener) throws IOException {
        try (ControlConnection connection = connect(listener, "client")) {
            return Hello.decode(connection.receive(ControlFrame.WELCOME).payload());
        }
    }
}
