package dev.verbena.transfer;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Whatever ends a connection is told, once and with its reason, on both sides where that can be.
 * Real sockets on loopback; the time-outs only stop a test that hangs.
 */
@Timeout(60)
final class ControlEndTest {
    private static final ControlOptions OPTIONS = ControlOptions.defaults();

    @Test
    void carriesTheWordsOfAGoodbyeAndWhatWasQueuedBefore() throws Exception {
        ControlPeers.Notes near = new ControlPeers.Notes();
        ControlPeers.Notes far = new ControlPeers.Notes();
        try (ControlPeers.Pair pair = ControlPeers.pair(OPTIONS)) {
            pair.near().start(near);
            pair.far().start(far);

            byte[] large = new byte[1 << 20];
            for (int i = 0; i < 8; i++) {
                pair.near().send(ControlFrame.MESSAGE, large);
            }
            pair.near().close("maintenance at noon");

            assertThat(far.awaitLost()).contains("said goodbye: maintenance at noon");
            assertThat(near.awaitLost()).contains("closed by this side: maintenance at noon");
            assertThat(far.frames).hasSize(8);
        }
        assertThat(far.timesLost).hasValue(1);
        assertThat(near.timesLost).hasValue(1);
    }

    @Test
    void losesAPeerThatFallsSilent() throws Exception {
        ControlOptions hasty = OPTIONS.withHeartbeat(Duration.ofMillis(50), Duration.ofMillis(200));
        try (ControlPeers.WithSocket ends = ControlPeers.withSocket(hasty)) {
            ControlPeers.Notes notes = new ControlPeers.Notes();
            ends.connection().start(notes);

            assertThat(notes.awaitLost()).contains("silent for 200 ms");
        }
    }

    @Test
    void losesAPeerThatNeverReads() throws Exception {
        ControlOptions small = OPTIONS.withMaxFrameBytes(1 << 20);
        try (ControlPeers.WithSocket ends = ControlPeers.withSocket(small)) {
            ControlPeers.Notes notes = new ControlPeers.Notes();
            ends.connection().start(notes);
            byte[] payload = new byte[1 << 20];

            // Far more than the queue and the kernel's buffers hold.
            assertThatThrownBy(
                            () -> {
                                for (int i = 0; i < 1000; i++) {
                                    ends.connection().send(ControlFrame.MESSAGE, payload);
                                }
                            })
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("does not read");

            assertThat(notes.awaitLost()).contains("does not read");
            assertThatThrownBy(() -> ends.connection().send(ControlFrame.MESSAGE, payload))
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("does not read");
        }
    }

    @Test
    void closesWithinBoundsWhenThePeerNeverReads() throws Exception {
        try (ControlPeers.WithSocket ends = ControlPeers.withSocket(OPTIONS)) {
            ControlPeers.Notes notes = new ControlPeers.Notes();
            ends.connection().start(notes);
            for (int i = 0; i < 30; i++) {
                ends.connection().send(ControlFrame.MESSAGE, new byte[1 << 20]);
            }

            ends.connection().close("enough");

            assertThat(notes.awaitLost()).contains("enough");
        }
    }

    @Test
    void tellsTheEndOnceUnderConcurrentEnds() throws Exception {
        for (int round = 0; round < 200; round++) {
            try (ControlPeers.WithSocket ends = ControlPeers.withSocket(OPTIONS)) {
                ControlPeers.Notes notes = new ControlPeers.Notes();
                CountDownLatch go = new CountDownLatch(1);
                ends.connection().start(notes);
                List<Thread> threads =
                        List.of(
                                endLater(go, () -> ends.connection().close("one")),
                                endLater(go, () -> ends.connection().close("two")),
                                endLater(go, () -> ends.socket().close()),
                                endLater(
                                        go,
                                        () ->
                                                ends.connection()
                                                        .send(ControlFrame.MESSAGE, new byte[9])));

                go.countDown();
                for (Thread thread : threads) {
                    thread.join();
                }
                notes.awaitLost();
                assertThat(notes.timesLost).hasValue(1);
            }
        }
    }

    private interface Step {
        void run() throws IOException;
    }

    private static Thread endLater(CountDownLatch go, Step step) {
        return Thread.ofVirtual()
                .start(() -> {
                    try {
                        go.await();
                        step.run();
                    } catch (IOException | InterruptedException e) {
                        // To fail is allowed, once the connection has ended.
                    }
                });
    }

    @Test
    void tellsAnEndThatCameBeforeTheStart() throws Exception {
        try (ControlPeers.WithSocket ends = ControlPeers.withSocket(OPTIONS)) {
            ControlPeers.Notes notes = new ControlPeers.Notes();
            ends.socket().close();
            ends.connection().close("changed my mind");

            ends.connection().start(notes);

            assertThat(notes.awaitLost()).contains("changed my mind");
            assertThatThrownBy(() -> ends.connection().receive(ControlFrame.HELLO))
                    .hasMessageContaining("changed my mind");
        }
    }

