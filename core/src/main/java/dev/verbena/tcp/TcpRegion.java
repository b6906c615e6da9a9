package dev.verbena.tcp;

import dev.verbena.verbs.Access;
import dev.verbena.verbs.Lifetime;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Set;

/**
 * A registered range, as lanes reach it: what a memory region is to a device.
 *
 * <p>What a peer's request touches is touched between {@link #enter} and {@link #exit}; closing
 * turns later ones away and waits for those under way, which never wait for a socket. Memory of
 * this side's own requests needs neither, as their transfers hold its pool.
 */
final class TcpRegion {
    private final MemorySegment memory;
    private final ByteBuffer bytes;
    private final long address;
    private final Set<Access> access;
    private final Lifetime lifetime;

    TcpRegion(MemorySegment memory, Set<Access> access) {
        this.memory = memory;
        this.bytes = memory.asByteBuffer();
        this.address = memory.address();
        // With what they imply.
        this.access = Access.of(Access.flags(access));
        this.lifetime =
                Lifetime.root(() -> "TCP region 0x%x+%d".formatted(address, memory.byteSize()));
    }

    /** Whether a range is inside, and this access to it granted. */
    boolean grants(Access wanted, long rangeAddress, int lengthBytes) {
        return covers(rangeAddress, lengthBytes) && access.contains(wanted);
    }

    boolean covers(long rangeAddress, int lengthBytes) {
        long offset = rangeAddress - address;
        return lengthBytes >= 0 && offset >= 0 && offset <= memory.byteSize() - lengthBytes;
    }

    /** Begins an access; false once it has been closed, or its memory freed. */
    boolean enter() {
        if (!memory.scope().isAlive()) {
            return false;
        }
        try {
            lifetime.enter();
            return true;
        } catch (IllegalStateException closed) {
            return false;
        }
    }

    void exit() {
        lifetime.exit();
    }

    /** A view of a range that it covers. */
    ByteBuffer view(long rangeAddress, int lengthBytes) {
        return bytes.slice((int) (rangeAddress - address), lengthBytes);
    }

    /** Copies what comes next in a buffer to a range that it covers. */
    void put(long rangeAddress, ByteBuffer from, int lengthBytes) {
        bytes.put((int) (rangeAddress - address), from, from.position(), lengthBytes);
        from.position(from.position() + lengthBytes);
    }

    /** Copies a range that it covers to the position of a buffer. */
    void get(long rangeAddress, ByteBuffer to, int lengthBytes) {
        to.put(to.position(), bytes, (int) (rangeAddress - address), lengthBytes);
        to.position(to.position() + lengthBytes);
    }

    void close() {
        lifetime.close(() -> {});
    }
}
