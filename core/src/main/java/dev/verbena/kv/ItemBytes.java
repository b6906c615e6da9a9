package dev.verbena.kv;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.MemoryRegistry;
import dev.verbena.memory.Pool;
import java.nio.ByteBuffer;

/**
 * One item of every buffer, back to back, read from or written to the memory of this process: for
 * auxiliary data that goes by message.
 */
final class ItemBytes {
    private ItemBytes() {}

    /** How many bytes an item of every buffer has. */
    static long length(KvPools buffers) {
        long length = 0;
        for (int buffer = 0; buffer < buffers.size(); buffer++) {
            length = Checks.sum("bytes of an item", length, buffers.itemBytes(buffer));
        }
        return length;
    }

    /**
     * Reads an item of every buffer.
     *
     * @throws IllegalArgumentException if there are more bytes than a message holds, or a buffer is
     *     in no pool of the registry
     * @throws IllegalStateException if a pool is closed, or has no memory in this process
     * @throws IndexOutOfBoundsException if there is no such item
     */
    static byte[] read(MemoryRegistry registry, KvPools buffers, int item) {
        byte[] bytes = new byte[checkLength(buffers)];
        copy(registry, buffers, item, ByteBuffer.wrap(bytes), false);
        return bytes;
    }

    /**
     * Writes an item of every buffer.
     *
     * @throws IllegalArgumentException if the bytes are of another length than the items, or as for
     *     {@link #read}
     * @throws IllegalStateException as for {@link #read}
     * @throws IndexOutOfBoundsException as for {@link #read}
     */
    static void write(MemoryRegistry registry, KvPools buffers, int item, byte[] bytes) {
        if (bytes.length != length(buffers)) {
            throw new IllegalArgumentException(
                    "%d bytes of auxiliary data came, for items of %d bytes"
                            .formatted(bytes.length, length(buffers)));
        }
        copy(registry, buffers, item, ByteBuffer.wrap(bytes), true);
    }

    private static int checkLength(KvPools buffers) {
        long length = length(buffers);
        if (length > KvMessage.MAX_AUX_BYTES) {
            throw new IllegalArgumentException(
                    "auxiliary data of %d bytes; a message holds %d"
                            .formatted(length, KvMessage.MAX_AUX_BYTES));
        }
        return (int) length;
    }

    private static void copy(
            MemoryRegistry registry, KvPools buffers, int item, ByteBuffer bytes, boolean write) {
        PoolPairs.checkAll("aux", new int[] {item}, "auxiliary", buffers);
        for (int buffer = 0; buffer < buffers.size(); buffer++) {
            int length = (int) buffers.itemBytes(buffer);
            long address = buffers.base(buffer) + (long) item * length;
            ByteBuffer part = bytes.slice(bytes.position(), length);
            bytes.position(bytes.position() + length);
            copy(find(registry, address, length, buffer), address, part, write);
        }
    }

    private static void copy(Pool pool, long address, ByteBuffer bytes, boolean write) {
        pool.hold();
        try {
            ByteBuffer memory =
                    pool.segment()
                            .asSlice(address - pool.address(), bytes.remaining())
                            .asByteBuffer();
            if (write) {
                memory.put(bytes);
            } else {
                bytes.put(memory);
            }
        } finally {
            pool.release();
        }
    }

    private static Pool find(MemoryRegistry registry, long address, long length, int buffer) {
        AddressMap<Pool> map = registry.addressMap();
        int index = map.find(address);
        if (index < 0 || !map.covers(index, address, length)) {
            throw new IllegalArgumentException(
                    "auxiliary buffer %d at 0x%x, %d bytes, is in no pool of this node"
                            .formatted(buffer, address, length));
        }
        return map.owner(index);
    }
}
