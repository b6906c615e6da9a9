package dev.verbena.verbs;

import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_LINK_LAYER_ETHERNET;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_PORT_ACTIVE;

import dev.verbena.bindings.ibverbs.ibv_port_attr;
import java.lang.foreign.MemorySegment;

/**
 * The state of one port of a device.
 *
 * <p>Source: {@code ibv_query_port(3)}.
 *
 * @param active true if the link is up and packets flow
 * @param ethernet true for RoCE, false for InfiniBand
 * @param maxMtuBytes largest packet payload the port could do
 * @param activeMtuBytes largest packet payload it does now: 256, 512, 1024, 2048 or 4096
 * @param maxMessageBytes longest message of one work request
 * @param gidCount entries of its GID table
 * @param lid its local identifier, 0 on Ethernet
 */
public record PortAttributes(
        boolean active,
        boolean ethernet,
        int maxMtuBytes,
        int activeMtuBytes,
        long maxMessageBytes,
        int gidCount,
        int lid) {

    /** The verbs number MTUs from 1 for 256 bytes, doubling. */
    private static final int SMALLEST_MTU = 256;

    static PortAttributes read(MemorySegment attr) {
        return new PortAttributes(
                ibv_port_attr.state(attr) == IBV_PORT_ACTIVE(),
                ibv_port_attr.link_layer(attr) == IBV_LINK_LAYER_ETHERNET(),
                mtuBytes(ibv_port_attr.max_mtu(attr)),
                mtuBytes(ibv_port_attr.active_mtu(attr)),
                Integer.toUnsignedLong(ibv_port_attr.max_msg_sz(attr)),
                ibv_port_attr.gid_tbl_len(attr),
                Short.toUnsignedInt(ibv_port_attr.lid(attr)));
    }

    private static int mtuBytes(int verbsNumber) {
        return SMALLEST_MTU << (verbsNumber - 1);
    }

    /** The verbs' number of an MTU. */
    static int mtuNumber(int mtuBytes) {
        if (Integer.bitCount(mtuBytes) != 1 || mtuBytes < 256 || mtuBytes > 4096) {
            throw new IllegalArgumentException(
                    "an MTU is 256, 512, 1024, 2048 or 4096 bytes, not " + mtuBytes);
        }
        return Integer.numberOfTrailingZeros(mtuBytes / SMALLEST_MTU) + 1;
    }
}
