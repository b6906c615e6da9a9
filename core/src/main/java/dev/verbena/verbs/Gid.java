package dev.verbena.verbs;

import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * One entry of a port's GID table: an address that a queue pair can send from.
 *
 * <p>Source: {@code ibv_query_gid_ex(3)}.
 *
 * @param index position in the port's table, from 0
 * @param type the protocol that carries packets of this GID
 * @param address the 16 bytes of the GID, in network order
 * @param interfaceIndex the network interface it belongs to, or 0 if there is none
 */
public record Gid(int index, Type type, Address address, int interfaceIndex) {

    /** The protocol of a GID. */
    public enum Type {
        /** InfiniBand. */
        INFINIBAND,
        /** RoCE v1: Ethernet frames, not routed. */
        ROCE_V1,
        /** RoCE v2: UDP over IPv4 or IPv6. */
        ROCE_V2
    }

    /** The reach of a GID's address. */
    public enum Scope {
        /** All zeros: an empty entry of the table. */
        EMPTY,
        /** IPv6 link-local: reaches one link only. */
        LINK_LOCAL,
        /** An IPv4 address in IPv6 form. */
        IPV4,
        /** Any other: an IPv6 address or an InfiniBand GID. */
        GLOBAL
    }

    /** Sixteen bytes in network order, with value equality. */
    public static final class Address {
        /** Length of a GID in bytes. */
        public static final int LENGTH = 16;

        private final byte[] bytes;

        /**
         * Copies a GID.
         *
         * @param bytes exactly 16 bytes
         * @throws IllegalArgumentException if the length is another
         */
        public Address(byte[] bytes) {
            if (bytes.length != LENGTH) {
                throw new IllegalArgumentException("a GID has 16 bytes, not " + bytes.length);
            }
            this.bytes = bytes.clone();
        }

        /**
         * Gives the bytes.
         *
         * @return a copy, 16 bytes in network order
         */
        public byte[] toArray() {
            return bytes.clone();
        }

        /**
         * Tells the reach of the address.
         *
         * @return its scope
         */
        public Scope scope() {
            if (isZero(0, LENGTH)) {
                return Scope.EMPTY;
            }
            if (bytes[0] == (byte) 0xfe && (bytes[1] & 0xc0) == 0x80) {
                return Scope.LINK_LOCAL;
            }
            if (isZero(0, 10) && bytes[10] == (byte) 0xff && bytes[11] == (byte) 0xff) {
                return Scope.IPV4;
            }
            return Scope.GLOBAL;
        }

        private boolean isZero(int from, int to) {
            for (int i = from; i < to; i++) {
                if (bytes[i] != 0) {
                    return false;
                }
            }
            return true;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Address that && Arrays.equals(bytes, that.bytes);
        }

        @Override
        public int hashCode() {
            return Arrays.hashCode(bytes);
        }

        /** Shows an IPv4-mapped GID as the IPv4 address, any other as an IPv6 address. */
        @Override
        public String toString() {
            try {
                InetAddress address = InetAddress.getByAddress(bytes);
                return address instanceof Inet4Address
                        ? "::ffff:" + address.getHostAddress()
                        : address.getHostAddress();
            } catch (UnknownHostException impossible) {
                return HexFormat.of().formatHex(bytes);
            }
        }
    }

    /**
     * Tells the reach of this GID.
     *
     * @return the scope of its address
     */
    public Scope scope() {
        return address.scope();
    }

    @Override
    public String toString() {
        return "gid[" + index + "] " + address + " " + type;
    }
}
