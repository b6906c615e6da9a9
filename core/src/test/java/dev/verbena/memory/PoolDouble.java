package dev.verbena.memory;

import dev.verbena.verbs.Access;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Makes pools without a device, for tests of what is built over them. Such a pool can be held,
 * released and closed as any other; it has no regions, so tests make their own {@link AddressMap}.
 */
public final class PoolDouble {
    private PoolDouble() {}

    /**
     * Makes a pool over memory.
     *
     * @param name its name
     * @param segment its memory
     * @param access what peers may do
     * @return the pool, open
     */
    public static Pool over(String name, MemorySegment segment, Access... access) {
        return pool(name, segment.address(), segment.byteSize(), segment, access);
    }

    /**
     * Makes a pool of addresses where there need be no memory.
     *
     * @param name its name
     * @param address first byte
     * @param lengthBytes its length
     * @param access what peers may do
     * @return the pool, open
     */
    public static Pool at(String name, long address, long lengthBytes, Access... access) {
        return pool(name, address, lengthBytes, null, access);
    }

    /**
     * Closes a pool as its registry would.
     *
     * @param pool one of these
     * @throws IllegalStateException if transfers hold it
     */
    public static void close(Pool pool) {
        pool.closeToHolds();
    }

    @SuppressWarnings("NullAway") // the registry is asked for nothing but closing
    private static Pool pool(
            String name,
            long address,
            long lengthBytes,
            @Nullable MemorySegment segment,
            Access... access) {
        Registration registration =
                new Registration(
                        address,
                        lengthBytes,
                        Set.of(access),
                        (offset, part, how) -> {
                            throw new AssertionError("no device");
                        },
                        segment,
                        null);
        return new Pool(name, 1, registration, null);
    }
}