    @Test
    void losesAPeerThatHangsUp() throws Exception {
        try (ControlPeers.WithSocket ends = ControlPeers.withSocket(OPTIONS)) {
            ControlPeers.Notes notes = new ControlPeers.Notes();
            ends.connection().start(notes);

            ends.socket().close();

            assertThat(notes.awaitLost()).contains("is lost");
        }
    }

    @Test
    void losesAPeerThatResets() throws Exception {
        try (ControlPeers.WithSocket ends = ControlPeers.withSocket(OPTIONS)) {
            ControlPeers.Notes notes = new ControlPeers.Notes();
            ends.connection().start(notes);

            ends.socket().setSoLinger(true, 0);
            ends.socket().close();

            assertThat(notes.awaitLost()).contains("is lost");
        }
    }

    @Test
    void losesAPeerThatSendsGarbage() throws Exception {
        try (ControlPeers.WithSocket ends = ControlPeers.withSocket(OPTIONS)) {
            ControlPeers.Notes notes = new ControlPeers.Notes();
            ends.connection().start(notes);

            ends.sendFrame(ControlFrame.MESSAGE, "fine");
            ends.sendBytes("GET / HTTP/1.1\r\n".getBytes(UTF_8));

            assertThat(notes.frames.take().words()).isEqualTo("fine");
            assertThat(notes.awaitLost()).contains("broke the protocol").contains("HTTP request");
        }
    }

    @Test
    void losesAPeerThatBeginsAnew() throws Exception {
        try (ControlPeers.WithSocket ends = ControlPeers.withSocket(OPTIONS)) {
            ControlPeers.Notes notes = new ControlPeers.Notes();
            ends.connection().start(notes);

            ends.sendFrame(ControlFrame.HELLO, "");

            assertThat(notes.awaitLost()).contains("a second handshake");
        }
    }

    @Test
    void losesAPeerThatIsCutOffInMidFrame() throws Exception {
        try (ControlPeers.WithSocket ends = ControlPeers.withSocket(OPTIONS)) {
            ControlPeers.Notes notes = new ControlPeers.Notes();
            ends.connection().start(notes);

            ends.sendBytes(ByteBuffer.allocate(5).putInt(ControlFrame.MAGIC).put((byte) 1).array());
            ends.socket().shutdownOutput();

            assertThat(notes.awaitLost()).contains("mid-frame");
        }
    }

    @Test
    void losesTheConnectionWhenTheHandlerThrows() throws Exception {
        for (Throwable failure :
                List.of(new IllegalStateException("boom"), new StackOverflowError("boom"))) {
            try (ControlPeers.WithSocket ends = ControlPeers.withSocket(OPTIONS)) {
                ControlPeers.Notes notes =
                        new ControlPeers.Notes() {
                            @Override
                            public void frame(ControlFrame frame) {
                                sneak(failure);
                            }
                        };
                ends.connection().start(notes);

                ends.sendFrame(ControlFrame.MESSAGE, "hot");

                assertThat(notes.awaitLost())
                        .contains("MESSAGE frame of 3 bytes")
                        .contains("could not be handled")
                        .contains("boom");
            }
        }
    }

    private static void sneak(Throwable failure) {
        switch (failure) {
            case RuntimeException e -> throw e;
            case Error e -> throw e;
            default -> throw new AssertionError(failure);
        }
    }

    @Test
    void tellsThePeerWhatItIsCutOffFor() throws Exception {
        try (ControlPeers.Pair pair = ControlPeers.pair(OPTIONS)) {
            ControlPeers.Notes notes = new ControlPeers.Notes();
            pair.near().start(notes);
            pair.far()
                    .start(
                            new ControlPeers.Notes() {
                                @Override
                                public void frame(ControlFrame frame) {
                                    throw new IllegalArgumentException("no such room: 7");
                                }
                            });

            pair.near().send(ControlFrame.MESSAGE, new byte[0]);

            assertThat(notes.awaitLost()).contains("said goodbye").contains("no such room: 7");
        }
    }

    @Test
    void letsAHandlerCloseTheConnectionItself() throws Exception {
        try (ControlPeers.Pair pair = ControlPeers.pair(OPTIONS)) {
            ControlPeers.Notes near = new ControlPeers.Notes();
            ControlPeers.Notes far =
                    new ControlPeers.Notes() {
                        @Override
                        public void frame(ControlFrame frame) {
                            pair.far().close("heard enough");
                        }
                    };
            pair.near().start(near);
            pair.far().start(far);

            pair.near().send(ControlFrame.MESSAGE, new byte[0]);

            assertThat(near.awaitLost()).contains("said goodbye: heard enough");
            assertThat(far.awaitLost()).contains("closed by this side: heard enough");
        }
    }
}
