package dev.verbena.memory;

import dev.verbena.bindings.Errno;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.VerbsException;
import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** Registers without a device: gives keys to segments, and refuses all else. */
final class RegionSourceDouble implements RegionSource {
    /** What is registered now: the length of each region by its address. */
    final Map<Long, Long> open = new LinkedHashMap<>();

    /** Addresses of regions that refuse to be deregistered. */
    final Set<Long> stuck = new HashSet<>();

    /** How many regions were asked for, refused ones too. */
    int asked;

    private int keys = 100;

    @Override
    public long maxRegionBytes() {
        return -1;
    }

    @Override
    public Region register(MemorySegment segment, Set<Access> access) {
        asked++;
        long address = segment.address();
        open.put(address, segment.byteSize());
        return new Region(address, segment.byteSize(), 0, keys++, () -> deregister(address));
    }

    private void deregister(long address) {
        if (stuck.contains(address)) {
            throw new VerbsException("ibv_dereg_mr", Errno.EBUSY, "address=" + address);
        }
        open.remove(address);
    }

    @Override
    public Region registerAddress(long address, long lengthBytes, Set<Access> access) {
        asked++;
        throw new UnsupportedOperationException("no device that reaches addresses");
    }

    @Override
    public Region registerDmaBuf(
            int fd, long offset, long lengthBytes, long address, Set<Access> access) {
        asked++;
        throw new UnsupportedOperationException("no device that reaches dma-bufs");
    }
}
