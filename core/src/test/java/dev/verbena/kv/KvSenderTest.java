package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.verbena.transfer.TwoNodes.Transport;
import dev.verbena.verbs.Lifetime;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * A request that prefill gives up, or whose prefill node goes, ends once on both sides, at
 * whichever step it was: announced, begun, with a chunk in flight, with one done, with the last one
 * given.
 */
abstract class KvSenderTest {
    private final Transport transport;

    private static final Duration SOON = Duration.ofSeconds(30);
    private static final int[] PAGES = {1, 2, 3};
    private static final int STEPS = 4;

    private long openBefore;

    KvSenderTest(Transport transport) {
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
    void givingUpAtAnyStepEndsBothSidesAndTheRoomIsFreeAgain() throws Exception {
        try (KvRig rig = new KvRig(transport, KvRig.HEADS)) {
            for (int step = 0; step < STEPS; step++) {
                AtomicInteger ends = new AtomicInteger();
                try (KvRequest request =
                                rig.receiver.expect(
                                        7, List.of(rig.toPrefill), KvSlots.pages(PAGES));
                        KvSend send = rig.sender.begin(7, SOON)) {
                    request.completion().whenComplete((r, f) -> ends.incrementAndGet());
                    goOn(send, step);

                    send.fail("out of memory");
                    send.fail("a second time");

                    assertThatExceptionOfType(KvException.class)
                            .isThrownBy(() -> request.await(SOON))
                            .withMessageContaining("out of memory");
                    assertThatExceptionOfType(KvException.class)
                            .isThrownBy(send::await)
                            .withMessageContaining("out of memory");
                    assertThatExceptionOfType(KvException.class).isThrownBy(() -> send.chunk());
                }
                KvRig.assertEndedOnce(ends);
                KvSliceTest.assertQuiet(rig);
            }
            sendsOne(rig);
        }
    }

    @Test
    void closingBeforeTheLastChunkIsGivingUp() throws Exception {
        try (KvRig rig = new KvRig(transport, KvRig.HEADS)) {
            for (int step = 0; step < STEPS; step++) {
                try (KvRequest request =
                        rig.receiver.expect(7, List.of(rig.toPrefill), KvSlots.pages(PAGES))) {
                    KvSend send = rig.sender.begin(7, SOON);
                    goOn(send, step);
                    send.close();
                    send.close();
                    assertThatExceptionOfType(KvException.class)
                            .isThrownBy(() -> request.await(SOON))
                            .withMessageContaining("before its last chunk");
                }
                KvSliceTest.assertQuiet(rig);
            }
            sendsOne(rig);
        }
    }

    @Test
    void aPrefillNodeThatGoesEndsBothSides() throws Exception {
        try (KvRig rig = new KvRig(transport, KvRig.HEADS)) {
            for (int step = -1; step <= STEPS; step++) {
                AtomicInteger ends = new AtomicInteger();
                KvRequest request =
                        rig.receiver.expect(7, List.of(rig.toPrefill), KvSlots.pages(PAGES));
                request.completion().whenComplete((r, f) -> ends.incrementAndGet());
                KvSend send = step < 0 ? null : rig.sender.begin(7, SOON);
                if (send != null) {
                    goOn(send, step);
                }

                rig.toDecode.close();

                if (send != null) {
                    awaitEnd(send);
                    send.close();
                }
                try {
                    request.await(SOON);
                    assertThat(step).as("only a whole request is ready").isEqualTo(STEPS);
                    assertThat(rig.filled(3, 3)).isTrue();
                } catch (KvException lost) {
                    assertThat(lost).hasMessageContaining("lost");
                }
                request.close();
                KvRig.assertEndedOnce(ends);
                rig.nodes.lostByNear();
                rig.nodes.lostByFar();
                KvSliceTest.assertQuiet(rig);
                rig.connectAgain();
            }
            sendsOne(rig);
        }
    }

    /**
     * A decode node that announces without end costs the prefill node a bounded amount of memory.
     */
    @Test
    void announcementsAreBoundedByTheirSlots() throws Exception {
        int[] most = IntStream.range(0, KvMessage.MAX_SLOTS).toArray();
        KvLayout tiny = new KvLayout.Latent(1, 1, 1, 1);
        try (KvRig rig = new KvRig(transport, tiny, most.length)) {
            rig.receiver.expect(1, List.of(rig.toPrefill), KvSlots.pages(0)).close();
            for (int room = 1; room <= 16; room++) {
                announce(rig, announcement(room, most));
                awaitAnnounced(rig, room);
            }
            announce(rig, announcement(17, 0));
            announce(rig, new KvMessage.Abort(1, 2, "of another request of that room"));
            announce(rig, new KvMessage.Abort(1, 1, "enough"));
            awaitAnnounced(rig, 15);
            assertThat(rig.sender.announcedRooms()).doesNotContain(1L, 17L);

            announce(rig, announcement(18, most));
            awaitAnnounced(rig, 16);

            rig.toPrefill.close();
            rig.nodes.lostByNear();
            KvSliceTest.assertQuiet(rig);
        }
    }

    private static KvMessage announcement(int room, int... pages) {
        return new KvMessage.Announce(room, room, true, pages, new int[0][], -1);
    }

    private static void announce(KvRig rig, KvMessage message) throws IOException {
        rig.toPrefill.send(KvMessage.TO_PREFILL, message.encode());
    }

    private static void awaitAnnounced(KvRig rig, int rooms) throws InterruptedException {
        while (rig.sender.announcedRooms().size() != rooms) {
            Thread.sleep(5);
        }
    }

    private static void awaitEnd(KvSend send) throws InterruptedException {
        try {
            send.await();
        } catch (KvException failed) {
            assertThat(failed).hasMessageContaining("room 7");
        }
    }

    /** 0: nothing; 1: a chunk, perhaps in flight; 2: a chunk done; 3: two; 4: all. */
    static void goOn(KvSend send, int step) throws InterruptedException {
        if (step >= 1) {
            send.chunk(1);
        }
        if (step >= 2) {
            send.chunk().await();
        }
        if (step >= 3) {
            send.chunk(2);
        }
        if (step >= 4) {
            send.last(KvSlots.pages(3));
        }
    }

    static void sendsOne(KvRig rig) throws Exception {
        rig.decodePool.segment().fill((byte) 0);
        try (KvRequest request =
                        rig.receiver.expect(7, List.of(rig.toPrefill), KvSlots.pages(PAGES));
                KvSend send = rig.sender.begin(7, SOON)) {
            goOn(send, STEPS);
            request.await(SOON);
            send.await();
        }
        for (int page : PAGES) {
            assertThat(rig.filled(page, page)).isTrue();
        }
        KvSliceTest.assertQuiet(rig);
    }
}
