package dev.verbena.verbs;

import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_ACCESS_FLAGS;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_AV;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_DEST_QPN;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_MAX_DEST_RD_ATOMIC;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_MAX_QP_RD_ATOMIC;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_MIN_RNR_TIMER;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_PATH_MTU;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_PKEY_INDEX;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_PORT;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_RETRY_CNT;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_RNR_RETRY;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_RQ_PSN;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_SQ_PSN;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QP_TIMEOUT;

/**
 * The attributes of a reliable connected queue pair that a change of state may carry.
 *
 * <p>Source: {@code ibv_modify_qp(3)}, enum {@code ibv_qp_attr_mask}.
 */
public enum QueuePairAttribute {
    /** Index into the port's table of partition keys. */
    PARTITION_KEY_INDEX(IBV_QP_PKEY_INDEX()),
    /** The device's port. */
    PORT(IBV_QP_PORT()),
    /** What the peer may do over this queue pair. */
    ACCESS(IBV_QP_ACCESS_FLAGS()),
    /** The address vector: the peer's GID or LID and how to reach it. */
    DESTINATION(IBV_QP_AV()),
    /** The largest packet on the path. */
    PATH_MTU(IBV_QP_PATH_MTU()),
    /** The peer's queue pair number. */
    PEER_QUEUE_PAIR(IBV_QP_DEST_QPN()),
    /** The packet sequence number that the peer starts with. */
    RECEIVE_PSN(IBV_QP_RQ_PSN()),
    /** The packet sequence number that this side starts with. */
    SEND_PSN(IBV_QP_SQ_PSN()),
    /** How many reads and atomics of the peer may be outstanding here. */
    READS_AS_RESPONDER(IBV_QP_MAX_DEST_RD_ATOMIC()),
    /** How many reads and atomics of this side may be outstanding at the peer. */
    READS_AS_REQUESTER(IBV_QP_MAX_QP_RD_ATOMIC()),
    /** How long the peer waits after a receiver-not-ready answer of this side. */
    MIN_RNR_TIMER(IBV_QP_MIN_RNR_TIMER()),
    /** How long this side waits for an acknowledgement: 4.096 us times two to this power. */
    TIMEOUT(IBV_QP_TIMEOUT()),
    /** How often a lost packet is sent again. */
    RETRY_COUNT(IBV_QP_RETRY_CNT()),
    /** How often a message is sent again to a receiver that was not ready. */
    RNR_RETRY(IBV_QP_RNR_RETRY());

    private final int mask;

    QueuePairAttribute(int mask) {
        this.mask = mask;
    }

    /**
     * Gives the bit that the verbs use.
     *
     * @return the value of {@code enum ibv_qp_attr_mask}
     */
    public int mask() {
        return mask;
    }
}
