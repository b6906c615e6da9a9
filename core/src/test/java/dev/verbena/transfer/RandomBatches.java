package dev.verbena.transfer;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import dev.verbena.memory.PoolDescriptor;
import dev.verbena.memory.PoolDouble;
import dev.verbena.memory.RemotePool;
import dev.verbena.verbs.Access;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;

/**
 * Batches over made-up pools on both sides, drawn by seed: pools of one to four regions, some of
 * them neighbours in memory, and blocks that follow one another on both sides, on one, or on none.
 */
final class RandomBatches {
    private static final int MAX_POOLS = 3;
    private static final int MAX_REGIONS = 4;
    private static final int MAX_REGION_BYTES = 48;

    /** Past the middle of the address space, where signed comparison goes wrong, and before. */
    private static final long[] BASES = {0x1000, 0x7fff_ffff_ffff_ff80L, 0xffff_8000_0000_0000L};

    final AddressMap<Pool> localMap;
    final AddressMap<RemotePool> remoteMap;
    final TransferBatch batch = new TransferBatch(0);

    private record Range(long address, long lengthBytes) {
        long end() {
            return address + lengthBytes;
        }
    }

    private final Random random;

    RandomBatches(long seed) {
        random = new Random(seed);
        List<Range> locals = new ArrayList<>();
        List<AddressMap.Entry<Pool>> localEntries = new ArrayList<>();
        List<Range> remotes = new ArrayList<>();
        List<RemotePool> remotePools = new ArrayList<>();
        long localEnd = base();
        long remoteEnd = base();
        for (int pool = 0; pool < MAX_POOLS; pool++) {
            localEnd += random.nextBoolean() ? 0 : 1 + random.nextInt(5);
            remoteEnd += random.nextBoolean() ? 0 : 1 + random.nextInt(5);
            localEnd = addLocal(pool, localEnd, locals, localEntries);
            remoteEnd = addRemote(pool, remoteEnd, remotes, remotePools);
        }
        localMap = AddressMap.of(localEntries);
        remoteMap = RemotePool.map(remotePools);
        int blocks = random.nextInt(24);
        Range local = locals.getFirst();
        Range remote = remotes.getFirst();
        long nextLocal = local.address;
        long nextRemote = remote.address;
        for (int i = 0; i < blocks; i++) {
            if (random.nextInt(3) == 0 || nextLocal == local.end()) {
                local = locals.get(random.nextInt(locals.size()));
                nextLocal = local.address + random.nextLong(local.lengthBytes);
            }
            if (random.nextInt(3) == 0 || nextRemote == remote.end()) {
                remote = remotes.get(random.nextInt(remotes.size()));
                nextRemote = remote.address + random.nextLong(remote.lengthBytes);
            }
            long room = Math.min(local.end() - nextLocal, remote.end() - nextRemote);
            long length = 1 + random.nextLong(random.nextBoolean() ? room : Math.min(room, 4));
            batch.add(nextLocal, nextRemote, length);
            nextLocal += length;
            nextRemote += length;
        }
    }

    private long base() {
        return BASES[random.nextInt(BASES.length)];
    }

    private long addLocal(
            int index, long address, List<Range> ranges, List<AddressMap.Entry<Pool>> entries) {
        long[] regions = regions();
        long length = sum(regions);
        Pool pool = PoolDouble.at("local-" + index, address, length, Access.LOCAL_WRITE);
        ranges.add(new Range(address, length));
        long at = address;
        for (long region : regions) {
            entries.add(new AddressMap.Entry<>(at, region, random.nextInt(), pool));
            at += region;
        }
        return at;
    }

    private long addRemote(int index, long address, List<Range> ranges, List<RemotePool> pools) {
        long[] regions = regions();
        long length = sum(regions);
        ranges.add(new Range(address, length));
        List<PoolDescriptor.Region> described = new ArrayList<>();
        for (long region : regions) {
            described.add(new PoolDescriptor.Region(region, random.nextInt()));
        }
        pools.add(
                new RemotePool(
                        new PoolDescriptor(
                                "remote-" + index,
                                1,
                                address,
                                length,
                                Set.of(Access.REMOTE_WRITE, Access.REMOTE_READ),
                                described)));
        return address + length;
    }

    private long[] regions() {
        return random.longs(1 + random.nextInt(MAX_REGIONS), 1, MAX_REGION_BYTES + 1).toArray();
    }

    private static long sum(long[] lengths) {
        long sum = 0;
        for (long length : lengths) {
            sum += length;
        }
        return sum;
    }
}
