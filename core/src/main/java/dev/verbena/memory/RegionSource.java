package dev.verbena.memory;

import dev.verbena.verbs.Access;
import dev.verbena.verbs.ProtectionDomain;
import java.lang.foreign.MemorySegment;
import java.util.Set;

/**
 * Where a registry has its memory registered: a protection domain of an RDMA device, or a backend
 * that has none and only gives keys to ranges.
 *
 * <p>The registry asks for one region after the other of a pool, and for those of several pools on
 * several threads at once. It has checked the range: it is not empty, does not pass the address
 * space, is no longer than {@link #maxRegionBytes}, and overlaps no other region of the registry.
 */
public interface RegionSource {
    /**
     * A range that is registered.
     *
     * @param address first byte
     * @param lengthBytes its length
     * @param localKey by which work requests of this side name it; 0 if the backend has no such key
     * @param remoteKey by which peers name it
     * @param deregister takes the range back: peers' accesses fail from then on. Run again, it does
     *     nothing; if it throws, the range stays registered
     */
    record Region(long address, long lengthBytes, int localKey, int remoteKey, Runnable deregister)
            implements AutoCloseable {
        /** Deregisters the range. */
        @Override
        public void close() {
            deregister.run();
        }
    }

    /**
     * Makes a source of the memory regions of a protection domain.
     *
     * @param domain where memory is registered; stays the caller's
     * @return the source
     */
    static RegionSource of(ProtectionDomain domain) {
        return new DomainRegions(domain);
    }

    /**
     * Says how long a region may be. The answer is always the same.
     *
     * @return the limit in bytes, unsigned; all ones if there is none
     */
    long maxRegionBytes();

    /**
     * Registers a memory segment.
     *
     * @param segment native memory, not read-only, which stays allocated until the region is closed
     * @param access what peers may do
     * @return the region
     * @throws IllegalStateException if the segment's arena is closed, or the source is
     * @throws RuntimeException if the source refuses, with what it says
     */
    Region register(MemorySegment segment, Set<Access> access);

    /**
     * Registers a range of addresses.
     *
     * @param address first byte
     * @param lengthBytes length
     * @param access what peers may do
     * @return the region
     * @throws UnsupportedOperationException if the source reaches no memory but that of segments
     * @throws RuntimeException as {@link #register}
     */
    Region registerAddress(long address, long lengthBytes, Set<Access> access);

    /**
     * Registers part of a dma-buf.
     *
     * @param fd its file descriptor
     * @param offset first byte within it
     * @param lengthBytes length
     * @param address the address by which the first byte is to be named
     * @param access what peers may do
     * @return the region
     * @throws UnsupportedOperationException if the source reaches no memory but that of segments
     * @throws RuntimeException as {@link #register}
     */
    Region registerDmaBuf(int fd, long offset, long lengthBytes, long address, Set<Access> access);
}
