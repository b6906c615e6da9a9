package dev.verbena.kv;

import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * How a {@link KvSender} moves what it sends. Immutable, by withers.
 *
 * <p>Which category moves the KV follows from the caches of both sides; the options choose where
 * there is a choice.
 */
public final class KvSenderOptions {
    private static final KvSenderOptions DEFAULTS =
            new KvSenderOptions(false, Integer.MAX_VALUE, null, 0);

    private final boolean layerByLayer;
    private final int maxPagesPerBatch;
    private final @Nullable StagingArea stagingArea;
    private final int stagingBuffers;

    private KvSenderOptions(
            boolean layerByLayer,
            int maxPagesPerBatch,
            @Nullable StagingArea stagingArea,
            int stagingBuffers) {
        this.layerByLayer = layerByLayer;
        this.maxPagesPerBatch = maxPagesPerBatch;
        this.stagingArea = stagingArea;
        this.stagingBuffers = stagingBuffers;
    }

    /**
     * Gives the defaults: all layers of a chunk in one batch, no staging.
     *
     * @return the options
     */
    public static KvSenderOptions defaults() {
        return DEFAULTS;
    }

    /**
     * Chooses between one batch for all layers of a chunk (category 1) and a batch per layer,
     * posted concurrently (category 2), for pools whose layers are registered apart.
     *
     * @param on true for a batch per layer; false is the default
     * @return the changed options
     */
    public KvSenderOptions layerByLayer(boolean on) {
        return new KvSenderOptions(on, maxPagesPerBatch, stagingArea, stagingBuffers);
    }

    /**
     * Bounds the batches that move pages with all layers together (category 1): a chunk of more
     * pages becomes several batches, posted one behind the other. Has no effect on the others.
     *
     * @param pages most pages of a batch, at least 1; unbounded is the default
     * @return the changed options
     * @throws IllegalArgumentException if it is below 1
     */
    public KvSenderOptions maxPagesPerBatch(int pages) {
        return new KvSenderOptions(
                layerByLayer,
                Checks.positive("maxPagesPerBatch", pages),
                stagingArea,
                stagingBuffers);
    }

    /**
     * Moves heads between different TP sizes through staging areas (category 5), with decode ranks
     * that have one too. With the others, and by default, heads are written token by token
     * (category 9).
     *
     * @param area memory of a pool of the node, which the sender has for itself; a chunk must fit
     *     into a part
     * @param buffers equal parts that it is divided into, at least 1: so many chunks are under way
     *     at a time
     * @return the changed options
     * @throws IllegalArgumentException if there is no buffer, or a part would hold no byte
     */
    public KvSenderOptions staging(StagingArea area, int buffers) {
        Checks.positive("buffers", buffers);
        if (area.lengthBytes() < buffers) {
            throw new IllegalArgumentException(
                    "a staging area of %d bytes cannot be divided into %d buffers"
                            .formatted(area.lengthBytes(), buffers));
        }
        return new KvSenderOptions(layerByLayer, maxPagesPerBatch, area, buffers);
    }

    boolean isLayerByLayer() {
        return layerByLayer;
    }

    /** Most pages of a batch, if bounded. */
    OptionalInt maxPagesPerBatch() {
        return maxPagesPerBatch == Integer.MAX_VALUE
                ? OptionalInt.empty()
                : OptionalInt.of(maxPagesPerBatch);
    }

    Optional<StagingArea> stagingArea() {
        return Optional.ofNullable(stagingArea);
    }

    int stagingBuffers() {
        return stagingBuffers;
    }
}
