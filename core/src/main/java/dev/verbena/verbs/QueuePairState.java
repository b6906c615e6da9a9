package dev.verbena.verbs;

import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QPS_ERR;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QPS_INIT;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QPS_RESET;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QPS_RTR;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QPS_RTS;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QPS_SQD;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_QPS_SQE;

/**
 * The states of a queue pair, in the order of the verbs.
 *
 * <p>Source: {@code ibv_modify_qp(3)}, enum {@code ibv_qp_state}.
 */
public enum QueuePairState {
    /** As created: nothing can be posted. */
    RESET(IBV_QPS_RESET()),
    /** Receives can be posted, nothing is processed. */
    INIT(IBV_QPS_INIT()),
    /** Ready to receive: messages of the peer are processed. */
    READY_TO_RECEIVE(IBV_QPS_RTR()),
    /** Ready to send: fully connected. */
    READY_TO_SEND(IBV_QPS_RTS()),
    /** The send queue drains, and takes no new work to the wire. */
    SEND_QUEUE_DRAIN(IBV_QPS_SQD()),
    /** The send queue failed; only unreliable queue pairs come here. */
    SEND_QUEUE_ERROR(IBV_QPS_SQE()),
    /** Failed or told to stop: every outstanding work request completes as flushed. */
    ERROR(IBV_QPS_ERR());

    private final int value;

    QueuePairState(int value) {
        this.value = value;
    }

    /**
     * Gives the number that the verbs use.
     *
     * @return the value of {@code enum ibv_qp_state}
     */
    public int value() {
        return value;
    }

    /**
     * Finds a state by its number.
     *
     * @param value the value of {@code enum ibv_qp_state}
     * @return the state
     * @throws IllegalArgumentException if the verbs have no such state
     */
    public static QueuePairState of(int value) {
        for (QueuePairState state : values()) {
            if (state.value == value) {
                return state;
            }
        }
        throw new IllegalArgumentException("no queue pair state has the value " + value);
    }
}
