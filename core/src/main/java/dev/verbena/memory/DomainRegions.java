package dev.verbena.memory;

import dev.verbena.verbs.Access;
import dev.verbena.verbs.MemoryRegion;
import dev.verbena.verbs.ProtectionDomain;
import java.lang.foreign.MemorySegment;
import java.util.Set;

/** Memory regions of a protection domain, which a device reaches. */
record DomainRegions(ProtectionDomain domain) implements RegionSource {
    @Override
    public long maxRegionBytes() {
        return domain.device().attributes().maxMemoryRegionBytes();
    }

    @Override
    public Region register(MemorySegment segment, Set<Access> access) {
        return region(domain.register(segment, access));
    }

    @Override
    public Region registerAddress(long address, long lengthBytes, Set<Access> access) {
        return region(domain.registerAddress(address, lengthBytes, access));
    }

    @Override
    public Region registerDmaBuf(
            int fd, long offset, long lengthBytes, long address, Set<Access> access) {
        return region(domain.registerDmaBuf(fd, offset, lengthBytes, address, access));
    }

    private static Region region(MemoryRegion region) {
        return new Region(
                region.address(),
                region.lengthBytes(),
                region.localKey(),
                region.remoteKey(),
                region::close);
    }
}
