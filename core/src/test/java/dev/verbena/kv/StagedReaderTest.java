package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.verbena.transfer.Peer;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Regions of the ring in every state, and whatever ends a request in it: a region is free again
 * when no writer can write to it any more, never earlier, never not at all, and its chunk is
 * scattered if all of it has come, and never once the request has failed.
 *
 * <p>The prefill ranks, two, are played by the test, which says what they say and when.
 */
@Timeout(value = 180, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class StagedReaderTest {
    private static final int CHUNK_PAGES = 3;
    private static final int PAGES = 9;

    private final StagedRig rig = new StagedRig(CHUNK_PAGES, 2.5);
    private final StagedRig.Writer first = rig.writers.getFirst();
    private final StagedRig.Writer second = rig.writers.getLast();
    private long lastRoom = 100;

    StagedReaderTest() throws Exception {}

    @BeforeEach
    void connect() throws Exception {
        rig.connect();
    }

    @AfterEach
    void nothingIsLeft() throws Exception {
        try {
            rig.assertQuiet();
        } finally {
            rig.close();
        }
    }

    /** How far the first chunk of a request is. */
    private enum State {
        NOT_ASKED,
        ASKED_BY_ONE,
        ASKED_BY_BOTH,
        WRITTEN_BY_ONE,
        SCATTERED,
        NEXT_WAITS_FOR_THE_RING;

        /** Whether something of the request is in the ring that the second writer has to write. */
        boolean isOwedBySecond() {
            return this != NOT_ASKED && this != SCATTERED;
        }
    }

    /** What ends it. */
    private enum Event {
        ABORT,
        CLOSE,
        FIRST_WRITER_FAILS,
        FIRST_WRITER_IS_LOST,
        FIRST_WRITER_CHUNKS_OTHERWISE
    }

    @Test
    void aRegionIsFreeWhenNoWriterCanWriteInEveryStateAndByEveryEnd() throws Exception {
        for (State state : State.values()) {
            for (Event event : Event.values()) {
                for (boolean writesLate : new boolean[] {false, true}) {
                    String what = "%s, %s, %s".formatted(state, event, writesLate);
                    endsIn(what, state, event, writesLate);
                    rig.assertQuiet();
                }
            }
        }
    }

    private void endsIn(String what, State state, Event event, boolean writesLate)
            throws Exception {
        StagedRig.Job failing = job(PAGES);
        drive(failing, state);
        byte[] before = rig.memory();
        Thread closing = Thread.ofVirtual().unstarted(failing.request::close);
        Peer gone = first.decodesPeer();

        happens(failing, event, closing);
        second.awaitAbort(failing);
        assertThatExceptionOfType(KvException.class).as(what).isThrownBy(failing.request::await);

        // What the first writer asks for next comes behind its end: a region of the whole ring.
        StagedRig.Job next = job(rig.ringPages);
        StagedRig.await(() -> !failing.request.isOwedBy(gone));
        first.stage(next, 0, 0, rig.ringPages);
        first.awaitAssigned(next, 0);
        if (state.isOwedBySecond()) {
            assertThat(first.mayWrite(next, 0))
                    .as("%s: the ring is free while one may write", what)
                    .isFalse();
        }
        if (writesLate && state.isOwedBySecond() && state != State.ASKED_BY_ONE) {
            second.write(failing, 0);
        }
        second.end(failing);
        closing.join();
        rig.close(failing);
        assertThat(rig.memory()).as("%s: pages of the failed request", what).isEqualTo(before);
        rig.expectWhatIsThere();

        second.stage(next, 0, 0, rig.ringPages);
        for (StagedRig.Writer writer : rig.writers) {
            writer.awaitAssigned(next, 0);
            StagedRig.await(() -> writer.mayWrite(next, 0));
            writer.write(next, 0);
        }
        completes(next);
        rig.assertBytes(what);
    }

    private void drive(StagedRig.Job job, State state) throws Exception {
        if (state == State.NOT_ASKED) {
            return;
        }
        first.stage(job, 0, 0, CHUNK_PAGES);
        first.awaitAssigned(job, 0);
        if (state == State.ASKED_BY_ONE) {
            return;
        }
        second.stage(job, 0, 0, CHUNK_PAGES);
        second.awaitAssigned(job, 0);
        switch (state) {
            case WRITTEN_BY_ONE -> first.write(job, 0);
            case SCATTERED -> {
                first.write(job, 0);
                second.write(job, 0);
                rig.awaitScattered(job, CHUNK_PAGES);
            }
            case NEXT_WAITS_FOR_THE_RING -> {
                for (int chunk = 1; chunk < 3; chunk++) {
                    for (StagedRig.Writer writer : rig.writers) {
                        writer.stage(job, chunk, chunk * CHUNK_PAGES, CHUNK_PAGES);
                        writer.awaitAssigned(job, chunk);
                    }
                }
                assertThat(first.mayWrite(job, 2)).isFalse();
            }
            default -> {}
        }
    }

    /** Lets it happen, and the first writer end. */
    private void happens(StagedRig.Job job, Event event, Thread closing) throws Exception {
        switch (event) {
            case ABORT -> {
                job.request.abort("enough");
                first.awaitAbort(job);
                first.end(job);
            }
            case CLOSE -> {
                closing.start();
                first.awaitAbort(job);
                first.end(job);
            }
            case FIRST_WRITER_FAILS -> first.fail(job);
            case FIRST_WRITER_IS_LOST -> rig.reconnect(first);
            case FIRST_WRITER_CHUNKS_OTHERWISE -> {
                first.stage(job, 7, PAGES - 1, 1);
                first.awaitAbort(job);
                assertThatExceptionOfType(KvException.class)
                        .isThrownBy(job.request::await)
                        .withMessageContaining("come next");
                first.end(job);
            }
        }
    }

    /** Two requests that the two ranks stage in opposite order, through a ring that holds one. */
    @Test
    void requestsInOppositeOrderBothFinishThoughTheRingHoldsOneChunk() throws Exception {
        StagedRig.Job one = job(rig.ringPages);
        StagedRig.Job other = job(rig.ringPages);
        List<StagedRig.Job> order = List.of(one, other);
        first.stage(one, 0, 0, rig.ringPages);
        first.awaitAssigned(one, 0);
        second.stage(other, 0, 0, rig.ringPages);
        second.awaitAssigned(other, 0);
        first.stage(other, 0, 0, rig.ringPages);
        second.stage(one, 0, 0, rig.ringPages);
        first.awaitAssigned(other, 0);
        second.awaitAssigned(one, 0);

        for (StagedRig.Job job : order) {
            for (StagedRig.Writer writer : rig.writers) {
                StagedRig.await(() -> writer.mayWrite(job, 0));
                assertThat(writer.mayWrite(order.getLast(), 0)).isEqualTo(job.equals(other));
                writer.write(job, 0);
            }
        }

        completes(one);
        completes(other);
        rig.assertBytes("both");
    }

    @Test
    void chunksOfOneRegionAreScatteredWhicheverWriterComesFirst() throws Exception {
        for (List<StagedRig.Writer> order :
                List.of(List.of(first, second), List.of(second, first))) {
            StagedRig.Job job = job(CHUNK_PAGES);
            byte[] before = rig.memory();
            for (StagedRig.Writer writer : order) {
                writer.stage(job, 0, 0, CHUNK_PAGES);
                writer.awaitAssigned(job, 0);
                assertThat(rig.memory()).as("half a chunk").isEqualTo(before);
                writer.write(job, 0);
            }
            completes(job);
            rig.assertBytes(order.toString());
        }
    }

    /** A request that has been told to be done is ready only once its chunks are scattered. */
    @Test
    void aRequestWhoseChunksAreMissingIsNotReady() throws Exception {
        StagedRig.Job job = job(PAGES);
        for (StagedRig.Writer writer : rig.writers) {
            writer.stage(job, 0, 0, CHUNK_PAGES);
            writer.awaitAssigned(job, 0);
            writer.write(job, 0);
            writer.done(job);
        }
        StagedRig.await(() ->
                rig.writers.stream()
                        .noneMatch(writer -> job.request.isOwedBy(writer.decodesPeer())));
        rig.awaitScattered(job, CHUNK_PAGES);

        assertThat(job.request.completion().toCompletableFuture().isDone()).isFalse();
        rig.close(job);
    }

    @Test
    void whatDoesNotFitFailsItsRequestByNameAndNoOther() throws Exception {
        StagedRig.Job bystander = job(CHUNK_PAGES);
        first.stage(bystander, 0, 0, CHUNK_PAGES);
        first.awaitAssigned(bystander, 0);
        long bytes = rig.bytesPerRank(1);
        int more = rig.ringPages + 1;

        refuses("KvReceiverOptions.staging", 0, 0, more, more * bytes, more);
        refuses("come next", 0, 1, 1, bytes, PAGES);
        refuses("come next", 0, -1, 1, bytes, PAGES);
        refuses("come next", 0, 0, PAGES + 1, (PAGES + 1) * bytes, PAGES);
        refuses("has 0 pages", 0, 0, 0, 0, PAGES);
        refuses("has -1 pages", 0, 0, -1, -bytes, PAGES);
        refuses("is said to have", 0, 0, 1, bytes + 1, PAGES);
        refuses("is said to have", 0, 0, 1, -bytes, PAGES);
        refuses("is said to have", 0, 0, 1, Long.MAX_VALUE, PAGES);
        // A number from a rank whose pages are another's number: the chunks are not the same.
        StagedRig.Job job = job(PAGES);
        second.stage(job, 0, 0, 2);
        second.awaitAssigned(job, 0);
        first.stage(job, 0, 0, 1);
        failsByName(job, "all ranks of a stage must chunk alike");

        assertThat(bystander.request.hasFailed()).isFalse();
        first.write(bystander, 0);
        second.stage(bystander, 0, 0, CHUNK_PAGES);
        second.awaitAssigned(bystander, 0);
        second.write(bystander, 0);
        completes(bystander);
        rig.assertBytes("only the bystander has come");
    }

    private void refuses(
            String message, int chunk, int firstPage, int pages, long bytes, int requestPages)
            throws Exception {
        StagedRig.Job job = job(requestPages);
        first.stage(job, chunk, firstPage, pages, bytes);
        failsByName(job, message);
    }

    private void failsByName(StagedRig.Job job, String message) throws Exception {
        for (StagedRig.Writer writer : rig.writers) {
            writer.awaitAbort(job);
        }
        assertThatExceptionOfType(KvException.class)
                .isThrownBy(job.request::await)
                .withMessageContaining(message)
                .withMessageContaining(first.name());
        for (StagedRig.Writer writer : rig.writers) {
            writer.end(job);
        }
        rig.close(job);
    }

    /** A region that is another's by now is not given out for a chunk that was scattered. */
    @Test
    void aChunkThatWasScatteredIsNotStagedAgain() throws Exception {
        StagedRig.Job job = job(PAGES);
        for (StagedRig.Writer writer : rig.writers) {
            writer.stage(job, 0, 0, CHUNK_PAGES);
            writer.awaitAssigned(job, 0);
            writer.write(job, 0);
        }
        rig.awaitScattered(job, CHUNK_PAGES);
        rig.expectWhatIsThere();
        first.stage(job, 0, 0, CHUNK_PAGES);

        failsByName(job, "staged already");
        rig.assertBytes("scattered once");
    }

    /** Messages about requests that are over, or never were, are ignored. */
    @Test
    void whatComesLateDoesNothing() throws Exception {
        StagedRig.Job over = job(CHUNK_PAGES);
        over.request.abort("enough");
        for (StagedRig.Writer writer : rig.writers) {
            writer.awaitAbort(over);
            writer.stage(over, 0, 0, CHUNK_PAGES);
            writer.end(over);
            writer.stage(over, 1, 0, CHUNK_PAGES);
        }
        // What is heard of another request behind that is heard when that has been.
        StagedRig.Job behind = job(1);
        for (StagedRig.Writer writer : rig.writers) {
            writer.stage(behind, 0, 0, 1);
            writer.awaitAssigned(behind, 0);
            assertThat(writer.mayWrite(behind, 0)).as("nothing else is in the ring").isTrue();
            writer.write(behind, 0);
        }
        completes(behind);
        rig.close(over);
        for (StagedRig.Writer writer : rig.writers) {
            writer.stage(over, 1, 0, CHUNK_PAGES);
        }
        StagedRig.Job next = job(rig.ringPages);
        for (StagedRig.Writer writer : rig.writers) {
            writer.stage(next, 0, 0, rig.ringPages);
            writer.awaitAssigned(next, 0);
            assertThat(writer.mayWrite(next, 0)).as("nothing else is in the ring").isTrue();
            writer.write(next, 0);
        }
        completes(next);
        rig.assertBytes("the next");
    }

    private StagedRig.Job job(int pages) throws Exception {
        return rig.expect(++lastRoom, pages);
    }

    /** All of its chunks are written. */
    private void completes(StagedRig.Job job) throws Exception {
        for (StagedRig.Writer writer : rig.writers) {
            writer.done(job);
        }
        job.request.await();
        rig.expectAll(job);
        rig.close(job);
    }
}
