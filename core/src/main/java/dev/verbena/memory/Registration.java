package dev.verbena.memory;

import dev.verbena.verbs.Access;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * One range of addresses and the memory regions that cover it, shared by all pools that name this
 * range. The registry guards its fields by its own lock, but for the regions, which appear once.
 */
final class Registration {
    /** What a range is, and so how a part of it is registered. */
    interface Parts {
        RegionSource.Region register(long offset, long lengthBytes, Set<Access> access);
    }

    final long address;
    final long lengthBytes;
    final Set<Access> access;
    final Parts parts;
    final @Nullable MemorySegment segment;
    final @Nullable Arena ownArena;
    final CompletableFuture<List<RegionSource.Region>> regions = new CompletableFuture<>();

    /** How many pools name this range. */
    int pools;

    /** Whether deregistering has begun, which ends with the range's last pool unless it fails. */
    private boolean deregistering;

    Registration(
            long address,
            long lengthBytes,
            Set<Access> access,
            Parts parts,
            @Nullable MemorySegment segment,
            @Nullable Arena ownArena) {
        this.address = address;
        this.lengthBytes = lengthBytes;
        this.access = Set.copyOf(access);
        this.parts = parts;
        this.segment = segment;
        this.ownArena = ownArena;
    }

    /** Whether the memory was freed while it is registered, as far as the JVM knows. */
    boolean isFreed() {
        return segment != null && !segment.scope().isAlive();
    }

    boolean sameRange(Registration other) {
        return address == other.address && lengthBytes == other.lengthBytes;
    }

    boolean overlaps(Registration other) {
        return Long.compareUnsigned(address, other.address + other.lengthBytes) < 0
                && Long.compareUnsigned(other.address, address + lengthBytes) < 0;
    }

    /** Registers the range in parts of at most so many bytes; on failure nothing stays. */
    void registerRegions(long maxRegionBytes) {
        List<RegionSource.Region> done = new ArrayList<>();
        try {
            for (long offset = 0; offset < lengthBytes; offset += maxRegionBytes) {
                long part = Math.min(maxRegionBytes, lengthBytes - offset);
                done.add(parts.register(offset, part, access));
            }
        } catch (RuntimeException | Error failure) {
            for (RegionSource.Region region : done) {
                try {
                    region.close();
                } catch (RuntimeException closing) {
                    failure.addSuppressed(closing);
                }
            }
            regions.completeExceptionally(failure);
            throw failure;
        }
        regions.complete(List.copyOf(done));
    }

    /**
     * Waits until the thread that registers the range has done so.
     *
     * @throws RuntimeException what that thread's attempt failed with
     */
    void awaitRegions() {
        try {
            regions.join();
        } catch (CompletionException failed) {
            if (failed.getCause() instanceof Error error) {
                throw error;
            }
            throw failed.getCause() instanceof RuntimeException cause ? cause : failed;
        }
    }

    /**
     * Refuses a further pool over the range when its regions are not what they should be.
     *
     * @throws IllegalStateException if some are deregistered and others could not be, or if the
     *     memory was freed: the device keeps the old pages, whatever is at the addresses now
     */
    void checkUsable() {
        if (isFreed()) {
            throw new IllegalStateException(
                    "range "
                            + this
                            + " is still registered for memory that is freed, as its arena was"
                            + " closed before its pools; close those first");
        }
        if (deregistering) {
            throw new IllegalStateException(
                    "range "
                            + this
                            + " is still registered in part, since closing its pool failed; close"
                            + " that pool again");
        }
    }

    /**
     * Deregisters all regions that it can, and frees the memory if it is ours and no region is
     * left. May be called again after a failure.
     *
     * @throws RuntimeException what the first region that is left failed with
     */
    void deregister() {
        deregistering = true;
        RuntimeException failure = null;
        for (RegionSource.Region region : regions.join()) {
            try {
                region.close();
            } catch (RuntimeException refused) {
                failure = failure == null ? refused : failure;
            }
        }
        if (failure != null) {
            throw failure;
        }
        if (ownArena != null) {
            ownArena.close();
        }
    }

    @Override
    public String toString() {
        return "0x%x+%d".formatted(address, lengthBytes);
    }
}
