package dev.verbena.verbs;

import dev.verbena.bindings.ibverbs.ibv_ah_attr;
import dev.verbena.bindings.ibverbs.ibv_global_route;
import dev.verbena.bindings.ibverbs.ibv_qp_attr;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The attributes that a change of a queue pair's state carries: each one set is put in the mask.
 *
 * <p>Not thread-safe; may be used for several queue pairs one after the other.
 */
public final class QueuePairAttributes {
    /** Packet sequence numbers have 24 bits. */
    private static final int PSN_LIMIT = 1 << 24;

    private final Map<QueuePairAttribute, Integer> numbers =
            new EnumMap<>(QueuePairAttribute.class);
    private @Nullable Destination destination;

    /** Makes an empty set of attributes. */
    public QueuePairAttributes() {}

    /**
     * Sets an attribute that is a number.
     *
     * @param attribute which; {@link QueuePairAttribute#PATH_MTU} is given in bytes, {@link
     *     QueuePairAttribute#ACCESS} as {@link Access#flags} makes it
     * @param value its value
     * @return this
     * @throws IllegalArgumentException if the value is out of the attribute's range, or the
     *     attribute is the destination
     */
    public QueuePairAttributes set(QueuePairAttribute attribute, int value) {
        int limit = limit(attribute);
        if (value < 0 || value >= limit) {
            throw new IllegalArgumentException(
                    attribute + " takes 0.." + (limit - 1) + ", not " + value);
        }
        numbers.put(
                attribute,
                attribute == QueuePairAttribute.PATH_MTU ? PortAttributes.mtuNumber(value) : value);
        return this;
    }

    /**
     * Sets the peer's address.
     *
     * @param newDestination where to send
     * @return this
     */
    public QueuePairAttributes destination(Destination newDestination) {
        destination = Objects.requireNonNull(newDestination);
        numbers.put(QueuePairAttribute.DESTINATION, 0);
        return this;
    }

    /** The attributes that are set. */
    Set<QueuePairAttribute> given() {
        return numbers.keySet();
    }

    int mask() {
        int mask = 0;
        for (QueuePairAttribute attribute : numbers.keySet()) {
            mask |= attribute.mask();
        }
        return mask;
    }

    void write(MemorySegment attr) {
        numbers.forEach((attribute, value) -> write(attr, attribute, value));
        if (destination != null) {
            write(ibv_qp_attr.ah_attr(attr), destination);
        }
    }

    private static void write(MemorySegment attr, QueuePairAttribute attribute, int value) {
        switch (attribute) {
            case PARTITION_KEY_INDEX -> ibv_qp_attr.pkey_index(attr, (short) value);
            case PORT -> ibv_qp_attr.port_num(attr, (byte) value);
            case ACCESS -> ibv_qp_attr.qp_access_flags(attr, value);
            case PATH_MTU -> ibv_qp_attr.path_mtu(attr, value);
            case PEER_QUEUE_PAIR -> ibv_qp_attr.dest_qp_num(attr, value);
            case RECEIVE_PSN -> ibv_qp_attr.rq_psn(attr, value);
            case SEND_PSN -> ibv_qp_attr.sq_psn(attr, value);
            case READS_AS_RESPONDER -> ibv_qp_attr.max_dest_rd_atomic(attr, (byte) value);
            case READS_AS_REQUESTER -> ibv_qp_attr.max_rd_atomic(attr, (byte) value);
            case MIN_RNR_TIMER -> ibv_qp_attr.min_rnr_timer(attr, (byte) value);
            case TIMEOUT -> ibv_qp_attr.timeout(attr, (byte) value);
            case RETRY_COUNT -> ibv_qp_attr.retry_cnt(attr, (byte) value);
            case RNR_RETRY -> ibv_qp_attr.rnr_retry(attr, (byte) value);
            case DESTINATION -> {}
        }
    }

    private static void write(MemorySegment ah, Destination destination) {
        MemorySegment route = ibv_ah_attr.grh(ah);
        MemorySegment.copy(
                MemorySegment.ofArray(destination.gid().toArray()),
                0,
                ibv_global_route.dgid(route),
                0,
                Gid.Address.LENGTH);
        ibv_global_route.sgid_index(route, (byte) destination.localGidIndex());
        ibv_global_route.hop_limit(route, (byte) destination.hopLimit());
        ibv_global_route.traffic_class(route, (byte) destination.trafficClass());
        ibv_ah_attr.is_global(ah, (byte) 1);
        ibv_ah_attr.dlid(ah, (short) destination.lid());
        ibv_ah_attr.sl(ah, (byte) destination.serviceLevel());
        ibv_ah_attr.port_num(ah, (byte) destination.port());
    }

    private static int limit(QueuePairAttribute attribute) {
        return switch (attribute) {
            case RECEIVE_PSN, SEND_PSN, PEER_QUEUE_PAIR -> PSN_LIMIT;
            case RETRY_COUNT, RNR_RETRY -> 8;
            case MIN_RNR_TIMER, TIMEOUT -> 32;
            case PORT, READS_AS_REQUESTER, READS_AS_RESPONDER -> 256;
            case PARTITION_KEY_INDEX -> 1 << 16;
            case PATH_MTU -> 4097;
            case ACCESS -> Integer.MAX_VALUE;
            case DESTINATION ->
                    throw new IllegalArgumentException("the destination is not a number");
        };
    }
}
