package dev.verbena.verbs;

import dev.verbena.bindings.VerbsCalls;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.Set;

/**
 * A protection domain: memory regions and queue pairs of one domain may work together, and no
 * others.
 *
 * <p>Life: {@link Device#allocateProtectionDomain}, register and create, close those, {@link
 * #close}. Safe for use by several threads.
 */
public final class ProtectionDomain implements AutoCloseable {
    private final Device device;
    private final MemorySegment pd;
    private final Lifetime lifetime;

    ProtectionDomain(Device device) {
        this.device = device;
        device.lifetime().enter();
        try {
            pd = VerbsCalls.ibv_alloc_pd(device.context());
            if (pd.equals(MemorySegment.NULL)) {
                throw new VerbsException(
                        "ibv_alloc_pd", VerbsCalls.errno(), "device=" + device.name());
            }
            lifetime =
                    device.lifetime().childOfEntered(() -> "protection domain of " + device.name());
        } finally {
            device.lifetime().exit();
        }
    }

    /**
     * Gives the device that the domain belongs to.
     *
     * @return the device
     */
    public Device device() {
        return device;
    }

    /**
     * Registers memory: pins it and makes it known to the device. The memory must stay allocated
     * until the region is closed, which the caller sees to; the region keeps the segment reachable.
     *
     * <p>Cost: one system call that touches every page: about a quarter of a millisecond a MiB when
     * the pages are not there yet.
     *
     * @param segment native memory that is not read-only: whether a device writes is for the access
     *     to say, and older kernels refuse to pin some memory that is mapped read-only
     * @param access what peers may do; empty for memory that only this device reads
     * @return the region, to be closed before the memory is freed
     * @throws IllegalArgumentException if the segment is on the heap, empty or read-only
     * @throws IllegalStateException if the segment's arena is closed, or the domain is
     * @throws VerbsException ENOMEM when memory may not be pinned (RLIMIT_MEMLOCK) or the device is
     *     full; EINVAL for access the device does not know. Verb: ibv_reg_mr(3)
     */
    public MemoryRegion register(MemorySegment segment, Set<Access> access) {
        return MemoryRegion.ofSegment(this, segment, access);
    }

    /**
     * Registers memory given by address, such as memory of an accelerator whose driver has a
     * peer-memory module. The caller answers for the range: it must be mapped until the region is
     * closed. A range that is not mapped is refused by the kernel (EFAULT), not a crash.
     *
     * @param address first byte
     * @param lengthBytes length, above 0
     * @param access what peers may do
     * @return the region
     * @throws IllegalArgumentException if the length is not above 0 or passes the address space
     * @throws IllegalStateException if the domain is closed
     * @throws VerbsException as {@link #register}, and EFAULT. Verb: ibv_reg_mr(3)
     */
    public MemoryRegion registerAddress(long address, long lengthBytes, Set<Access> access) {
        return MemoryRegion.ofAddress(this, address, lengthBytes, access, null);
    }

    /**
     * Registers a dma-buf: memory of another device, exported as a file.
     *
     * @param fd the dma-buf's file descriptor, which stays the caller's
     * @param offset first byte within the dma-buf
     * @param lengthBytes length, above 0
     * @param address the address by which work requests and peers shall name the first byte; its
     *     offset within a page must be that of {@code offset}
     * @param access what peers may do
     * @return the region
     * @throws IllegalArgumentException if the file or the offset is negative, or the range is empty
     *     or passes the address space
     * @throws IllegalStateException if the domain is closed
     * @throws dev.verbena.bindings.VerbsUnavailableException if libibverbs is older than 1.12
     * @throws VerbsException EBADF if the file is no dma-buf, EOPNOTSUPP if the driver cannot.
     *     Verb: ibv_reg_dmabuf_mr(3)
     */
    public MemoryRegion registerDmaBuf(
            int fd, long offset, long lengthBytes, long address, Set<Access> access) {
        return MemoryRegion.ofDmaBuf(this, fd, offset, lengthBytes, address, access);
    }

    /**
     * Creates a reliable connected queue pair, in the state {@link QueuePairState#RESET}.
     *
     * @param options its size
     * @param sendCompletions where its sends complete
     * @param receiveCompletions where its receives complete; may be the same queue
     * @return the queue pair, to be closed before its completion queues
     * @throws IllegalArgumentException if the device cannot do the size asked, or a completion
     *     queue is of another device or of the same opened once more
     * @throws IllegalStateException if the domain or a completion queue is closed
     * @throws VerbsException ENOMEM when the device or RLIMIT_MEMLOCK is exhausted. Verb:
     *     ibv_create_qp(3)
     */
    public QueuePair createQueuePair(
            QueuePairOptions options,
            CompletionQueue sendCompletions,
            CompletionQueue receiveCompletions) {
        return QueuePair.create(
                this,
                Objects.requireNonNull(options),
                Objects.requireNonNull(sendCompletions),
                Objects.requireNonNull(receiveCompletions));
    }

    /**
     * Allocates a memory window, to be {@linkplain MemoryWindow#bind bound} over part of a region.
     *
     * @param type 1 for a window that peers may use through any queue pair of the domain, 2 for one
     *     that serves the queue pair through which it is bound
     * @return the window, not bound yet
     * @throws IllegalArgumentException if the type is another
     * @throws IllegalStateException if the domain is closed
     * @throws VerbsException if the device has no windows or no more of them. Verb: ibv_alloc_mw(3)
     */
    public MemoryWindow allocateMemoryWindow(int type) {
        return MemoryWindow.allocate(this, type);
    }

    /**
     * Closes the domain. Does nothing if it is closed already.
     *
     * @throws IllegalStateException if regions, windows or queue pairs are open in it
     * @throws VerbsException if the verb fails. Verb: ibv_dealloc_pd(3)
     */
    @Override
    public void close() {
        lifetime.close(() ->
                VerbsException.check(
                        "ibv_dealloc_pd",
                        VerbsCalls.ibv_dealloc_pd(pd),
                        "device=" + device.name()));
    }

    @Override
    public String toString() {
        return lifetime.toString();
    }

    /** The native handle; only between enter and exit of {@link #lifetime}. */
    MemorySegment handle() {
        return pd;
    }

    Lifetime lifetime() {
        return lifetime;
    }
}
