package dev.verbena.verbs;

import dev.verbena.bindings.Errno;
import dev.verbena.bindings.Posix;
import dev.verbena.bindings.VerbsCalls;
import dev.verbena.bindings.VerbsInline;
import dev.verbena.bindings.ibverbs.ibv_mr;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Memory that a device may reach: a range of addresses with a local key for this side's work
 * requests and a remote key for the peer's.
 *
 * <p>Life: registered by a {@link ProtectionDomain}, {@link #close}d before the memory is freed.
 * Closing does not look for work requests that still use the region: {@code MemoryRegistry} does.
 */
public final class MemoryRegion implements AutoCloseable {
    private final long address;
    private final long lengthBytes;
    private final int localKey;
    private final int remoteKey;
    private final int accessFlags;
    private final MemorySegment mr;
    private final Lifetime lifetime;

    /** Keeps the memory reachable for as long as the device may touch it. */
    @SuppressWarnings({"unused", "FieldCanBeLocal"})
    private final @Nullable MemorySegment memory;

    private MemoryRegion(
            MemorySegment mr,
            long address,
            long lengthBytes,
            int accessFlags,
            @Nullable MemorySegment memory,
            Lifetime lifetime) {
        this.mr = mr;
        this.address = address;
        this.lengthBytes = lengthBytes;
        this.localKey = ibv_mr.lkey(mr);
        this.remoteKey = ibv_mr.rkey(mr);
        this.accessFlags = accessFlags;
        this.memory = memory;
        this.lifetime = lifetime;
    }

    private static MemoryRegion of(
            ProtectionDomain domain,
            MemorySegment mr,
            long address,
            long lengthBytes,
            Set<Access> access,
            @Nullable MemorySegment memory) {
        Lifetime lifetime = domain.lifetime().childOfEntered(() -> describe(address, lengthBytes));
        return new MemoryRegion(mr, address, lengthBytes, Access.flags(access), memory, lifetime);
    }

    /** For a test that stands in for the driver: wraps a region made up in memory. */
    static MemoryRegion wrap(MemorySegment mr, long address, long lengthBytes, Set<Access> access) {
        Lifetime lifetime = Lifetime.root(() -> describe(address, lengthBytes));
        return new MemoryRegion(mr, address, lengthBytes, Access.flags(access), null, lifetime);
    }

    private static String describe(long address, long lengthBytes) {
        return "memory region 0x%x+%d".formatted(address, lengthBytes);
    }

    static MemoryRegion ofSegment(
            ProtectionDomain domain, MemorySegment segment, Set<Access> access) {
        if (!segment.isNative()) {
            throw new IllegalArgumentException(
                    "the segment is on the heap, where the collector moves it; allocate it from an"
                            + " Arena");
        }
        if (!segment.scope().isAlive()) {
            throw new IllegalStateException("the segment's arena is closed: its memory is freed");
        }
        if (segment.isReadOnly()) {
            throw new IllegalArgumentException(
                    "the segment is read-only, which a device does not see; register the segment"
                            + " that it is a view of, with access that does not write, or the"
                            + " address of memory that is mapped read-only");
        }
        return ofAddress(domain, segment.address(), segment.byteSize(), access, segment);
    }

    static MemoryRegion ofAddress(
            ProtectionDomain domain,
            long address,
            long lengthBytes,
            Set<Access> access,
            @Nullable MemorySegment memory) {
        checkRange(address, lengthBytes);
        domain.lifetime().enter();
        try {
            MemorySegment mr =
                    VerbsInline.ibv_reg_mr(
                            domain.handle(),
                            MemorySegment.ofAddress(address),
                            lengthBytes,
                            Access.flags(access));
            if (mr.equals(MemorySegment.NULL)) {
                throw failure("ibv_reg_mr", domain, address, lengthBytes, access);
            }
            return of(domain, mr, address, lengthBytes, access, memory);
        } finally {
            domain.lifetime().exit();
        }
    }

    static MemoryRegion ofDmaBuf(
            ProtectionDomain domain,
            int fd,
            long offset,
            long lengthBytes,
            long address,
            Set<Access> access) {
        if (fd < 0 || offset < 0) {
            throw new IllegalArgumentException(
                    "fd=" + fd + " and offset=" + offset + " must not be negative");
        }
        checkRange(address, lengthBytes);
        domain.lifetime().enter();
        try {
            MemorySegment mr =
                    VerbsCalls.ibv_reg_dmabuf_mr(
                            domain.handle(),
                            offset,
                            lengthBytes,
                            address,
                            fd,
                            Access.flags(access));
            if (mr.equals(MemorySegment.NULL)) {
                throw failure("ibv_reg_dmabuf_mr", domain, address, lengthBytes, access);
            }
            return of(domain, mr, address, lengthBytes, access, null);
        } finally {
            domain.lifetime().exit();
        }
    }

    /**
     * Gives the first address of the region.
     *
     * @return the address by which work requests name its first byte
     */
    public long address() {
        return address;
    }

    /**
     * Gives the length of the region.
     *
     * @return its length in bytes
     */
    public long lengthBytes() {
        return lengthBytes;
    }

    /**
     * Gives the key for scatter-gather entries of this side.
     *
     * @return the lkey
     */
    public int localKey() {
        return localKey;
    }

    /**
     * Gives the key that lets peers reach the region, as far as its access allows.
     *
     * @return the rkey
     */
    public int remoteKey() {
        return remoteKey;
    }

    /**
     * Deregisters the memory: peers' accesses fail from now on. Does nothing if done already.
     *
     * @throws VerbsException EBUSY or EINVAL while a memory window is bound to it. Verb:
     *     ibv_dereg_mr(3)
     */
    @Override
    public void close() {
        lifetime.close(() -> {
            int result = VerbsCalls.ibv_dereg_mr(mr);
            if (result != 0) {
                throw new VerbsException(
                        "ibv_dereg_mr",
                        result,
                        lifetime.toString(),
                        "free the memory windows that are bound to it first");
            }
        });
    }

    @Override
    public String toString() {
        return lifetime.toString();
    }

    MemorySegment handle() {
        return mr;
    }

    Lifetime lifetime() {
        return lifetime;
    }

    boolean allows(Access access) {
        return (accessFlags & access.flag()) == access.flag();
    }

    private static void checkRange(long address, long lengthBytes) {
        if (lengthBytes <= 0 || Long.compareUnsigned(address + lengthBytes, address) < 0) {
            throw new IllegalArgumentException(
                    "a range of %d bytes at 0x%x is empty or passes the address space"
                            .formatted(lengthBytes, address));
        }
    }

    private static VerbsException failure(
            String verb, ProtectionDomain domain, long address, long length, Set<Access> access) {
        int errno = VerbsCalls.errno();
        String arguments = "address=0x%x, length=%d, access=%s".formatted(address, length, access);
        return new VerbsException(verb, errno, arguments, advice(errno, domain));
    }

    private static @Nullable String advice(int errno, ProtectionDomain domain) {
        DeviceAttributes limits = domain.device().attributes();
        if (errno == Errno.ENOMEM) {
            return "RLIMIT_MEMLOCK is %s (raise it with ulimit -l), and device %s allows %d regions of up to %s bytes"
                    .formatted(
                            limit(Posix.memoryLockLimitBytes()),
                            domain.device().name(),
                            limits.maxMemoryRegions(),
                            Long.toUnsignedString(limits.maxMemoryRegionBytes()));
        }
        if (errno == Errno.EFAULT) {
            return "part of the range is not mapped";
        }
        if (errno == Errno.EINVAL || errno == Errno.EOPNOTSUPP) {
            return "the device does not offer this access";
        }
        return null;
    }

    private static String limit(long bytes) {
        return bytes == Long.MAX_VALUE ? "unlimited" : bytes + " bytes";
    }
}
