package dev.verbena.memory;

import dev.verbena.verbs.Access;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.Set;

/**
 * One pool of a batch registration.
 *
 * @param name its name
 * @param segment its memory
 * @param access what peers may do
 */
public record PoolRequest(String name, MemorySegment segment, Set<Access> access) {
    /**
     * Copies the access. Whether the memory can be a pool is seen when it is registered.
     *
     * @throws NullPointerException if a part is null
     */
    public PoolRequest {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(segment, "segment");
        access = Set.copyOf(access);
    }
}
