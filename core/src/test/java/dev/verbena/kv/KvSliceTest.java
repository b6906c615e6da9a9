package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.verbena.transfer.TwoNodes.Transport;
import dev.verbena.verbs.Lifetime;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Requests from prefill to decode, well: the right pages in the right slots of every pool and no
 * other byte, in chunks of any number, many at a time. Nothing stays open on either side.
 */
abstract class KvSliceTest {
    private final Transport transport;

    private static final Duration SOON = Duration.ofSeconds(30);

    private long openBefore;

    KvSliceTest(Transport transport) {
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
    void chunksFillTheSlotsOfEveryPool() throws Exception {
        for (KvLayout layout : List.of(KvRig.HEADS, KvRig.LATENT)) {
            try (KvRig rig = new KvRig(transport, layout)) {
                int[] from = {7, 8, 9, 20, 3, 40, 41, 0};
                int[] to = {63, 1, 2, 3, 50, 9, 10, 0};
                try (KvRequest request =
                                rig.receiver.expect(5, List.of(rig.toPrefill), KvSlots.pages(to));
                        KvSend send = rig.sender.begin(5, SOON)) {
                    assertThat(send.pages()).isEqualTo(8);
                    send.chunk(7, 8);
                    send.chunk();
                    send.chunk(9, 20, 3);
                    send.last(KvSlots.pages(40, 41, 0));
                    request.await(SOON);
                    send.await();
                }
                for (int i = 0; i < to.length; i++) {
                    assertThat(rig.filled(from[i], to[i])).isTrue();
                }
                List<Integer> filled = IntStream.of(to).boxed().toList();
                for (int page = 0; page < KvRig.PAGES; page++) {
                    assertThat(rig.untouched(page)).isEqualTo(!filled.contains(page));
                }
                assertQuiet(rig);
            }
        }
    }

    @Test
    void theLastChunkMayBeEmptyAndSoMayTheRequest() throws Exception {
        try (KvRig rig = new KvRig(transport, KvRig.HEADS)) {
            try (KvRequest request =
                            rig.receiver.expect(1, List.of(rig.toPrefill), KvSlots.pages(4));
                    KvSend send = rig.sender.begin(1, SOON)) {
                send.chunk(6);
                send.last(KvSlots.pages());
                request.await(SOON);
                send.await();
            }
            assertThat(rig.filled(6, 4)).isTrue();
            try (KvRequest request =
                            rig.receiver.expect(1, List.of(rig.toPrefill), KvSlots.pages());
                    KvSend send = rig.sender.begin(1, SOON)) {
                send.last(KvSlots.pages());
                request.await();
                send.await();
            }
            assertQuiet(rig);
        }
    }

    /**
     * Posting threads also tell the ends of each other's transfers, and must not lock each other.
     */
    @Test
    void manyRequestsAtATimeFromManyThreads() throws Exception {
        int threads = 4;
        int rounds = 12;
        try (KvRig rig = new KvRig(transport, KvRig.LATENT)) {
            List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
            List<Thread> running = new ArrayList<>();
            for (int t = 0; t < threads; t++) {
                int first = t * 8;
                running.add(
                        Thread.ofPlatform()
                                .start(() -> {
                                    try {
                                        rounds(rig, first, rounds);
                                    } catch (Throwable failure) {
                                        failures.add(failure);
                                    }
                                }));
            }
            for (Thread thread : running) {
                thread.join();
            }
            assertThat(failures).isEmpty();
            assertQuiet(rig);
        }
    }

    private static void rounds(KvRig rig, int first, int rounds) throws InterruptedException {
        int[] pages = IntStream.range(first, first + 8).toArray();
        for (int round = 0; round < rounds; round++) {
            long room = first * 1000L + round;
            try (KvRequest request =
                            rig.receiver.expect(
                                    room, List.of(rig.toPrefill), KvSlots.pages(pages));
                    KvSend send = rig.sender.begin(room, SOON)) {
                for (int i = 0; i < 8; i++) {
                    int[] chunk = {first + (i + round) % 8};
                    if (i < 7) {
                        send.chunk(chunk);
                    } else {
                        send.last(KvSlots.pages(chunk));
                    }
                }
                request.await(SOON);
                send.await();
                for (int i = 0; i < 8; i++) {
                    assertThat(rig.filled(first + (i + round) % 8, first + i)).isTrue();
                }
            }
        }
    }

    @Test
    void wrongChunksAreRefusedAndTheRequestGoesOn() throws Exception {
        try (KvRig rig = new KvRig(transport, KvRig.HEADS)) {
            try (KvRequest request =
                            rig.receiver.expect(1, List.of(rig.toPrefill), KvSlots.pages(1, 2));
                    KvSend send = rig.sender.begin(1, SOON)) {
                assertThatIllegalArgumentException()
                        .isThrownBy(() -> send.chunk(1, 2, 3))
                        .withMessageContaining("2 of 2 pages are left");
                assertThatIllegalArgumentException()
                        .isThrownBy(() -> send.last(KvSlots.pages(1)))
                        .withMessageContaining("last chunk of 1 pages");
                assertThatExceptionOfType(IndexOutOfBoundsException.class)
                        .isThrownBy(() -> send.chunk(KvRig.PAGES));
                assertThatExceptionOfType(IndexOutOfBoundsException.class)
                        .isThrownBy(() -> send.last(KvSlots.pages(-1, 0)));
                send.last(KvSlots.pages(5, 6));
                assertThatIllegalStateException().isThrownBy(() -> send.chunk());
                request.await(SOON);
            }
            assertThat(rig.filled(6, 2)).isTrue();
            assertQuiet(rig);
        }
    }

    @Test
    void wrongExpectationsAreRefused() throws Exception {
        try (KvRig rig = new KvRig(transport, KvRig.HEADS)) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() ->
                            rig.receiver.expect(
                                    1, List.of(rig.toPrefill), KvSlots.pages(KvRig.PAGES)))
                    .withMessageContaining("pages[0]");
            assertThatIllegalArgumentException()
                    .isThrownBy(() ->
                            rig.receiver.expect(1, List.of(rig.toPrefill), KvSlots.pages(3, 3)))
                    .withMessageContaining("pages[1]");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> rig.receiver.expect(1, List.of(), KvSlots.pages(3)));
            assertThatExceptionOfType(KvException.class)
                    .isThrownBy(() -> rig.sender.begin(1, Duration.ofMillis(20)))
                    .withMessageContaining("room 1");
            try (KvRequest first =
                    rig.receiver.expect(1, List.of(rig.toPrefill), KvSlots.pages(3))) {
                assertThatIllegalArgumentException()
                        .isThrownBy(() ->
                                rig.receiver.expect(1, List.of(rig.toPrefill), KvSlots.pages(4)))
                        .withMessageContaining("in use");
                assertThat(first.room()).isEqualTo(1);
            }
            assertQuiet(rig);
        }
    }

    /**
     * Nothing is left on either side; what is left to the other side's thread may take a moment.
     */
    static void assertQuiet(KvRig rig) throws InterruptedException {
        for (int i = 0; i < 1000 && !isQuiet(rig); i++) {
            Thread.sleep(10);
        }
        assertThat(rig.sender.openSends()).isZero();
        assertThat(rig.sender.announcedRooms()).isEmpty();
        assertThat(rig.receiver.openRequests()).isZero();
    }

    private static boolean isQuiet(KvRig rig) {
        return rig.sender.openSends() == 0
                && rig.sender.announcedRooms().isEmpty()
                && rig.receiver.openRequests() == 0;
    }
}
