package dev.verbena.transfer;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import dev.verbena.memory.RemotePool;
import dev.verbena.verbs.Access;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Looks up every block of a batch on both sides before anything is posted, so that a wrong range is
 * a refusal with a name and not a dead connection.
 *
 * <p>One pass over the batch; the region that held one block is tried first for the next.
 */
final class BatchCheck {
    private final TransferBatch batch;
    private final Direction direction;
    private final AddressMap<Pool> local;
    private final AddressMap<RemotePool> remote;

    BatchCheck(
            TransferBatch batch,
            Direction direction,
            AddressMap<Pool> local,
            AddressMap<RemotePool> remote) {
        this.batch = batch;
        this.direction = direction;
        this.local = local;
        this.remote = remote;
    }

    /**
     * Checks all blocks and holds the local pools they touch.
     *
     * @return the pools, each held once, for {@link #release}
     * @throws IllegalArgumentException for the first block that is refused
     * @throws IllegalStateException if a pool was closed meanwhile
     */
    List<Pool> holdPools() {
        BitSet touched = new BitSet(local.size());
        int refused = nextRefused(0, touched);
        if (refused < batch.size()) {
            throw refusal(refused);
        }
        return hold(local, touched);
    }

    /**
     * Finds the first block that is refused, from a block on; the batch's size if there is none.
     *
     * @param touched gets the local regions in which blocks before it begin
     */
    private int nextRefused(int from, BitSet touched) {
        long[] locals = batch.localAddresses();
        long[] remotes = batch.remoteAddresses();
        long[] lengths = batch.lengths();
        int size = batch.size();
        // The regions that held the last block; none yet, and in none fits any block.
        long localStart = 0;
        long localBytes = 0;
        long remoteStart = 0;
        long remoteBytes = 0;
        for (int block = from; block < size; block++) {
            long length = lengths[block];
            long localOffset = locals[block] - localStart;
            long remoteOffset = remotes[block] - remoteStart;
            if (localOffset >= 0
                    && localOffset <= localBytes - length
                    && remoteOffset >= 0
                    && remoteOffset <= remoteBytes - length) {
                continue;
            }
            int l = local.find(locals[block]);
            int r = remote.find(remotes[block]);
            if (l < 0
                    || r < 0
                    || !local.covers(l, locals[block], length)
                    || !remote.covers(r, remotes[block], length)
                    || !allowed(local.owner(l), remote.owner(r))) {
                return block;
            }
            touched.set(l);
            localStart = local.start(l);
            localBytes = local.end(l) - localStart;
            remoteStart = remote.start(r);
            remoteBytes = remote.end(r) - remoteStart;
        }
        return size;
    }

    /**
     * Releases all pools.
     *
     * @throws IllegalStateException if one of them was not held, once all others are released
     */
    static void release(List<Pool> pools) {
        IllegalStateException failure = null;
        for (Pool pool : pools) {
            try {
                pool.release();
            } catch (IllegalStateException notHeld) {
                failure = notHeld;
            }
        }
        if (failure != null) {
            throw failure;
        }
    }

    /** The blocks that would be refused, with reasons; at most so many. */
    List<TransferPlan.Refusal> refusals(int limit) {
        List<TransferPlan.Refusal> refusals = new ArrayList<>();
        BitSet touched = new BitSet(local.size());
        int block = nextRefused(0, touched);
        while (block < batch.size() && refusals.size() < limit) {
            String reason = reason(block);
            if (reason != null) {
                refusals.add(new TransferPlan.Refusal(block, reason));
            }
            block = nextRefused(block + 1, touched);
        }
        return refusals;
    }

    /** Holds the owners of some entries, each once, or none of them. */
    static List<Pool> hold(AddressMap<Pool> map, BitSet touched) {
        List<Pool> held = new ArrayList<>();
        try {
            for (int i = touched.nextSetBit(0); i >= 0; i = touched.nextSetBit(i + 1)) {
                Pool pool = map.owner(i);
                // The regions of a pool follow one another.
                if (held.isEmpty() || held.getLast() != pool) {
                    pool.hold();
                    held.add(pool);
                }
            }
        } catch (RuntimeException | Error closed) {
            release(held);
            throw closed;
        }
        return held;
    }

    private boolean allowed(Pool localPool, RemotePool remotePool) {
        return remotePool.descriptor().access().contains(direction.remoteAccess())
                && (direction == Direction.WRITE || writable(localPool));
    }

    private static boolean writable(Pool pool) {
        return pool.access().contains(Access.LOCAL_WRITE)
                || pool.access().contains(Access.REMOTE_WRITE)
                || pool.access().contains(Access.REMOTE_ATOMIC);
    }

    private IllegalArgumentException refusal(int block) {
        return new IllegalArgumentException(
                "block "
                        + block
                        + " of "
                        + batch.size()
                        + " ("
                        + batch.describe(block)
                        + ") is refused: "
                        + reason(block)
                        + "; nothing of the batch was posted");
    }

    private @Nullable String reason(int block) {
        long localAddress = batch.localAddress(block);
        long remoteAddress = batch.remoteAddress(block);
        long length = batch.length(block);
        int l = local.find(localAddress);
        if (l < 0) {
            return "its local address is in no registered pool";
        }
        if (!local.covers(l, localAddress, length)) {
            return "its local range passes the end of " + local.owner(l);
        }
        int r = remote.find(remoteAddress);
        if (r < 0) {
            return "its remote address is in no pool that the peer offers";
        }
        if (!remote.covers(r, remoteAddress, length)) {
            return "its remote range passes the end of the " + remote.owner(r);
        }
        if (!allowed(local.owner(l), remote.owner(r))) {
            return "%s does not grant %s, or %s cannot be written by the device"
                    .formatted(remote.owner(r), direction.remoteAccess(), local.owner(l));
        }
        return null;
    }
}
