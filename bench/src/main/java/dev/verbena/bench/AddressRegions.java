package dev.verbena.bench;

import dev.verbena.memory.RegionSource;
import dev.verbena.verbs.Access;
import java.lang.foreign.MemorySegment;
import java.util.Set;

/** Registers addresses where no memory is, for measurements in which nothing is moved. */
final class AddressRegions implements RegionSource {
    private int keys = 1;

    @Override
    public long maxRegionBytes() {
        return -1;
    }

    @Override
    public Region register(MemorySegment segment, Set<Access> access) {
        return registerAddress(segment.address(), segment.byteSize(), access);
    }

    @Override
    public synchronized Region registerAddress(long address, long lengthBytes, Set<Access> access) {
        return new Region(address, lengthBytes, keys++, keys++, () -> {});
    }

    @Override
    public Region registerDmaBuf(
            int fd, long offset, long lengthBytes, long address, Set<Access> access) {
        throw new UnsupportedOperationException("there is no dma-buf here");
    }
}
