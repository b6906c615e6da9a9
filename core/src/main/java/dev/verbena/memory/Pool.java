package dev.verbena.memory;

import dev.verbena.verbs.Access;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A registered range of memory under a name: the K and V pages of a model, its state slots, its aux
 * buffers.
 *
 * <p>Life: made by a {@link MemoryRegistry}, {@link #close}d before its memory is freed. A transfer
 * in flight holds the pools it touches, and a held pool refuses to close. Safe for use by several
 * threads.
 */
public final class Pool implements AutoCloseable {
    private static final int CLOSED = Integer.MIN_VALUE;

    private final String name;
    private final long generation;
    private final Registration registration;
    private final MemoryRegistry registry;
    private final AtomicInteger holds = new AtomicInteger();

    /** How often this name and range were registered; guarded by the registry's lock. */
    int registrations = 1;

    Pool(String name, long generation, Registration registration, MemoryRegistry registry) {
        this.name = name;
        this.generation = generation;
        this.registration = registration;
        this.registry = registry;
    }

    /**
     * Names the pool.
     *
     * @return the name it was registered under
     */
    public String name() {
        return name;
    }

    /**
     * Tells this registration from earlier ones of the same name.
     *
     * @return a number that grows with every registration of the registry
     */
    public long generation() {
        return generation;
    }

    /**
     * Gives the first address.
     *
     * @return address of the first byte
     */
    public long address() {
        return registration.address;
    }

    /**
     * Gives the length.
     *
     * @return length in bytes
     */
    public long lengthBytes() {
        return registration.lengthBytes;
    }

    /**
     * Gives the address of a range within the pool.
     *
     * @param offset first byte, from the pool's start
     * @param lengthBytes length of the range
     * @return address of its first byte
     * @throws IndexOutOfBoundsException if the range is not inside the pool
     */
    public long address(long offset, long lengthBytes) {
        Objects.checkFromIndexSize(offset, lengthBytes, registration.lengthBytes);
        return registration.address + offset;
    }

    /**
     * Says what peers may do to the pool.
     *
     * @return its access
     */
    public Set<Access> access() {
        return registration.access;
    }

    /**
     * Gives the memory of the pool.
     *
     * @return the segment that was registered, or that the registry allocated
     * @throws IllegalStateException if the pool was registered by address or by dma-buf
     */
    public MemorySegment segment() {
        MemorySegment segment = registration.segment;
        if (segment == null) {
            throw new IllegalStateException(
                    this + " was registered by address and has no segment on this side");
        }
        return segment;
    }

    /**
     * Describes the pool for peers.
     *
     * @return its range, regions, remote keys and generation
     */
    public PoolDescriptor descriptor() {
        List<PoolDescriptor.Region> regions =
                regions().stream()
                        .map(r -> new PoolDescriptor.Region(r.lengthBytes(), r.remoteKey()))
                        .toList();
        return new PoolDescriptor(
                name, generation, address(), lengthBytes(), registration.access, regions);
    }

    /**
     * Holds the pool open for a transfer; allocates nothing.
     *
     * @throws IllegalStateException if the pool is closed, or its memory was freed before it
     */
    public void hold() {
        if (registration.isFreed() && !isClosed()) {
            throw new IllegalStateException(
                    this
                            + " has no memory any more: its arena was closed before the pool; keep"
                            + " the arena open until the pool is closed");
        }
        if (holds.incrementAndGet() < 0) {
            holds.decrementAndGet();
            throw new IllegalStateException(this + " is closed");
        }
    }

    /**
     * Ends a hold.
     *
     * @throws IllegalStateException if there is none, which would let the pool be closed under a
     *     transfer
     */
    public void release() {
        int before = holds.getAndUpdate(count -> count > 0 ? count - 1 : count);
        if (before <= 0) {
            throw new IllegalStateException(this + " is released more often than held");
        }
    }

    /**
     * Closes the pool: deregisters its memory, unless the same range is registered under another
     * name too, or was registered more often than closed. Does nothing if it is closed already.
     *
     * <p>If deregistering fails, all regions that can be deregistered are, and the pool can be
     * neither held nor reached any more, but its name and range stay taken and its memory must stay
     * allocated until it has been closed again.
     *
     * @throws IllegalStateException if transfers in flight hold it; await them first
     * @throws dev.verbena.verbs.VerbsException if deregistering fails: EBUSY or EINVAL while a
     *     memory window is bound to it. Verb: ibv_dereg_mr(3)
     */
    @Override
    public void close() {
        registry.close(this);
    }

    @Override
    public String toString() {
        return "pool '" + name + "' (" + registration + ")";
    }

    List<RegionSource.Region> regions() {
        return registration.regions.join();
    }

    Registration registration() {
        return registration;
    }

    boolean isClosed() {
        return holds.get() < 0;
    }

    /** Turns new holds away, or refuses if there are some. */
    void closeToHolds() {
        if (!holds.compareAndSet(0, CLOSED)) {
            throw new IllegalStateException(
                    this
                            + " has "
                            + holds.get()
                            + " transfers in flight; await them, or close their peer, before the"
                            + " pool");
        }
    }
}
