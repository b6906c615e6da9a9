package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.verbena.kv.KvGroup.Job;
import dev.verbena.kv.KvGroup.Shape;
import dev.verbena.kv.KvGroup.Staging;
import dev.verbena.transfer.NodeOptions;
import java.util.Arrays;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.assertj.core.api.ThrowableAssertAlternative;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * What staging refuses it refuses one request for, with the setting to change; and no chunk that
 * waits for the ring holds up another that it does not overlap. Over TCP, which needs no device;
 * the time limit is a guard against hanging.
 */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class KvStagingTest {
    private static final ModelOfBytes MODEL = ModelOfBytes.heads(4);

    @Test
    void aChunkLargerThanTheRingFailsItsRequestOnly() throws Exception {
        Shape shape = Shape.of(2, 1);
        long page = MODEL.stagedBytes(shape, 1);
        try (KvGroup group = group(shape, new Staging(3 * page, 16 * page, 2))) {
            Job large = group.new Job(1, 41);
            large.expect();
            large.begin();
            // Of one rank, as the refusal of its chunk may come before the other gives its own.
            assertThatRefusal(() -> large.send(0, 100), large.sends.getFirst())
                    .withMessageContaining("more than the whole staging ring")
                    .withMessageContaining("KvReceiverOptions.staging");
            assertThatExceptionOfType(KvException.class)
                    .isThrownBy(() -> large.requests.getFirst().await(KvGroup.SOON))
                    .withMessageContaining("more than the whole staging ring")
                    .withMessageContaining("KvReceiverOptions.staging");
            large.close();
            group.new Job(2, 41).run(2);
            group.assertBytes();
            group.assertQuiet();
        }
    }

    @Test
    void aChunkLargerThanABufferFailsItsRequestOnly() throws Exception {
        Shape shape = Shape.of(1, 2);
        long page = MODEL.stagedBytes(shape, 1);
        try (KvGroup group = group(shape, new Staging(16 * page, page, 2))) {
            Job large = group.new Job(1, 41);
            large.expect();
            large.begin();
            int[] pages = Arrays.copyOf(large.prefillSlots.getFirst().pageSlots(), 9);
            assertThatExceptionOfType(KvException.class)
                    .isThrownBy(() -> large.sends.getFirst().chunk(pages))
                    .withMessageContaining("a staging buffer of the prefill side")
                    .withMessageContaining("KvSenderOptions.staging");
            for (KvRequest request : large.requests) {
                assertThatExceptionOfType(KvException.class)
                        .isThrownBy(() -> request.await(KvGroup.SOON))
                        .withMessageContaining("send smaller chunks");
            }
            large.close();
            group.new Job(2, 41).run(1);
            group.assertBytes();
            group.assertQuiet();
        }
    }

    @Test
    void ranksThatChunkDifferentlyFailTheRequestByName() throws Exception {
        Shape shape = Shape.of(2, 1);
        long page = MODEL.stagedBytes(shape, 1);
        try (KvGroup group = group(shape, new Staging(64 * page, 64 * page, 2))) {
            Job job = group.new Job(1, 41);
            job.expect();
            job.begin();
            job.sends.get(0).chunk(Arrays.copyOf(job.prefillSlots.get(0).pageSlots(), 4));
            int[] fewer = Arrays.copyOf(job.prefillSlots.get(1).pageSlots(), 3);

            assertThatRefusal(() -> job.sends.get(1).chunk(fewer), job.sends.get(1))
                    .withMessageContaining("must chunk alike");
            assertThatExceptionOfType(KvException.class)
                    .isThrownBy(() -> job.requests.getFirst().await(KvGroup.SOON))
                    .withMessageContaining("must chunk alike");
            job.close();
            group.assertQuiet();
        }
    }

    /**
     * The ring holds one chunk. Each prefill rank is given the chunks of two requests, in opposite
     * order: the region of whichever asked first is written by both, though one of them has queued
     * a chunk of the other request before.
     */
    @Test
    void requestsInOppositeOrderOnTwoRanksDoNotLockUp() throws Exception {
        Shape shape = Shape.of(2, 1);
        long chunk = MODEL.stagedBytes(shape, 3);
        for (int buffers : new int[] {1, 2}) {
            try (KvGroup group = group(shape, new Staging(chunk, chunk, buffers))) {
                Job first = group.new Job(2, 60);
                Job second = group.new Job(3, 60);
                first.expect();
                second.expect();
                first.begin();
                second.begin();
                first.send(0, 3);
                second.send(1, 3);
                second.send(0, 3);
                first.send(1, 3);
                for (Job job : new Job[] {first, second}) {
                    job.awaitAll();
                    job.isExpected();
                    job.close();
                }
                group.assertBytes();
                group.assertQuiet();
            }
        }
    }

    /** One request is begun by one of its two writers only, and so keeps the ring. */
    @Test
    void aFullRingDelaysOnlyWhatNeedsIt() throws Exception {
        Shape shape = Shape.of(2, 1);
        long chunk = MODEL.stagedBytes(shape, 3);
        try (KvGroup group = group(shape, new Staging(chunk, chunk, 1))) {
            Job stuck = group.new Job(2, 12);
            Job waiting = group.new Job(3, 12);
            stuck.expect();
            waiting.expect();
            stuck.begin();
            waiting.begin();
            stuck.send(0, 3);
            waiting.sendAll(3);
            assertThat(waiting.requests.getFirst().completion().toCompletableFuture().isDone())
                    .as("while the ring is full")
                    .isFalse();

            // A request without a page needs no room in the ring, and passes both.
            group.new Job(5, 0).run(1);
            stuck.requests.getFirst().abort("its second writer never comes");

            waiting.awaitAll();
            waiting.isExpected();
            stuck.close();
            waiting.close();
            group.assertBytes();
            group.assertQuiet();
        }
    }

    /**
     * A chunk that the decode side refuses: its word may come while the chunk is being given, which
     * then throws it, or later, and then the wait for the send does.
     */
    private static ThrowableAssertAlternative<KvException> assertThatRefusal(
            ThrowingCallable giving, KvSend send) {
        return assertThatExceptionOfType(KvException.class)
                .isThrownBy(() -> {
                    giving.call();
                    send.await();
                });
    }

    private static KvGroup group(Shape shape, Staging staging) throws Exception {
        return new KvGroup(
                NodeOptions.tcp(),
                shape,
                MODEL,
                MODEL,
                KvSenderOptions.defaults(),
                KvReceiverOptions.defaults(),
                staging);
    }
}
