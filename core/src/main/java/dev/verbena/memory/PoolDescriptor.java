package dev.verbena.memory;

import dev.verbena.verbs.Access;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * What a peer must know of a pool to reach it: its range, its regions with their remote keys, and
 * the generation, by which a pool registered again under the same name is told from the one before.
 *
 * <p>Serialised form, big-endian:
 *
 * <pre>
 *   u16 version = 1 | u32 length of what follows
 *   u64 generation | u64 address | u64 length | u32 access flags
 *   u16 length of name | name in UTF-8
 *   u32 count of regions | per region: u64 length, u32 rkey
 * </pre>
 *
 * @param name the pool's name at its owner
 * @param generation grows with every registration at the owner
 * @param address first byte, in the owner's address space
 * @param lengthBytes length, above 0
 * @param access what peers may do, with what that implies
 * @param regions its memory regions, in order, covering the range without a gap
 */
public record PoolDescriptor(
        String name,
        long generation,
        long address,
        long lengthBytes,
        Set<Access> access,
        List<Region> regions) {

    /**
     * One memory region of a pool.
     *
     * @param lengthBytes its length, above 0
     * @param remoteKey its rkey
     */
    public record Region(long lengthBytes, int remoteKey) {}

    /** Longest name of a pool, in bytes of UTF-8. */
    public static final int MAX_NAME_BYTES = 255;

    /** Most memory regions of one pool. */
    public static final int MAX_REGIONS = 65_536;

    private static final int VERSION = 1;
    private static final int HEADER_BYTES = Short.BYTES + Integer.BYTES;
    private static final int FIXED_BYTES = 3 * Long.BYTES + 2 * Integer.BYTES + Short.BYTES;
    private static final int REGION_BYTES = Long.BYTES + Integer.BYTES;

    /**
     * Checks that the parts fit together.
     *
     * @throws IllegalArgumentException if the name is empty or too long, or the regions do not
     *     cover the range exactly
     */
    public PoolDescriptor {
        // With what they imply, as the serialised form has no other.
        access = Set.copyOf(Access.of(Access.flags(access)));
        regions = List.copyOf(regions);
        checkName(name);
        if (regions.isEmpty() || regions.size() > MAX_REGIONS) {
            throw new IllegalArgumentException(
                    "pool '"
                            + name
                            + "' has "
                            + regions.size()
                            + " regions, not 1.."
                            + MAX_REGIONS);
        }
        long covered = 0;
        for (Region region : regions) {
            if (region.lengthBytes <= 0 || region.lengthBytes > lengthBytes - covered) {
                throw new IllegalArgumentException(
                        "pool '"
                                + name
                                + "' of "
                                + lengthBytes
                                + " bytes has a region of "
                                + region.lengthBytes
                                + " bytes at offset "
                                + covered);
            }
            covered += region.lengthBytes;
        }
        if (covered != lengthBytes) {
            throw new IllegalArgumentException(
                    "the regions of pool '"
                            + name
                            + "' cover "
                            + covered
                            + " of "
                            + lengthBytes
                            + " bytes");
        }
        if (Long.compareUnsigned(address + lengthBytes, address) < 0) {
            throw new IllegalArgumentException(
                    "pool '%s' of %d bytes at 0x%x passes the address space"
                            .formatted(name, lengthBytes, address));
        }
    }

    static void checkName(String name) {
        int bytes = name.getBytes(StandardCharsets.UTF_8).length;
        if (bytes == 0 || bytes > MAX_NAME_BYTES) {
            throw new IllegalArgumentException(
                    "a pool's name has 1.." + MAX_NAME_BYTES + " bytes, not " + bytes);
        }
    }

    /**
     * Says how long the serialised form is.
     *
     * @return its length in bytes
     */
    public int encodedBytes() {
        return HEADER_BYTES
                + FIXED_BYTES
                + name.getBytes(StandardCharsets.UTF_8).length
                + regions.size() * REGION_BYTES;
    }

    /**
     * Serialises the descriptor.
     *
     * @param out where to, big-endian, with {@link #encodedBytes} remaining
     * @throws java.nio.BufferOverflowException if there is less room
     */
    public void encode(ByteBuffer out) {
        byte[] nameBytes = name.getBytes(StandardCharsets.UTF_8);
        out.putShort((short) VERSION).putInt(encodedBytes() - HEADER_BYTES);
        out.putLong(generation).putLong(address).putLong(lengthBytes);
        out.putInt(Access.flags(access));
        out.putShort((short) nameBytes.length).put(nameBytes);
        out.putInt(regions.size());
        for (Region region : regions) {
            out.putLong(region.lengthBytes).putInt(region.remoteKey);
        }
    }

    /**
     * Reads a descriptor, which may come from anybody: every length is checked before it is used.
     *
     * @param in where from, big-endian; stands behind the descriptor afterwards
     * @return the descriptor
     * @throws IllegalArgumentException if it is of another version, cut short, or makes no sense
     */
    public static PoolDescriptor decode(ByteBuffer in) {
        need(in, HEADER_BYTES);
        int version = Short.toUnsignedInt(in.getShort());
        if (version != VERSION) {
            throw new IllegalArgumentException(
                    "pool descriptor of version " + version + "; this side reads " + VERSION);
        }
        int length = in.getInt();
        need(in, length);
        ByteBuffer body = in.slice(in.position(), length);
        in.position(in.position() + length);
        need(body, FIXED_BYTES);
        long generation = body.getLong();
        long address = body.getLong();
        long lengthBytes = body.getLong();
        Set<Access> access = Access.of(body.getInt());
        byte[] nameBytes = new byte[need(body, Short.toUnsignedInt(body.getShort()))];
        body.get(nameBytes);
        need(body, Integer.BYTES);
        int count = body.getInt();
        if (count < 0 || count > MAX_REGIONS || body.remaining() != count * REGION_BYTES) {
            throw new IllegalArgumentException(
                    "pool descriptor with "
                            + count
                            + " regions has "
                            + body.remaining()
                            + " bytes for them");
        }
        List<Region> regions = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            regions.add(new Region(body.getLong(), body.getInt()));
        }
        String name = new String(nameBytes, StandardCharsets.UTF_8);
        return new PoolDescriptor(name, generation, address, lengthBytes, access, regions);
    }

    private static int need(ByteBuffer in, int bytes) {
        if (bytes < 0 || in.remaining() < bytes) {
            throw new IllegalArgumentException(
                    "pool descriptor is cut short: "
                            + bytes
                            + " bytes needed, "
                            + in.remaining()
                            + " left");
        }
        return bytes;
    }
}
