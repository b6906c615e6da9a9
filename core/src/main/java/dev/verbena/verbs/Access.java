package dev.verbena.verbs;

import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_ACCESS_HUGETLB;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_ACCESS_LOCAL_WRITE;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_ACCESS_MW_BIND;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_ACCESS_ON_DEMAND;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_ACCESS_RELAXED_ORDERING;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_ACCESS_REMOTE_ATOMIC;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_ACCESS_REMOTE_READ;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_ACCESS_REMOTE_WRITE;

import java.util.Collection;
import java.util.EnumSet;
import java.util.Set;

/**
 * What may be done to registered memory. Reading by the local device is always allowed and has no
 * flag. Grant the least: a prefill pool needs none of these, a decode pool {@link #REMOTE_WRITE}
 * only.
 *
 * <p>Source: {@code ibv_reg_mr(3)}, enum {@code ibv_access_flags}.
 */
public enum Access {
    /** The local device may write: needed where READ results or received messages land. */
    LOCAL_WRITE(IBV_ACCESS_LOCAL_WRITE()),
    /** Peers that hold the rkey may write. Implies {@link #LOCAL_WRITE}, as devices demand it. */
    REMOTE_WRITE(IBV_ACCESS_REMOTE_WRITE() | IBV_ACCESS_LOCAL_WRITE()),
    /** Peers that hold the rkey may read. */
    REMOTE_READ(IBV_ACCESS_REMOTE_READ()),
    /** Peers may do atomics. Implies {@link #LOCAL_WRITE}. */
    REMOTE_ATOMIC(IBV_ACCESS_REMOTE_ATOMIC() | IBV_ACCESS_LOCAL_WRITE()),
    /** Memory windows may be bound over the region. */
    WINDOW_BIND(IBV_ACCESS_MW_BIND()),
    /** Pages are faulted in on demand instead of pinned, where the device can. */
    ON_DEMAND(IBV_ACCESS_ON_DEMAND()),
    /** The memory is made of huge pages: a hint that saves the device table space. */
    HUGE_PAGES(IBV_ACCESS_HUGETLB()),
    /**
     * Writes may reach memory out of order within a message and between messages: faster on some
     * hosts. Ignored where the device cannot.
     */
    RELAXED_ORDERING(IBV_ACCESS_RELAXED_ORDERING());

    private final int flags;

    Access(int flags) {
        this.flags = flags;
    }

    int flag() {
        return flags;
    }

    /**
     * Gives the flags of several accesses as the verbs take them.
     *
     * @param accesses any number of accesses
     * @return the bitwise or of their {@code IBV_ACCESS_*} flags, with what they imply
     */
    public static int flags(Collection<Access> accesses) {
        int flags = 0;
        for (Access access : accesses) {
            flags |= access.flags;
        }
        return flags;
    }

    /**
     * Reads flags of the verbs back into a set.
     *
     * @param flags bitwise or of {@code IBV_ACCESS_*}; bits this enum lacks are left out
     * @return every access all of whose flags are set
     */
    public static Set<Access> of(int flags) {
        EnumSet<Access> accesses = EnumSet.noneOf(Access.class);
        for (Access access : values()) {
            if ((flags & access.flags) == access.flags) {
                accesses.add(access);
            }
        }
        return accesses;
    }
}
