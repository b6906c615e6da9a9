package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.verbena.transfer.Peer;
import dev.verbena.transfer.TwoNodes.Transport;
import dev.verbena.verbs.Lifetime;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * A request that decode gives up, or whose decode node goes, ends once on both sides at whichever
 * step it was; and once it is closed no write lands in its pages, which may belong to another
 * request by then.
 */
abstract class KvReceiverTest {
    private final Transport transport;

    private static final Duration SOON = Duration.ofSeconds(30);
    private static final int[] PAGES = {1, 2, 3};
    private static final int STEPS = 4;
    private static final byte NEXT_OWNER = 0x55;

    private long openBefore;

    KvReceiverTest(Transport transport) {
        this.transport = transport;
    }

    @BeforeEach
    void count() {
        openBefore = Lifetime.openCount();
    }

    @AfterEach
    void nothingStaysOpen() {
        assertThat(Lifetime.openCount()).isEqualTo(openBefore);
    }

    @Test
    void aPageIsNotGivenToTwoRequests() throws Exception {
        try (KvRig rig = new KvRig(transport, KvRig.HEADS)) {
            List<Peer> writers = List.of(rig.toPrefill);
            KvRequest first = rig.receiver.expect(1, writers, KvSlots.pages(3, 5));

            assertThatIllegalArgumentException()
                    .isThrownBy(() -> rig.receiver.expect(2, writers, KvSlots.pages(4, 5)))
                    .withMessageContaining("pages[1] is 5");

            first.close();
            rig.receiver.expect(2, writers, KvSlots.pages(4, 5)).close();
        }
    }

    @Test
    void abortingAtAnyStepEndsBothSidesAndNoWriteLandsAfterClose() throws Exception {
        try (KvRig rig = new KvRig(transport, KvRig.HEADS)) {
            for (int step = -1; step < STEPS; step++) {
                AtomicInteger ends = new AtomicInteger();
                KvRequest request =
                        rig.receiver.expect(7, List.of(rig.toPrefill), KvSlots.pages(PAGES));
                request.completion().whenComplete((r, f) -> ends.incrementAndGet());
                KvSend send = step < 0 ? null : rig.sender.begin(7, SOON);
                if (send != null) {
                    KvSenderTest.goOn(send, step);
                }

                request.abort("the user hung up");
                request.close();

                rig.decodePool.segment().fill(NEXT_OWNER);
                assertThatExceptionOfType(KvException.class)
                        .isThrownBy(request::await)
                        .withMessageContaining("the user hung up");
                if (send != null) {
                    assertThatExceptionOfType(KvException.class)
                            .isThrownBy(send::await)
                            .withMessageContaining("aborted by the decode side");
                    assertThatExceptionOfType(KvException.class).isThrownBy(() -> send.chunk(3));
                    send.close();
                }
                KvRig.assertEndedOnce(ends);
                assertOwnedByTheNext(rig);
                KvSliceTest.assertQuiet(rig);
            }
            KvSenderTest.sendsOne(rig);
        }
    }

    /** An abort may cross the end of the request on the way, and is answered all the same. */
    @Test
    void anAbortThatComesTooLateIsAnswered() throws Exception {
        try (KvRig rig = new KvRig(transport, KvRig.LATENT)) {
            for (int round = 0; round < 10; round++) {
                KvRequest request =
                        rig.receiver.expect(7, List.of(rig.toPrefill), KvSlots.pages(PAGES));
                KvSend send = rig.sender.begin(7, SOON);
                KvSenderTest.goOn(send, STEPS);
                if (round % 2 == 0) {
                    send.await();
                }

                request.close();

                rig.decodePool.segment().fill(NEXT_OWNER);
                send.close();
                assertOwnedByTheNext(rig);
                KvSliceTest.assertQuiet(rig);
            }
        }
    }

    /**
     * Both sides give up at a time, and the room is used again at once: what is still said of the
     * first request must not end the second, whose pages would count as free while it is written.
     */
    @Test
    void lateAnswersDoNotEndTheNextRequestOfTheRoom() throws Exception {
        try (KvRig rig = new KvRig(transport, KvRig.HEADS)) {
            for (int round = 0; round < 10; round++) {
                KvRequest first =
                        rig.receiver.expect(7, List.of(rig.toPrefill), KvSlots.pages(PAGES));
                KvSend send = rig.sender.begin(7, SOON);
                Thread prefill = Thread.startVirtualThread(() -> send.fail("prefill gives up"));
                first.abort("decode gives up");
                first.close();
                try (KvRequest second =
                        rig.receiver.expect(7, List.of(rig.toPrefill), KvSlots.pages(PAGES))) {
                    prefill.join();
                    send.close();
                    try (KvSend next = rig.sender.begin(7, SOON)) {
                        KvSenderTest.goOn(next, STEPS);
                        second.await(SOON);
                        next.await();
                    }
                }
                KvSliceTest.assertQuiet(rig);
            }
        }
    }

    @Test
    void aRequestThatIsNotFilledInTimeIsAborted() throws Exception {
        try (KvRig rig = new KvRig(transport, KvRig.HEADS)) {
            try (KvRequest request =
                    rig.receiver.expect(7, List.of(rig.toPrefill), KvSlots.pages(PAGES))) {
                assertThatExceptionOfType(KvException.class)
                        .isThrownBy(() -> request.await(Duration.ofMillis(30)))
                        .withMessageContaining("PT0.03S");
            }
            KvSliceTest.assertQuiet(rig);
        }
    }

    @Test
    void aDecodeNodeThatGoesEndsBothSides() throws Exception {
        try (KvRig rig = new KvRig(transport, KvRig.HEADS)) {
            for (int step = -1; step <= STEPS; step++) {
                KvRequest request =
                        rig.receiver.expect(7, List.of(rig.toPrefill), KvSlots.pages(PAGES));
                KvSend send = step < 0 ? null : rig.sender.begin(7, SOON);
                if (send != null) {
                    KvSenderTest.goOn(send, step);
                }

                rig.toPrefill.close();
                request.close();

                rig.decodePool.segment().fill(NEXT_OWNER);
                rig.nodes.lostByNear();
                rig.nodes.lostByFar();
                if (send != null) {
                    send.close();
                }
                assertOwnedByTheNext(rig);
                KvSliceTest.assertQuiet(rig);
                rig.connectAgain();
            }
            KvSenderTest.sendsOne(rig);
        }
    }

    @Test
    void aRequestOfAPeerThatIsLostFailsAtOnce() throws Exception {
        try (KvRig rig = new KvRig(transport, KvRig.HEADS)) {
            rig.toPrefill.close();
            try (KvRequest request =
                    rig.receiver.expect(7, List.of(rig.toPrefill), KvSlots.pages(PAGES))) {
                assertThatExceptionOfType(KvException.class)
                        .isThrownBy(request::await)
                        .withMessageContaining("lost");
            }
            KvSliceTest.assertQuiet(rig);
        }
    }

    private static void assertOwnedByTheNext(KvRig rig) {
        for (byte b : rig.decodePool.segment().toArray(ValueLayout.JAVA_BYTE)) {
            if (b != NEXT_OWNER) {
                throw new AssertionError("a write landed after the request was closed");
            }
        }
    }
}
