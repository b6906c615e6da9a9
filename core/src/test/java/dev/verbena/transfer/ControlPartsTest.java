package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.InetAddress;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The parts that control connections are made of: queue, deadline, complaints, options. */
@Timeout(60)
final class ControlPartsTest {
    private static final ControlFrame IDLE = new ControlFrame(ControlFrame.PING, new byte[0]);
    private static final ControlFrame FRAME = new ControlFrame(ControlFrame.MESSAGE, new byte[36]);
    private static final ControlFrame LAST = new ControlFrame(ControlFrame.GOODBYE, new byte[0]);

    @Test
    void outboxGivesFramesInOrderAndTheIdleOneWhenThereIsNone() throws Exception {
        ControlOutbox outbox = new ControlOutbox(1000);
        assertThat(outbox.offer(FRAME)).isTrue();
        assertThat(outbox.offer(LAST)).isTrue();

        assertThat(outbox.take(0, IDLE)).isSameAs(FRAME);
        assertThat(outbox.isEmpty()).isFalse();
        assertThat(outbox.take(0, IDLE)).isSameAs(LAST);
        assertThat(outbox.isEmpty()).isTrue();
        assertThat(outbox.take(0, IDLE)).isSameAs(IDLE);
    }

    @Test
    void outboxIsBoundedAndFreesRoomAsFramesAreTaken() throws Exception {
        // Each frame counts 36 bytes of payload and 64 of overhead.
        ControlOutbox outbox = new ControlOutbox(200);
        assertThat(outbox.offer(FRAME)).isTrue();
        assertThat(outbox.offer(FRAME)).isTrue();
        assertThat(outbox.offer(FRAME)).isFalse();

        outbox.take(0, IDLE);

        assertThat(outbox.offer(FRAME)).isTrue();
    }

    @Test
    void outboxBoundsFramesWithoutAPayloadToo() {
        ControlOutbox outbox = new ControlOutbox(6400);

        int accepted = 0;
        while (outbox.offer(IDLE)) {
            accepted++;
        }

        assertThat(accepted).isEqualTo(100);
    }

    @Test
    void outboxTakesTheLastFrameEvenWhenFullAndThenNoMore() throws Exception {
        ControlOutbox outbox = new ControlOutbox(100);
        outbox.offer(FRAME);

        outbox.finish(LAST);

        assertThat(outbox.offer(FRAME)).isFalse();
        assertThat(outbox.take(0, IDLE)).isSameAs(FRAME);
        assertThat(outbox.take(0, IDLE)).isSameAs(LAST);
        assertThat(outbox.take(Long.MAX_VALUE, IDLE)).isNull();
    }

    @Test
    void outboxWakesItsWriterWhenDiscarded() throws Exception {
        ControlOutbox outbox = new ControlOutbox(100);
        outbox.offer(FRAME);
        Thread discarder = Thread.ofVirtual().start(outbox::discard);

        while (outbox.take(Long.MAX_VALUE, IDLE) != null) {
            // The frame may or may not be taken before it is discarded.
        }

        discarder.join();
        assertThat(outbox.offer(FRAME)).isFalse();
    }

    @Test
    void deadlineStrikesOnce() throws Exception {
        CountDownLatch struck = new CountDownLatch(1);
        ControlDeadline deadline =
                new ControlDeadline(System.nanoTime() + 1_000_000, struck::countDown).start();

        struck.await();
        deadline.close();

        assertThat(deadline.struck()).isTrue();
    }

    @Test
    void deadlineDoesNothingOnceCalledOff() throws Exception {
        // About half of these strike while they are called off: each must know which it was.
        AtomicInteger actions = new AtomicInteger();
        int struck = 0;
        for (int i = 0; i < 2000; i++) {
            CountDownLatch acted = new CountDownLatch(1);
            ControlDeadline deadline =
                    new ControlDeadline(
                                    System.nanoTime() + i * 100L,
                                    () -> {
                                        actions.incrementAndGet();
                                        acted.countDown();
                                    })
                            .start();
            deadline.close();
            if (deadline.struck()) {
                acted.await();
                struck++;
            }
        }

        TimeUnit.MILLISECONDS.sleep(20);
        assertThat(actions).hasValue(struck);
    }

    @Test
    void complaintsCountPerKindAndSource() throws Exception {
        ControlComplaints complaints = new ControlComplaints();
        InetAddress one = InetAddress.getByName("10.0.0.1");
        InetAddress two = InetAddress.getByName("10.0.0.2");

        assertThat(complaints.count("garbage", one)).isEqualTo(1);
        assertThat(complaints.count("garbage", one)).isEqualTo(2);
        assertThat(complaints.count("garbage", two)).isEqualTo(1);
        assertThat(complaints.count("slow", one)).isEqualTo(1);
        assertThat(complaints.count("accept", null)).isEqualTo(1);
    }

    @Test
    void complaintsOfVeryManySourcesShareACount() throws Exception {
        ControlComplaints complaints = new ControlComplaints();
        for (int i = 0; i < 1024; i++) {
            assertThat(complaints.count("garbage", address(i))).isEqualTo(1);
        }

        assertThat(complaints.count("garbage", address(5000))).isEqualTo(1);
        assertThat(complaints.count("garbage", address(5001))).isEqualTo(2);
        assertThat(complaints.count("garbage", address(7))).isEqualTo(2);
    }

    private static InetAddress address(int i) throws Exception {
        return InetAddress.getByAddress(new byte[] {10, 0, (byte) (i >> 8), (byte) i});
    }

    @ParameterizedTest
    @CsvSource({"1,true", "2,false", "9,false", "10,true", "11,false", "20,false", "1000,true"})
    void complaintsAreLoudAtPowersOfTen(long count, boolean loud) {
        assertThat(ControlComplaints.isPowerOfTen(count)).isEqualTo(loud);
    }

    @Test
    void optionsRefuseWhatCannotWork() {
        ControlOptions defaults = ControlOptions.defaults();
        Duration second = Duration.ofSeconds(1);

        assertThatThrownBy(() -> defaults.withHeartbeat(second, second))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("silenceLimit PT1S must be longer than pingInterval PT1S");
        assertThatThrownBy(() -> defaults.withConnectDeadline(Duration.ZERO))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("connectDeadline is PT0S");
        assertThatThrownBy(() -> defaults.withHandshakeDeadline(Duration.ofDays(2)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("handshakeDeadline");
        assertThatThrownBy(() -> defaults.withMaxFrameBytes(0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("maxFrameBytes");
    }

    @Test
    void optionsChangeOneThingAtATime() {
        ControlOptions changed =
                ControlOptions.defaults()
                        .withConnectDeadline(Duration.ofSeconds(11))
                        .withHandshakeDeadline(Duration.ofSeconds(12))
                        .withHeartbeat(Duration.ofSeconds(13), Duration.ofSeconds(14))
                        .withMaxFrameBytes(15)
                        .withClientCertificates(false);

        assertThat(changed)
                .isEqualTo(
                        new ControlOptions(
                                Duration.ofSeconds(11),
                                Duration.ofSeconds(12),
                                Duration.ofSeconds(13),
                                Duration.ofSeconds(14),
                                15,
                                null,
                                false));
    }
}
