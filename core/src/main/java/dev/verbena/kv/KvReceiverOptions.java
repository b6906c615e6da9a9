package dev.verbena.kv;

import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** How a {@link KvReceiver} has requests sent to it. Immutable, by withers. */
public final class KvReceiverOptions {
    private static final KvReceiverOptions DEFAULTS = new KvReceiverOptions(null, false);

    private final @Nullable StagingArea stagingRing;
    private final boolean auxByMessage;

    private KvReceiverOptions(@Nullable StagingArea stagingRing, boolean auxByMessage) {
        this.stagingRing = stagingRing;
        this.auxByMessage = auxByMessage;
    }

    /**
     * Gives the defaults: no staging, auxiliary data by RDMA.
     *
     * @return the options
     */
    public static KvReceiverOptions defaults() {
        return DEFAULTS;
    }

    /**
     * Takes heads from prefill ranks of another TP size through a staging area (category 5), if
     * they stage too.
     *
     * @param ring memory of a pool of the node that grants remote write, which the receiver has for
     *     itself
     * @return the changed options
     * @throws IllegalArgumentException if it holds no byte
     */
    public KvReceiverOptions staging(StagingArea ring) {
        Checks.positive("length of the staging area", ring.lengthBytes());
        return new KvReceiverOptions(ring, auxByMessage);
    }

    /**
     * Has auxiliary data sent over the control connection, where RDMA cannot carry it. The buffers
     * of both sides are then memory of this process, in pools of their nodes.
     *
     * @param on true for messages; false, RDMA, is the default
     * @return the changed options
     */
    public KvReceiverOptions auxByMessage(boolean on) {
        return new KvReceiverOptions(stagingRing, on);
    }

    Optional<StagingArea> stagingRing() {
        return Optional.ofNullable(stagingRing);
    }

    boolean isAuxByMessage() {
        return auxByMessage;
    }
}
