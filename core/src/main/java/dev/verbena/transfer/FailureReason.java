package dev.verbena.transfer;

import dev.verbena.verbs.CompletionStatus;

/** Why a transfer failed, coarsely: what a caller decides by. */
public enum FailureReason {
    /** No work request of the peer completed for as long as the deadline allows. */
    DEADLINE(true, "check that the peer's process is alive and its network path works"),
    /** The peer went away, its device no longer answers, or its control connection broke. */
    PEER_LOST(true, "connect again and send the transfer anew"),
    /** The device reported a failed work request, for another cause than the peer's silence. */
    WORK_REQUEST(false, "see the status; connect again before the next transfer"),
    /** The driver refused to take a work request. */
    POST_REFUSED(false, "see the errno; connect again before the next transfer"),
    /** Polling failed, or the device reported a fatal event. */
    DEVICE(false, "check the device: its driver's log and ibv_devinfo"),
    /** This side closed the peer or the node. */
    CLOSED(false, "keep the peer open until its transfers have ended"),
    /** This side gave the transfer up by {@link Transfer#cancel}; others to the peer go on. */
    CANCELLED(false, "the connection and its other transfers are as they were"),
    /** The batch was changed while it was under way; others to the peer go on. */
    BATCH_CHANGED(false, "leave a batch unchanged until its transfer has ended");

    private final boolean retryHelps;
    private final String advice;

    FailureReason(boolean retryHelps, String advice) {
        this.retryHelps = retryHelps;
        this.advice = advice;
    }

    /**
     * Says whether the same transfer may well succeed over a new connection.
     *
     * @return true if a retry makes sense
     */
    public boolean retryHelps() {
        return retryHelps;
    }

    /** What a failed work request means: a peer that does not answer is lost. */
    static FailureReason of(CompletionStatus status) {
        return switch (status) {
            case RETRY_EXCEEDED, RECEIVER_NOT_READY -> PEER_LOST;
            default -> WORK_REQUEST;
        };
    }

    String advice() {
        return advice;
    }
}
