package dev.verbena.verbs;

/**
 * Where a queue pair sends: the address vector of its peer.
 *
 * <p>Source: {@code ibv_modify_qp(3)}, struct {@code ibv_ah_attr}.
 *
 * @param gid the peer's GID; on Ethernet it is all that counts
 * @param localGidIndex the entry of this port's GID table to send from
 * @param lid the peer's local identifier, 0 on Ethernet
 * @param port this side's port, from 1
 * @param hopLimit routers a packet may cross, 1 to 255
 * @param trafficClass for quality of service, 0 to 255; on RoCE v2 its upper six bits are the DSCP
 * @param serviceLevel for quality of service, 0 to 15
 */
public record Destination(
        Gid.Address gid,
        int localGidIndex,
        int lid,
        int port,
        int hopLimit,
        int trafficClass,
        int serviceLevel) {

    /**
     * Checks the numbers.
     *
     * @throws IllegalArgumentException if one is out of its range
     */
    public Destination {
        if (localGidIndex < 0
                || localGidIndex > 255
                || lid < 0
                || lid > 0xffff
                || port < 1
                || port > 255
                || hopLimit < 1
                || hopLimit > 255
                || trafficClass < 0
                || trafficClass > 255
                || serviceLevel < 0
                || serviceLevel > 15) {
            throw new IllegalArgumentException(
                    ("out of range: localGidIndex=%d (0..255), lid=%d (0..65535), port=%d (1..255),"
                                    + " hopLimit=%d (1..255), trafficClass=%d (0..255),"
                                    + " serviceLevel=%d (0..15)")
                            .formatted(
                                    localGidIndex,
                                    lid,
                                    port,
                                    hopLimit,
                                    trafficClass,
                                    serviceLevel));
        }
    }
}
