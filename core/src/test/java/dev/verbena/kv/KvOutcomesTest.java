package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.verbena.kv.KvGroup.Job;
import dev.verbena.kv.KvGroup.Rank;
import dev.verbena.kv.KvGroup.Shape;
import dev.verbena.kv.KvGroup.Staging;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.transfer.Peer;
import dev.verbena.verbs.Lifetime;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * A request that one of several ranks gives up, or loses, at whatever step, ends once on every rank
 * of both sides, without anybody else's doing; no write lands once it is closed, nothing of it is
 * left, and the next request of the same room goes well.
 */
abstract class KvOutcomesTest {
    private static final ModelOfBytes MODEL = ModelOfBytes.heads(2).withSwa().withAux();
    private static final byte NEXT_OWNER = 0x55;
    private static final long ROOM = 8;

    private long openBefore;

    /** Options of every node. */
    abstract NodeOptions options();

    @BeforeEach
    void count() {
        openBefore = Lifetime.openCount();
    }

    @AfterEach
    void nothingStaysOpen() {
        assertThat(Lifetime.openCount()).isEqualTo(openBefore);
    }

    /** How far a request is when something goes wrong. */
    private enum Step {
        ANNOUNCED,
        BEGUN,
        CHUNKS,
        LAST_OF_ONE_RANK,
        LAST_OF_ALL_BUT_ONE
    }

    /** What goes wrong, on a rank. */
    @FunctionalInterface
    private interface Act {
        void on(KvGroup group, Job job, int rank);
    }

    private static final List<Shape> SHAPES =
            List.of(
                    Shape.of(1, 1),
                    Shape.of(1, 2),
                    Shape.of(2, 1),
                    Shape.of(2, 2),
                    new Shape(1, 2, 1),
                    Shape.of(4, 2));

    @Test
    void aDecodeRankAborts() throws Exception {
        everywhere(false, (group, job, rank) -> job.requests.get(rank).abort("enough"), "enough");
    }

    @Test
    void aPrefillRankFails() throws Exception {
        everywhere(true, (group, job, rank) -> job.sends.get(rank).fail("no memory"), "no memory");
    }

    @Test
    void aPrefillRankClosesEarly() throws Exception {
        everywhere(
                true, (group, job, rank) -> job.sends.get(rank).close(), "before its last chunk");
    }

    @Test
    void aPrefillRankLosesADecodeRank() throws Exception {
        everywhere(
                true,
                (group, job, rank) ->
                        group.prefill.get(rank).peers.get(targetOf(group, rank)).close(),
                "");
    }

    @Test
    void aDecodeRankLosesAPrefillRank() throws Exception {
        everywhere(
                false,
                (group, job, rank) ->
                        group.decode.get(rank).peers.get(writerOf(group, rank)).close(),
                "");
    }

    /** A decode rank that the prefill rank writes to. */
    private static int targetOf(KvGroup group, int prefillRank) {
        RankMap map = RankMap.of(group.shape.prefillTp(), group.shape.decodeTp(), MODEL.kvHeads());
        int[] readers = map.readersOf(prefillRank % group.shape.prefillTp());
        return readers[readers.length - 1];
    }

    /** A prefill rank, of the last stage, that writes to the decode rank. */
    private static int writerOf(KvGroup group, int decodeRank) {
        RankMap map = RankMap.of(group.shape.prefillTp(), group.shape.decodeTp(), MODEL.kvHeads());
        int[] writers = map.writersOf(decodeRank);
        return group.prefill.size() - group.shape.prefillTp() + writers[writers.length - 1];
    }

    /** The shapes, and those that can stage once more with staging. */
    private static Map<Shape, List<Staging>> groups() {
        Map<Shape, List<Staging>> groups = new LinkedHashMap<>();
        for (Shape shape : SHAPES) {
            List<Staging> stagings = new ArrayList<>(List.of(Staging.NONE));
            if (shape.prefillTp() != shape.decodeTp()) {
                // Room for the last chunk, and hardly for more: the others wait for the ring.
                long chunk = MODEL.stagedBytes(shape, 8);
                stagings.add(new Staging(chunk + chunk / 4, chunk, 1));
            }
            groups.put(shape, stagings);
        }
        return groups;
    }

