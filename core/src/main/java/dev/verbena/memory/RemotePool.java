package dev.verbena.memory;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * A pool of a peer, as its descriptor tells it. Addresses are the peer's: they name memory to write
 * to or read from, and mean nothing on this side.
 *
 * <p>Immutable. It is good for the connection it came over: a peer that comes back offers new ones.
 *
 * @param descriptor what the peer said
 */
public record RemotePool(PoolDescriptor descriptor) {
    /**
     * Names the pool.
     *
     * @return its name at the peer
     */
    public String name() {
        return descriptor.name();
    }

    /**
     * Gives the first address.
     *
     * @return address of the first byte, at the peer
     */
    public long address() {
        return descriptor.address();
    }

    /**
     * Gives the length.
     *
     * @return length in bytes
     */
    public long lengthBytes() {
        return descriptor.lengthBytes();
    }

    /**
     * Gives the address of a range within the pool.
     *
     * @param offset first byte, from the pool's start
     * @param lengthBytes length of the range
     * @return address of its first byte, at the peer
     * @throws IndexOutOfBoundsException if the range is not inside the pool
     */
    public long address(long offset, long lengthBytes) {
        Objects.checkFromIndexSize(offset, lengthBytes, descriptor.lengthBytes());
        return descriptor.address() + offset;
    }

    /**
     * Builds the table by which remote ranges are checked and their keys found.
     *
     * @param pools pools of one peer
     * @return the table
     * @throws IllegalArgumentException if two of them overlap in part
     */
    public static AddressMap<RemotePool> map(List<RemotePool> pools) {
        List<AddressMap.Entry<RemotePool>> entries = new ArrayList<>();
        Set<List<Object>> ranges = new HashSet<>();
        for (RemotePool pool : pools) {
            // Two names may stand for one range; the table needs it once.
            if (!ranges.add(List.of(pool.address(), pool.descriptor.regions()))) {
                continue;
            }
            long address = pool.address();
            for (PoolDescriptor.Region region : pool.descriptor.regions()) {
                entries.add(
                        new AddressMap.Entry<>(
                                address, region.lengthBytes(), region.remoteKey(), pool));
                address += region.lengthBytes();
            }
        }
        return AddressMap.of(entries);
    }

    @Override
    public String toString() {
        return "peer's pool '%s' (0x%x+%d)".formatted(name(), address(), lengthBytes());
    }
}
