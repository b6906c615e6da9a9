package dev.verbena.tcp;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.CompletionStatus;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** From addresses to buffers that view the pools' own memory. */
final class LaneMemory {
    private LaneMemory() {}

    /**
     * Views a range of this side that a transfer holds.
     *
     * @throws LaneFailure if it is in no pool
     */
    static ByteBuffer local(AddressMap<Pool> pools, long address, int lengthBytes)
            throws LaneFailure {
        int entry = pools.find(address);
        if (entry < 0 || !pools.covers(entry, address, lengthBytes)) {
            throw new LaneFailure(
                    CompletionStatus.LOCAL_PROTECTION,
                    "0x%x+%d is in no pool of this side".formatted(address, lengthBytes));
        }
        return view(pools.owner(entry), address, lengthBytes);
    }

    /** The pool that a peer may access so, or null if it must not. */
    static @Nullable Pool remote(
            AddressMap<Pool> pools, long address, int lengthBytes, int key, Access access) {
        int entry = pools.find(address);
        if (entry < 0
                || pools.key(entry) != key
                || !pools.covers(entry, address, lengthBytes)
                || !pools.owner(entry).access().contains(access)) {
            return null;
        }
        return pools.owner(entry);
    }

    static ByteBuffer view(Pool pool, long address, int lengthBytes) {
        return pool.segment().asSlice(address - pool.address(), lengthBytes).asByteBuffer();
    }

    /** Holds a pool for one access; false if it has been closed, or its memory freed. */
    static boolean hold(Pool pool) {
        try {
            pool.hold();
            return true;
        } catch (IllegalStateException closed) {
            return false;
        }
    }
}