    private void everywhere(boolean onPrefill, Act act, String message) throws Exception {
        for (Map.Entry<Shape, List<Staging>> entry : groups().entrySet()) {
            for (Staging staging : entry.getValue()) {
                try (KvGroup group = new KvGroup(options(), entry.getKey(), MODEL, staging)) {
                    for (Step step : Step.values()) {
                        atStep(group, step, onPrefill, act, message);
                    }
                }
            }
        }
    }

    /** On the first and on the last rank of a side. */
    private static void atStep(KvGroup group, Step step, boolean onPrefill, Act act, String message)
            throws Exception {
        int ranks = onPrefill ? group.prefill.size() : group.decode.size();
        for (int rank : ranks == 1 ? new int[] {0} : new int[] {0, ranks - 1}) {
            if (!onPrefill || (step != Step.ANNOUNCED && writes(group, rank))) {
                // One that gives no last chunk, and so keeps the request of the acting rank open.
                int late = onPrefill ? rank : writerOf(group, rank);
                fails(group, step, late, act, rank, message);
            }
        }
    }

    private static boolean writes(KvGroup group, int prefillRank) {
        RankMap map = RankMap.of(group.shape.prefillTp(), group.shape.decodeTp(), MODEL.kvHeads());
        return map.readersOf(prefillRank % group.shape.prefillTp()).length > 0;
    }

    /** Drives a request to a step, has it fail there, and drives another one to its end. */
    private static void fails(KvGroup group, Step step, int late, Act act, int rank, String message)
            throws Exception {
        String what = "%s, %s, rank %d".formatted(group.shape, step, rank);
        Job job = group.new Job(ROOM, 30);
        boolean[] isLastGiven = new boolean[group.prefill.size()];
        drive(job, step, late, isLastGiven);

        act.on(group, job, rank);

        boolean allEndedWell = true;
        for (int decode = 0; decode < job.requests.size(); decode++) {
            KvRequest request = job.requests.get(decode);
            boolean mayBeReady = true;
            for (int prefill = 0; prefill < isLastGiven.length; prefill++) {
                mayBeReady &=
                        isLastGiven[prefill]
                                || request.writer(group.decode.get(decode).peers.get(prefill))
                                        == null;
            }
            allEndedWell &= endedWell(what, mayBeReady, message, () -> request.await(KvGroup.SOON));
        }
        assertThat(allEndedWell).as(what).isFalse();
        for (int prefill = 0; prefill < job.sends.size(); prefill++) {
            KvSend send = job.sends.get(prefill);
            endedWell(what, isLastGiven[prefill], message, send::await);
        }
        job.close();
        for (Rank decode : group.decode) {
            decode.pool.segment().fill(NEXT_OWNER);
            Arrays.fill(decode.expected, NEXT_OWNER);
        }
        group.assertQuiet();
        job.assertEndedOnce();
        group.assertBytes();

        group.reconnectLost();
        group.new Job(ROOM, 30).run(3);
        group.assertBytes();
        group.assertQuiet();
    }

    private static void drive(Job job, Step step, int late, boolean[] isLastGiven)
            throws InterruptedException {
        job.expect();
        if (step == Step.ANNOUNCED) {
            return;
        }
        job.begin();
        if (step == Step.BEGUN) {
            return;
        }
        for (int rank = 0; rank < job.sends.size(); rank++) {
            int[] pages = job.prefillSlots.get(rank).pageSlots();
            job.sends.get(rank).chunk(pages[0], pages[1]);
        }
        for (int rank = 0; rank < job.sends.size(); rank++) {
            boolean gives =
                    switch (step) {
                        case LAST_OF_ONE_RANK -> rank == (late + 1) % job.sends.size();
                        case LAST_OF_ALL_BUT_ONE -> true;
                        default -> false;
                    };
            if (gives && rank != late) {
                job.sends.get(rank).last(job.lastSlots(rank, 2));
                isLastGiven[rank] = true;
            }
        }
    }

    @FunctionalInterface
    private interface Wait {
        void run() throws InterruptedException;
    }

