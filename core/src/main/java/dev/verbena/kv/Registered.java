package dev.verbena.kv;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.MemoryRegistry;
import dev.verbena.memory.RemotePool;
import dev.verbena.transfer.Peer;
import dev.verbena.verbs.Access;
import java.util.function.Predicate;

/**
 * Refuses pools of a cache that transfers cannot reach. Whole pools are looked up, not the slots of
 * one request: a cache that is wrong is found with its first request.
 */
final class Registered {
    private Registered() {}

    /**
     * Refuses prefill pools that are not registered on this side.
     *
     * @throws IllegalArgumentException naming the first
     */
    static void check(String what, KvPools pools, MemoryRegistry registry) {
        check(
                "prefill " + what,
                pools,
                registry.addressMap(),
                pool -> true,
                "is in no pool that is registered on this node");
    }

    /**
     * Refuses decode pools that a peer has not opened for writing.
     *
     * @throws IllegalArgumentException naming the first
     */
    static void check(String what, KvPools pools, Peer decode) {
        check(
                "decode " + what,
                pools,
                RemotePool.map(decode.pools()),
                pool -> pool.descriptor().access().contains(Access.REMOTE_WRITE),
                "is in no pool that its node offers for writing");
    }

    private static <T> void check(
            String what, KvPools pools, AddressMap<T> map, Predicate<T> grants, String problem) {
        for (int pool = 0; pool < pools.size(); pool++) {
            int index = map.find(pools.base(pool));
            if (index < 0
                    || !map.covers(index, pools.base(pool), pools.bytes(pool))
                    || !grants.test(map.owner(index))) {
                throw new IllegalArgumentException(
                        "%s pool %d at 0x%x, %d bytes, %s"
                                .formatted(
                                        what, pool, pools.base(pool), pools.bytes(pool), problem));
            }
        }
    }
}
