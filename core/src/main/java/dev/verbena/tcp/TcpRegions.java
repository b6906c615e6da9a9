package dev.verbena.tcp;

import dev.verbena.memory.RegionSource;
import dev.verbena.verbs.Access;
import java.lang.foreign.MemorySegment;
import java.security.SecureRandom;
import java.util.Set;

/**
 * Gives keys to segments: what a peer must name to reach them. A key is random, so one that the
 * peer has from an earlier registration is refused.
 */
public final class TcpRegions implements RegionSource {
    private static final SecureRandom RANDOM = new SecureRandom();

    /** Makes the source. */
    public TcpRegions() {}

    @Override
    public long maxRegionBytes() {
        return Long.MAX_VALUE;
    }

    @Override
    public Region register(MemorySegment segment, Set<Access> access) {
        // Lanes copy on threads of their own.
        if (!segment.isAccessibleBy(Thread.ofVirtual().unstarted(() -> {}))) {
            throw new IllegalArgumentException(
                    "over TCP other threads copy a pool's bytes, and its segment is of a confined"
                            + " arena: take one of Arena.ofShared or Arena.ofAuto");
        }
        int key = RANDOM.nextInt();
        return new Region(segment.address(), segment.byteSize(), key, key, () -> {});
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
}