    private static boolean endedWell(String what, boolean mayEndWell, String message, Wait wait)
            throws InterruptedException {
        try {
            wait.run();
            assertThat(mayEndWell).as(what).isTrue();
            return true;
        } catch (KvException failed) {
            assertThat(failed).as(what).hasMessageContaining(message);
            return false;
        }
    }

    /** Where everything was given the race is open, but every end is an end, and whole. */
    @Test
    void aRequestThatIsAbortedWhileItEndsIsEitherWholeOrFailed() throws Exception {
        for (Map.Entry<Shape, List<Staging>> entry : groups().entrySet()) {
            for (Staging staging : entry.getValue()) {
                try (KvGroup group = new KvGroup(options(), entry.getKey(), MODEL, staging)) {
                    for (int round = 0; round < 6; round++) {
                        abortWhileItEnds(group, round % 2 == 0);
                    }
                }
            }
        }
    }

    private static void abortWhileItEnds(KvGroup group, boolean byDecode) throws Exception {
        Job job = group.new Job(ROOM, 30);
        job.expect();
        job.begin();
        job.sendAll(2);
        if (byDecode) {
            job.requests.getLast().abort("late");
        } else {
            job.sends.getLast().fail("late");
        }
        boolean isWhole = true;
        for (KvRequest request : job.requests) {
            isWhole &= endedWell("", true, "late", () -> request.await(KvGroup.SOON));
        }
        for (KvSend send : job.sends) {
            endedWell("", true, "late", send::await);
        }
        if (isWhole) {
            job.isExpected();
            group.assertBytes();
        }
        job.close();
        group.assertQuiet();
        job.assertEndedOnce();
        for (Rank decode : group.decode) {
            decode.pool.segment().fill(NEXT_OWNER);
            Arrays.fill(decode.expected, NEXT_OWNER);
        }
    }

    /** The prefill side need not wait out its time for a rank that will not come. */
    @Test
    void aWaitForRanksThatWillNotComeEndsAtOnce() throws Exception {
        try (KvGroup group = new KvGroup(options(), Shape.of(1, 2), MODEL, Staging.NONE)) {
            Job job = group.new Job(ROOM, 8);
            KvRequest request = job.expect(0);
            KvSender sender = group.senders.getFirst();
            awaitAnnouncements(sender, 1);
            assertThat(sender.announcedRooms()).isEmpty();
            assertThatExceptionOfType(KvException.class)
                    .isThrownBy(() -> sender.begin(ROOM, Duration.ofMillis(20)))
                    .withMessageContaining("decode ranks [1] did not announce room 8");
            AtomicReference<Throwable> failure = new AtomicReference<>();
            Thread begins =
                    Thread.ofPlatform()
                            .uncaughtExceptionHandler((_, thrown) -> failure.set(thrown))
                            .start(() -> beginWithoutEnd(sender));
            while (begins.getState() != Thread.State.TIMED_WAITING) {
                Thread.onSpinWait();
            }

            request.abort("the user hung up");

            begins.join();
            assertThat(failure.get())
                    .isInstanceOf(KvException.class)
                    .hasMessageContaining("the user hung up");
            job.close();
            group.assertQuiet();
        }
    }

