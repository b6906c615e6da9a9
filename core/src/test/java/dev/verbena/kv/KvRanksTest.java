package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.kv.KvGroup.Job;
import dev.verbena.kv.KvGroup.Shape;
import dev.verbena.kv.KvGroup.Staging;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.verbs.Lifetime;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Requests between groups of ranks of all shapes, by every category: each byte of every decode rank
 * is what a naive model says, and no other byte was written. Nothing is left on any rank.
 */
abstract class KvRanksTest {
    private static final KvSenderOptions SENDING = KvSenderOptions.defaults();
    private static final KvReceiverOptions RECEIVING = KvReceiverOptions.defaults();

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

    @Test
    void headsBetweenAnyTpSizes() throws Exception {
        for (Shape shape :
                List.of(
                        Shape.of(1, 1),
                        Shape.of(1, 2),
                        Shape.of(2, 1),
                        Shape.of(2, 2),
                        Shape.of(2, 4),
                        Shape.of(4, 2),
                        Shape.of(4, 1))) {
            run(shape, ModelOfBytes.heads(4));
        }
    }

    @Test
    void eightRanksToFour() throws Exception {
        run(Shape.of(8, 4), ModelOfBytes.heads(8).withMamba().withAux());
    }

    @Test
    void headsThatSeveralRanksHold() throws Exception {
        for (Shape shape :
                List.of(Shape.of(4, 2), Shape.of(2, 4), Shape.of(4, 4), Shape.of(4, 1))) {
            run(shape, ModelOfBytes.heads(2));
            run(shape, ModelOfBytes.heads(1).withSwa().withMamba().withAux());
        }
    }

    @Test
    void latentsBetweenAnyTpSizes() throws Exception {
        for (Shape shape :
                List.of(Shape.of(1, 1), Shape.of(2, 4), Shape.of(4, 2), Shape.of(1, 2))) {
            run(shape, ModelOfBytes.latents());
            run(shape, ModelOfBytes.latents().withSwa().withMamba().withAux());
        }
    }

    @Test
    void pipelineStagesToARankThatHoldsAllLayers() throws Exception {
        for (Shape shape : List.of(new Shape(1, 2, 1), new Shape(2, 2, 2), new Shape(2, 2, 1))) {
            run(shape, ModelOfBytes.heads(2).withSwa().withMamba().withAux());
            run(shape, ModelOfBytes.latents().withAux());
        }
    }

    @Test
    void stateAndAuxiliaryDataBetweenAnyTpSizes() throws Exception {
        for (Shape shape :
                List.of(Shape.of(1, 1), Shape.of(2, 2), Shape.of(1, 2), Shape.of(4, 2))) {
            run(shape, ModelOfBytes.heads(4).withSwa());
            run(shape, ModelOfBytes.heads(4).withMamba());
            run(shape, ModelOfBytes.heads(4).withAux());
            run(shape, ModelOfBytes.heads(4).withSwa().withMamba().withAux());
        }
    }

    @Test
    void auxiliaryDataByMessage() throws Exception {
        ModelOfBytes model = ModelOfBytes.heads(2).withMamba().withAux();
        KvReceiverOptions byMessage = RECEIVING.auxByMessage(true);
        for (Shape shape : List.of(Shape.of(1, 1), Shape.of(2, 1), new Shape(1, 2, 2))) {
            run(shape, model, model, SENDING, byMessage);
        }
    }

    @Test
    void pagesToSingleTokens() throws Exception {
        ModelOfBytes heads = ModelOfBytes.heads(2).withSwa().withAux();
        ModelOfBytes latents = ModelOfBytes.latents();
        for (Shape shape : List.of(Shape.of(1, 1), Shape.of(2, 2), new Shape(2, 2, 2))) {
            run(shape, heads, heads.withPageTokens(1), SENDING, RECEIVING);
        }
        for (Shape shape : List.of(Shape.of(1, 2), Shape.of(2, 1))) {
            run(shape, latents, latents.withPageTokens(1), SENDING, RECEIVING);
        }
    }

    @Test
    void layerByLayerAndInBoundedBatches() throws Exception {
        for (ModelOfBytes model : List.of(ModelOfBytes.heads(2), ModelOfBytes.latents())) {
            for (Shape shape : List.of(Shape.of(1, 1), new Shape(1, 2, 1))) {
                run(shape, model, model, SENDING.layerByLayer(true), RECEIVING);
                run(shape, model, model, SENDING.maxPagesPerBatch(3), RECEIVING);
            }
        }
    }

    /** The ring holds two chunks at most, so that a request goes round it many times. */
    @Test
    void headsThroughStagingBetweenAnyTpSizes() throws Exception {
        ModelOfBytes model = ModelOfBytes.heads(4);
        for (Shape shape :
                List.of(
                        Shape.of(1, 2),
                        Shape.of(2, 1),
                        Shape.of(2, 4),
                        Shape.of(4, 2),
                        Shape.of(4, 1),
                        new Shape(1, 2, 2),
                        new Shape(2, 2, 1))) {
            stage(shape, model);
        }
        stage(Shape.of(4, 2), ModelOfBytes.heads(2).withSwa().withMamba().withAux());
        stage(Shape.of(8, 4), ModelOfBytes.heads(8).withMamba().withAux());
        stage(Shape.of(2, 4), ModelOfBytes.heads(1));
    }

    private void stage(Shape shape, ModelOfBytes model) throws Exception {
        long chunk = model.stagedBytes(shape, 3);
        Staging staging = new Staging(2 * chunk + chunk / 2, chunk, 2);
        try (KvGroup group =
                new KvGroup(options(), shape, model, model, SENDING, RECEIVING, staging)) {
            group.new Job(1, 41).run(2);
            group.new Job(2, 64).run(3);
            group.new Job(3, 0).run(1);
            group.assertBytes();
            two(group, 3);
        }
    }

    private void run(Shape shape, ModelOfBytes model) throws Exception {
        run(shape, model, model, SENDING, RECEIVING);
    }

    /** One at a time, in small chunks and in a large one; without a page; and two at a time. */
    private void run(
            Shape shape,
            ModelOfBytes prefill,
            ModelOfBytes decode,
            KvSenderOptions sending,
            KvReceiverOptions receiving)
            throws Exception {
        try (KvGroup group =
                new KvGroup(options(), shape, prefill, decode, sending, receiving, Staging.NONE)) {
            group.new Job(1, 41).run(2);
            group.new Job(2, 64).run(100);
            group.new Job(3, 0).run(1);
            group.assertBytes();

            two(group, 3);
        }
    }

    private static void two(KvGroup group, int chunkPages) throws Exception {
        Job first = group.new Job(4, 50);
        Job second = group.new Job(5, 14);
        first.expect();
        second.expect();
        second.begin();
        first.begin();
        first.sendAll(chunkPages);
        second.sendAll(1);
        for (Job job : List.of(second, first)) {
            job.awaitAll();
            job.isExpected();
            job.close();
        }
        group.assertBytes();
        group.assertQuiet();
    }
}
