package dev.verbena.memory;

import dev.verbena.bindings.Errno;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.ProtectionDomain;
import dev.verbena.verbs.VerbsException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The registered memory of one protection domain, or of a backend without a device: pools by name,
 * and the table from an address to its region.
 *
 * <p>Life: make on a {@link ProtectionDomain} or another {@link RegionSource}, register pools,
 * close them, {@link #close}. Safe for use by several threads; registrations of different pools run
 * side by side. What is said of a device below is said of the source, if it is another.
 */
public final class MemoryRegistry implements AutoCloseable {
    private static final long PAGE_BYTES = 4096;

    private final RegionSource source;
    private final RegistryOptions options;
    private final long maxRegionBytes;

    private final Object lock = new Object();
    private final Map<String, Pool> pools = new LinkedHashMap<>();

    /** Names being registered: a second thread waits for the first, and closing for both. */
    private final Set<String> arriving = new HashSet<>();

    private final TreeMap<Long, Registration> ranges = new TreeMap<>(Long::compareUnsigned);
    private final List<Runnable> listeners = new CopyOnWriteArrayList<>();
    private long generation;
    private long registeredBytes;
    private boolean closed;

    /** Null when pools have changed since it was built. */
    private volatile @Nullable AddressMap<Pool> addressMap;

    /**
     * Makes a registry of memory that a device reaches.
     *
     * @param domain where memory is registered; stays the caller's
     * @param options how to register
     * @throws IllegalArgumentException if the device cannot register as much as a page
     */
    public MemoryRegistry(ProtectionDomain domain, RegistryOptions options) {
        this(RegionSource.of(domain), options);
    }

    /**
     * Makes a registry.
     *
     * @param source what registers memory; stays the caller's
     * @param options how to register
     * @throws IllegalArgumentException if the source cannot register as much as a page
     */
    public MemoryRegistry(RegionSource source, RegistryOptions options) {
        this.source = source;
        this.options = options;
        this.maxRegionBytes = regionLimit(source.maxRegionBytes(), options.maxRegionBytes());
    }

    /**
     * The longest region, in whole pages: the device's limit, which is unsigned, or ours.
     *
     * @throws IllegalArgumentException if the device cannot register as much as a page
     */
    static long regionLimit(long deviceLimitBytes, long wantedBytes) {
        if (Long.compareUnsigned(deviceLimitBytes, wantedBytes) >= 0) {
            return wantedBytes;
        }
        if (deviceLimitBytes < PAGE_BYTES) {
            throw new IllegalArgumentException(
                    "the device registers no more than " + deviceLimitBytes + " bytes at once");
        }
        return deviceLimitBytes - deviceLimitBytes % PAGE_BYTES;
    }

    /**
     * Registers a memory segment as a pool. The segment's memory must stay allocated until the pool
     * is closed: the device reaches it past the JVM's checks.
     *
     * <p>The same segment under the same name gives the same pool again, which is then to be closed
     * as often; under another name it gives a second pool over the same regions.
     *
     * <p>Cost: pins every page, about a quarter of a millisecond a MiB for memory never touched.
     *
     * @param name by which peers find the pool
     * @param segment native memory of any length; longer than a region may be, it is split
     * @param access what peers may do; none for memory that is only read by this device
     * @return the pool
     * @throws IllegalArgumentException if the segment is on the heap, empty or read-only; if it
     *     would be split into more than {@link PoolDescriptor#MAX_REGIONS} regions; if the name is
     *     taken by another range; if the range overlaps one that is registered, or equals it with
     *     other access
     * @throws IllegalStateException if the registry is closed; if the segment's arena is closed; if
     *     the range is part of a pool whose arena was closed before the pool, or whose closing
     *     failed
     * @throws VerbsException if the device refuses: ENOMEM names RLIMIT_MEMLOCK, the device's
     *     limits and the bytes registered so far. Verb: ibv_reg_mr(3)
     */
    public Pool register(String name, MemorySegment segment, Access... access) {
        return register(new PoolRequest(name, segment, Set.of(access)), null);
    }

    /**
     * Allocates memory, aligned to pages and zeroed, and registers it. The memory is freed when the
     * last pool over it is closed.
     *
     * @param name by which peers find the pool
     * @param lengthBytes its length, above 0
     * @param access what peers may do
     * @return the pool
     * @throws IllegalArgumentException if the length is not above 0 or gives more than {@link
     *     PoolDescriptor#MAX_REGIONS} regions, or the name is taken
     * @throws IllegalStateException if the registry is closed
     * @throws VerbsException as {@link #register}
     * @throws OutOfMemoryError if the memory cannot be had
     */
    // The pool closes the arena.
    @SuppressWarnings("MustBeClosedChecker")
    public Pool allocate(String name, long lengthBytes, Access... access) {
        if (lengthBytes <= 0) {
            throw new IllegalArgumentException(
                    "pool '" + name + "' has a length of " + lengthBytes + " bytes");
        }
        checkRegionCount(name, lengthBytes);
        Arena arena = Arena.ofShared();
        try {
            MemorySegment segment = arena.allocate(lengthBytes, PAGE_BYTES);
            return register(new PoolRequest(name, segment, Set.of(access)), arena);
        } catch (RuntimeException | Error failure) {
            arena.close();
            throw failure;
        }
    }

    /**
     * Registers a range of addresses as a pool: memory of an accelerator whose driver has a
     * peer-memory module. Otherwise as {@link #register}.
     *
     * @param name by which peers find the pool
     * @param address first byte
     * @param lengthBytes length, above 0
     * @param access what peers may do
     * @return the pool, which has no segment
     * @throws IllegalArgumentException as {@link #register}
     * @throws IllegalStateException as {@link #register}
     * @throws UnsupportedOperationException if the registry's source has no device
     * @throws VerbsException as {@link #register}, and EFAULT if the range is not mapped
     */
    public Pool registerAddress(String name, long address, long lengthBytes, Access... access) {
        return add(
                name,
                new Registration(
                        address,
                        lengthBytes,
                        Set.of(access),
                        (offset, part, how) -> source.registerAddress(address + offset, part, how),
                        null,
                        null));
    }

    /**
     * Registers a dma-buf as a pool: memory of another device, exported as a file. Otherwise as
     * {@link #register}.
     *
     * @param name by which peers find the pool
     * @param fd the dma-buf's file descriptor, which stays the caller's
     * @param fdOffset first byte within the dma-buf
     * @param lengthBytes length, above 0
     * @param address the address by which work requests and peers shall name the first byte
     * @param access what peers may do
     * @return the pool, which has no segment
     * @throws IllegalArgumentException as {@link #register}
     * @throws IllegalStateException as {@link #register}
     * @throws UnsupportedOperationException if the registry's source has no device
     * @throws VerbsException as {@link ProtectionDomain#registerDmaBuf}
     */
    public Pool registerDmaBuf(
            String name, int fd, long fdOffset, long lengthBytes, long address, Access... access) {
        return add(
                name,
                new Registration(
                        address,
                        lengthBytes,
                        Set.of(access),
                        (offset, part, how) ->
                                source.registerDmaBuf(
                                        fd, fdOffset + offset, part, address + offset, how),
                        null,
                        null));
    }

    /**
     * Registers many pools side by side: all of them, or none.
     *
     * @param requests the pools
     * @param progress told after each pool
     * @return the pools, in the order of the requests
     * @throws IllegalArgumentException as {@link #register}, for any of them
     * @throws IllegalStateException as {@link #register}, for any of them
     * @throws VerbsException as {@link #register}, for any of them; further failures are suppressed
     *     exceptions of the first
     */
    public List<Pool> registerAll(List<PoolRequest> requests, RegistrationProgress progress) {
        return new BatchRegistration(this, requests, progress).run(options.parallelism());
    }

    /**
     * Finds a pool.
     *
     * @param name its name
     * @return the pool, or nothing if there is none of that name
     */
    public Optional<Pool> find(String name) {
        synchronized (lock) {
            return Optional.ofNullable(pools.get(name));
        }
    }

    /**
     * Lists the pools.
     *
     * @return all pools, in order of registration; one whose closing failed is among them until it
     *     is closed again
     */
    public List<Pool> pools() {
        synchronized (lock) {
            return List.copyOf(pools.values());
        }
    }

    /**
     * Lists what peers may reach.
     *
     * @return descriptors of the pools that grant remote access, without those whose closing failed
     */
    public List<PoolDescriptor> descriptors() {
        return pools().stream()
                .filter(pool -> !pool.isClosed() && allowsRemote(pool.access()))
                .map(Pool::descriptor)
                .toList();
    }

    /**
     * Gives the table from an address of this side to its region. Built anew after a change;
     * otherwise this is one read.
     *
     * @return the table as of now
     */
    public AddressMap<Pool> addressMap() {
        AddressMap<Pool> map = addressMap;
        if (map != null) {
            return map;
        }
        synchronized (lock) {
            List<AddressMap.Entry<Pool>> entries = new ArrayList<>();
            Set<Registration> seen = new HashSet<>();
            for (Pool pool : pools.values()) {
                if (!pool.isClosed() && seen.add(pool.registration())) {
                    for (RegionSource.Region region : pool.regions()) {
                        entries.add(
                                new AddressMap.Entry<>(
                                        region.address(),
                                        region.lengthBytes(),
                                        region.localKey(),
                                        pool));
                    }
                }
            }
            map = AddressMap.of(entries);
            addressMap = map;
            return map;
        }
    }

    /**
     * Counts the bytes registered now.
     *
     * @return the sum of the lengths of all ranges
     */
    public long registeredBytes() {
        synchronized (lock) {
            return registeredBytes;
        }
    }

    /**
     * Adds a listener that is told when pools have come or gone.
     *
     * @param listener called on the thread that registers or closes, holding no lock; what it
     *     throws goes to that thread's handler of uncaught exceptions and changes nothing
     */
    public void onChange(Runnable listener) {
        listeners.add(listener);
    }

    /**
     * Closes all pools and the registry, once registrations under way have ended. Called again, it
     * closes the pools that were left.
     *
     * @throws IllegalStateException if transfers in flight hold a pool; all others are closed then
     * @throws VerbsException if deregistering a pool fails, as {@link Pool#close}; all others are
     *     closed then
     */
    @Override
    public void close() {
        synchronized (lock) {
            closed = true;
            waitWhile(() -> !arriving.isEmpty());
        }
        RuntimeException failure = null;
        for (Pool pool : pools()) {
            try {
                synchronized (lock) {
                    pool.registrations = 1;
                }
                close(pool);
            } catch (RuntimeException refused) {
                if (failure == null) {
                    failure = refused;
                } else {
                    failure.addSuppressed(refused);
                }
            }
        }
        if (failure != null) {
            throw failure;
        }
    }

    Pool register(PoolRequest request, @Nullable Arena ownArena) {
        MemorySegment segment = request.segment();
        checkSegment(request.name(), segment);
        return add(
                request.name(),
                new Registration(
                        segment.address(),
                        segment.byteSize(),
                        request.access(),
                        (offset, part, how) -> source.register(segment.asSlice(offset, part), how),
                        segment,
                        ownArena));
    }

    /**
     * Closes a pool once. When its regions cannot all be deregistered it stays in the tables, so
     * that nobody takes its name or its range for free and closing can be tried again; but it is
     * over for transfers and peers.
     */
    void close(Pool pool) {
        RuntimeException failure = null;
        synchronized (lock) {
            if (pools.get(pool.name()) != pool) {
                return;
            }
            if (pool.registrations > 1) {
                pool.registrations--;
                return;
            }
            if (!pool.isClosed()) {
                pool.closeToHolds();
            }
            addressMap = null;
            try {
                leave(pool.registration());
                pools.remove(pool.name());
            } catch (VerbsException refused) {
                failure =
                        refused.with(
                                pool
                                        + " stays registered in part; close it again once the cause is gone");
            } catch (RuntimeException refused) {
                failure = refused;
            }
        }
        tellListeners();
        if (failure != null) {
            throw failure;
        }
    }

    /** Deregisters a range when its last pool leaves it. */
    private void leave(Registration registration) {
        if (registration.pools == 1) {
            registration.deregister();
            ranges.remove(registration.address);
            registeredBytes -= registration.lengthBytes;
        }
        registration.pools--;
    }

    /** Reserves the name and the range, registers without the lock, then shows the pool. */
    private Pool add(String name, Registration wanted) {
        PoolDescriptor.checkName(name);
        if (wanted.lengthBytes <= 0
                || Long.compareUnsigned(wanted.address + wanted.lengthBytes, wanted.address) < 0) {
            throw new IllegalArgumentException(
                    "pool '"
                            + name
                            + "' of range "
                            + wanted
                            + " is empty or passes the address space");
        }
        checkRegionCount(name, wanted.lengthBytes);
        Registration registration;
        synchronized (lock) {
            waitWhile(() -> arriving.contains(name));
            if (closed) {
                throw new IllegalStateException("the memory registry is closed");
            }
            Pool known = pools.get(name);
            if (known != null) {
                return again(known, wanted);
            }
            registration = reserve(wanted);
            arriving.add(name);
        }
        try {
            if (registration == wanted) {
                registration.registerRegions(maxRegionBytes);
            } else {
                registration.awaitRegions();
            }
        } catch (RuntimeException failure) {
            unreserve(name, registration);
            throw explain(failure);
        } catch (Error failure) {
            unreserve(name, registration);
            throw failure;
        }
        Pool pool = show(name, registration);
        tellListeners();
        return pool;
    }

    /** Not left to the source, which is not asked when the range is registered already. */
    private static void checkSegment(String name, MemorySegment segment) {
        if (!segment.isNative()) {
            throw new IllegalArgumentException(
                    "the segment of pool '"
                            + name
                            + "' is on the heap, where the collector moves it; allocate it from an"
                            + " Arena");
        }
        if (segment.isReadOnly()) {
            throw new IllegalArgumentException(
                    "the segment of pool '"
                            + name
                            + "' is read-only, which a device does not see; register the segment"
                            + " that it is a view of, with access that does not write");
        }
        if (!segment.scope().isAlive()) {
            throw new IllegalStateException(
                    "the arena of pool '" + name + "' is closed: its memory is freed");
        }
    }

    /**
     * A pool of more regions could not be told to peers, and is refused before it costs anything.
     */
    private void checkRegionCount(String name, long lengthBytes) {
        long regions = Math.ceilDiv(lengthBytes, maxRegionBytes);
        if (regions > PoolDescriptor.MAX_REGIONS) {
            throw new IllegalArgumentException(
                    ("pool '%s' of %d bytes would be split into %d regions of %d bytes, more than %d;"
                                    + " register it as several pools, or as longer regions:"
                                    + " RegistryOptions.maxRegionBytes is %d, and the device allows %s")
                            .formatted(
                                    name,
                                    lengthBytes,
                                    regions,
                                    maxRegionBytes,
                                    PoolDescriptor.MAX_REGIONS,
                                    options.maxRegionBytes(),
                                    Long.toUnsignedString(source.maxRegionBytes())));
        }
    }

    private Pool show(String name, Registration registration) {
        synchronized (lock) {
            Pool pool = new Pool(name, ++generation, registration, this);
            pools.put(name, pool);
            addressMap = null;
            arriving.remove(name);
            lock.notifyAll();
            return pool;
        }
    }

    /** Waits for others to arrive, with the lock; registering cannot be broken off half-way. */
    private void waitWhile(BooleanSupplier condition) {
        boolean interrupted = false;
        while (condition.getAsBoolean()) {
            try {
                lock.wait();
            } catch (InterruptedException later) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** A listener's failure is not that of the pool, which is there or gone whatever it throws. */
    private void tellListeners() {
        for (Runnable listener : listeners) {
            try {
                listener.run();
            } catch (RuntimeException failure) {
                Thread thread = Thread.currentThread();
                thread.getUncaughtExceptionHandler().uncaughtException(thread, failure);
            }
        }
    }

    private static Pool again(Pool known, Registration wanted) {
        Registration registration = known.registration();
        registration.checkUsable();
        if (!registration.sameRange(wanted) || !registration.access.equals(wanted.access)) {
            throw new IllegalArgumentException(
                    "%s with access %s is registered already; the same name cannot stand for %s with access %s"
                            .formatted(known, registration.access, wanted, wanted.access));
        }
        known.registrations++;
        return known;
    }

    private Registration reserve(Registration wanted) {
        Map.Entry<Long, Registration> below =
                ranges.lowerEntry(wanted.address + wanted.lengthBytes);
        Registration neighbour = below == null ? null : below.getValue();
        if (neighbour != null && neighbour.overlaps(wanted)) {
            neighbour.checkUsable();
            if (!neighbour.sameRange(wanted)) {
                throw new IllegalArgumentException(
                        "range " + wanted + " overlaps " + neighbour + ", which is registered");
            }
            if (!neighbour.access.equals(wanted.access)) {
                throw new IllegalArgumentException(
                        "range %s is registered with access %s already, not %s"
                                .formatted(wanted, neighbour.access, wanted.access));
            }
            neighbour.pools++;
            return neighbour;
        }
        wanted.pools = 1;
        ranges.put(wanted.address, wanted);
        registeredBytes += wanted.lengthBytes;
        return wanted;
    }

    private void unreserve(String name, Registration registration) {
        synchronized (lock) {
            if (--registration.pools == 0) {
                ranges.remove(registration.address);
                registeredBytes -= registration.lengthBytes;
            }
            arriving.remove(name);
            lock.notifyAll();
        }
    }

    private RuntimeException explain(RuntimeException failure) {
        if (!(failure instanceof VerbsException verbs) || verbs.errno() != Errno.ENOMEM) {
            return failure;
        }
        synchronized (lock) {
            int regions = pools.values().stream().mapToInt(pool -> pool.regions().size()).sum();
            return verbs.with(
                    "registered so far: " + registeredBytes + " bytes in " + regions + " regions");
        }
    }

    private static boolean allowsRemote(Set<Access> access) {
        return access.contains(Access.REMOTE_READ)
                || access.contains(Access.REMOTE_WRITE)
                || access.contains(Access.REMOTE_ATOMIC);
    }
}