    private static void beginWithoutEnd(KvSender sender) {
        try {
            sender.begin(ROOM, Duration.ofSeconds(Long.MAX_VALUE)).close();
        } catch (InterruptedException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** Nobody would tell it otherwise: the rank that gave the request up does not know it. */
    @Test
    void aRankThatAnnouncesARoomThatHasFailedIsToldAtOnce() throws Exception {
        try (KvGroup group = new KvGroup(options(), Shape.of(1, 2), MODEL, Staging.NONE)) {
            KvSender sender = group.senders.getFirst();
            for (int round = 0; round < 3; round++) {
                Job job = group.new Job(ROOM, 8);
                KvRequest first = job.expect(0);
                awaitAnnouncements(sender, 1);
                first.abort("enough");
                first.close();
                awaitAnnouncements(sender, 0);

                KvRequest second = job.expect(1);

                assertThatExceptionOfType(KvException.class)
                        .isThrownBy(() -> second.await(KvGroup.SOON))
                        .withMessageContaining("enough");
                job.close();
                group.new Job(ROOM, 30).run(3);
            }
            group.assertBytes();
            group.assertQuiet();
        }
    }

    /** What one rank expects otherwise than the others cannot be sent to any. */
    @Test
    void ranksThatDoNotAgreeFailTogether() throws Exception {
        try (KvGroup group = new KvGroup(options(), Shape.of(1, 2), MODEL, Staging.NONE)) {
            Job job = group.new Job(ROOM, 8);
            job.decodeSlots.set(1, KvSlots.pages(3).state("swa", 1).aux(2));
            job.expect();

            for (KvRequest request : job.requests) {
                assertThatExceptionOfType(KvException.class)
                        .isThrownBy(() -> request.await(KvGroup.SOON))
                        .withMessageContaining("expects 1 pages")
                        .withMessageContaining("decode rank 0 (decode-0) 2");
            }
            job.close();
            group.assertQuiet();
        }
    }

    private static void awaitAnnouncements(KvSender sender, int count) {
        while (sender.announcements() != count) {
            Thread.onSpinWait();
        }
    }

    @Test
    void ranksThatAreMissingAreRefusedAndNothingIsAnnounced() throws Exception {
        try (KvGroup group = new KvGroup(options(), Shape.of(2, 1), MODEL, Staging.NONE)) {
            Job job = group.new Job(ROOM, 8);
            KvReceiver receiver = group.receivers.getFirst();
            List<Peer> peers = group.decode.getFirst().peers;

            assertThatIllegalArgumentException()
                    .isThrownBy(() ->
                            receiver.expect(ROOM, peers.subList(0, 1), job.decodeSlots.getFirst()))
                    .withMessageContaining("prefill rank 1 of 2 is missing");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> receiver.expect(ROOM, peers, KvSlots.pages(1)))
                    .withMessageContaining("items of state 'swa' are missing");
            assertThat(group.senders).allMatch(sender -> sender.announcements() == 0);
            group.assertQuiet();
            job.run(1);
            group.assertBytes();
        }
    }

    /** What does not fit is found before anything is posted, and the request goes on. */
    @Test
    void slotsOfThePrefillSideThatDoNotFitAreRefusedByName() throws Exception {
        try (KvGroup group = new KvGroup(options(), Shape.of(1, 2), MODEL, Staging.NONE)) {
            Job job = group.new Job(ROOM, 8);
            job.expect();
            job.begin();
            KvSend send = job.sends.getFirst();
            KvSlots last = job.lastSlots(0, 0);
            List<KvSlots> wrong = new ArrayList<>();
            List<String> messages = new ArrayList<>();
            wrong.add(KvSlots.pages(last.pageSlots()).aux(0));
            messages.add("items of state 'swa' are missing");
            wrong.add(KvSlots.pages(last.pageSlots()).state("swa", last.requireItems("swa")));
            messages.add("there is no aux slot");
            wrong.add(last.state("nsa", 1));
            messages.add("state 'nsa'");
            wrong.add(KvSlots.pages(0).state("swa", last.requireItems("swa")).aux(0));
            messages.add("2 of 2 pages are left");
            wrong.add(KvSlots.pages(0, 99).state("swa", last.requireItems("swa")).aux(0));
            messages.add("prefillPages[1] = 99");
            wrong.add(last.aux(99));
            messages.add("prefillIndex = 99");
            for (int i = 0; i < wrong.size(); i++) {
                KvSlots slots = wrong.get(i);
                assertThatExceptionOfType(RuntimeException.class)
                        .isThrownBy(() -> send.last(slots))
                        .matches(refused ->
                                refused instanceof IllegalArgumentException
                                        || refused instanceof IndexOutOfBoundsException)
                        .withMessageContaining(messages.get(i));
            }
            assertThat(send.bytesDone()).isZero();
            group.assertBytes();

            send.last(last);
            job.awaitAll();
            job.isExpected();
            job.close();
            group.assertBytes();
            group.assertQuiet();
        }
    }
}
