package dev.verbena.tcp;

import dev.verbena.memory.RegionSource;
import dev.verbena.verbs.Access;
import java.lang.foreign.MemorySegment;
import java.security.SecureRandom;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Gives keys to segments: what a peer must name to reach them. A key is random and stands for one
 * registration, so one that the peer has from an earlier registration is refused.
 *
 * <p>Deregistering turns peers away from then on, and waits for a copy under way: when it returns
 * the memory may be freed. Safe for use by several threads.
 */
public final class TcpRegions implements RegionSource {
    /** As much as one buffer views, in whole pages. */
    private static final long MAX_REGION_BYTES = 1L << 30;

    private static final SecureRandom RANDOM = new SecureRandom();

    private final Map<Integer, TcpRegion> byKey = new ConcurrentHashMap<>();

    /** Makes the source. */
    public TcpRegions() {}

    @Override
    public long maxRegionBytes() {
        return MAX_REGION_BYTES;
    }

    @Override
    public Region register(MemorySegment segment, Set<Access> access) {
        // Lanes copy on threads of their own.
        if (!segment.isAccessibleBy(Thread.ofVirtual().unstarted(() -> {}))) {
            throw new IllegalArgumentException(
                    "over TCP other threads copy a pool's bytes, and its segment is of a confined"
                            + " arena: take one of Arena.ofShared or Arena.ofAuto");
        }
        if (!segment.scope().isAlive()) {
            throw new IllegalStateException("the segment's arena is closed: its memory is freed");
        }
        TcpRegion region = new TcpRegion(segment, access);
        int key = RANDOM.nextInt();
        while (byKey.putIfAbsent(key, region) != null) {
            key = RANDOM.nextInt();
        }
        int own = key;
        Runnable deregister =
                () -> {
                    byKey.remove(own, region);
                    region.close();
                };
        return new Region(segment.address(), segment.byteSize(), own, own, deregister);
    }

    @Override
    public Region registerAddress(long address, long lengthBytes, Set<Access> access) {
        throw new UnsupportedOperationException(
                "the address 0x%x cannot be registered: over TCP the processor copies, so a pool"
                                .formatted(address)
                        + " needs a memory segment; memory of other devices needs RDMA");
    }

    @Override
    public Region registerDmaBuf(
            int fd, long offset, long lengthBytes, long address, Set<Access> access) {
        throw new UnsupportedOperationException(
                "a dma-buf cannot be registered: over TCP the processor copies, so a pool needs a"
                        + " memory segment; memory of other devices needs RDMA");
    }

    /** The region of a key, or null if there is none. */
    @Nullable TcpRegion find(int key) {
        return byKey.get(key);
    }
}
