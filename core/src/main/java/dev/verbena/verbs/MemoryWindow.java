package dev.verbena.verbs;

import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_MW_TYPE_1;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_MW_TYPE_2;

import dev.verbena.bindings.VerbsCalls;
import dev.verbena.bindings.VerbsInline;
import dev.verbena.bindings.ibverbs.ibv_mw;
import java.lang.foreign.MemorySegment;

/**
 * A memory window: a remote key of its own over part of a memory region, which can be taken back
 * without deregistering the region.
 *
 * <p>Life: allocated by a {@link ProtectionDomain}, bound by a work request, {@link #close}d before
 * the region it is bound to.
 */
public final class MemoryWindow implements AutoCloseable {
    private final MemorySegment mw;
    private final Lifetime lifetime;

    MemoryWindow(ProtectionDomain domain, int type) {
        if (type != 1 && type != 2) {
            throw new IllegalArgumentException("a memory window has type 1 or 2, not " + type);
        }
        domain.lifetime().enter();
        try {
            mw =
                    VerbsInline.ibv_alloc_mw(
                            domain.handle(), type == 1 ? IBV_MW_TYPE_1() : IBV_MW_TYPE_2());
            if (mw.equals(MemorySegment.NULL)) {
                throw new VerbsException(
                        "ibv_alloc_mw",
                        VerbsCalls.errno(),
                        "device=" + domain.device().name() + ", type=" + type);
            }
            lifetime = domain.lifetime().childOfEntered(() -> "memory window of type " + type);
        } finally {
            domain.lifetime().exit();
        }
    }

    /**
     * Gives the window's remote key as allocated or last bound through a verb. A bind posted as a
     * work request does not change it here.
     *
     * @return the rkey
     * @throws IllegalStateException if the window is closed
     */
    public int remoteKey() {
        lifetime.enter();
        try {
            return ibv_mw.rkey(mw);
        } finally {
            lifetime.exit();
        }
    }

    /**
     * Frees the window. Does nothing if it is freed already.
     *
     * @throws VerbsException if the verb fails. Verb: ibv_dealloc_mw(3)
     */
    @Override
    public void close() {
        lifetime.close(() ->
                VerbsException.check(
                        "ibv_dealloc_mw", VerbsInline.ibv_dealloc_mw(mw), lifetime.toString()));
    }

    @Override
    public String toString() {
        return lifetime.toString();
    }
}
