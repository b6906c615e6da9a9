package dev.verbena.verbs;

/**
 * How a work request ended. A number that this enum lacks is kept by {@link
 * WorkCompletions#statusNumber} and shown as {@link #UNKNOWN}.
 *
 * <p>Source: {@code ibv_poll_cq(3)}, enum {@code ibv_wc_status}, in its order.
 */
public enum CompletionStatus {
    /** Done. */
    SUCCESS(Sent.DONE, "done"),
    /** A local buffer is too short, or the message longer than the port allows. */
    LOCAL_LENGTH(Sent.NOT_FOLLOWED, "a message is longer than the buffer or the port allows"),
    /** The work request does not fit the queue pair. */
    LOCAL_OPERATION(
            Sent.NOT_FOLLOWED,
            "the device could not process the work request: bad opcode, flag or lkey"),
    /** Only on reliable datagrams, which no device offers. */
    LOCAL_CONTEXT(Sent.NOT_FOLLOWED, "end-to-end context error"),
    /** A local address or lkey does not belong to a region of this protection domain. */
    LOCAL_PROTECTION(
            Sent.NOT_FOLLOWED,
            "a local range is not covered by its memory region: closed, or another domain's"),
    /** The queue pair went to the error state with this work request outstanding. */
    FLUSHED(Sent.PERHAPS, "the queue pair stopped before this work request was done"),
    /** A memory window could not be bound. */
    WINDOW_BIND(Sent.NOT_FOLLOWED, "the memory window could not be bound: key, range or access"),
    /** The peer's answer made no sense. */
    BAD_RESPONSE(Sent.PERHAPS, "the peer answered with an unexpected opcode"),
    /** A peer's write hit a local region that does not allow it. */
    LOCAL_ACCESS(Sent.NOT_FOLLOWED, "a local region does not allow this access"),
    /** The peer's device refused the message as invalid. */
    REMOTE_INVALID_REQUEST(
            Sent.NOT_FOLLOWED,
            "the peer refused the message: no receive buffer large enough, or access not enabled"
                    + " on its queue pair"),
    /** The rkey, the range or the access was refused by the peer's device. */
    REMOTE_ACCESS(
            Sent.NOT_FOLLOWED,
            "the peer's device refused the rkey, the range or the access: the pool was closed or"
                    + " registered again"),
    /** The peer's device failed while working on the message. */
    REMOTE_OPERATION(Sent.NOT_FOLLOWED, "the peer's device failed on the message"),
    /** The peer did not acknowledge in time, whatever the reason. */
    RETRY_EXCEEDED(
            Sent.PERHAPS,
            "the peer did not answer: its process or host is gone, its queue pair is closed, or the"
                    + " path (GID, MTU, route) is wrong"),
    /** The peer had no receive posted for too long. */
    RECEIVER_NOT_READY(
            Sent.NOT_FOLLOWED, "the peer had no receive posted: its progress thread is stuck"),
    /** Only on reliable datagrams. */
    DATAGRAM_DOMAIN(Sent.NOT_FOLLOWED, "reliable datagram domain violation"),
    /** Only on reliable datagrams. */
    REMOTE_INVALID_DATAGRAM(Sent.NOT_FOLLOWED, "invalid reliable datagram request"),
    /** The operation was aborted by the peer. */
    REMOTE_ABORT(Sent.PERHAPS, "the peer aborted the operation"),
    /** Only on reliable datagrams. */
    CONTEXT_NUMBER(Sent.NOT_FOLLOWED, "invalid end-to-end context number"),
    /** Only on reliable datagrams. */
    CONTEXT_STATE(Sent.NOT_FOLLOWED, "invalid end-to-end context state"),
    /** The device failed. */
    FATAL(Sent.PERHAPS, "the device failed: see its driver's log"),
    /** The device's answer came too late. */
    RESPONSE_TIMEOUT(Sent.PERHAPS, "a response timed out"),
    /** Something that has no better name. */
    GENERAL(Sent.PERHAPS, "the device reports an error without a class: see the vendor code"),
    /** Tag matching failed. */
    TAG_MATCHING(Sent.NOT_FOLLOWED, "tag matching failed"),
    /** Tag matching left a rendezvous to the host. */
    TAG_MATCHING_INCOMPLETE(Sent.NOT_FOLLOWED, "tag matching left the message incomplete"),
    /** A number that is newer than this library. */
    UNKNOWN(Sent.PERHAPS, "a status this library does not know");

    /** What a failed request says about those posted behind it on the same queue pair. */
    private enum Sent {
        DONE,
        /** It was refused: nothing behind it was carried out. */
        NOT_FOLLOWED,
        /** Requests behind it may have been carried out without an acknowledgement. */
        PERHAPS
    }

    private static final CompletionStatus[] BY_NUMBER = values();

    private final Sent sent;
    private final String explanation;

    CompletionStatus(Sent sent, String explanation) {
        this.sent = sent;
        this.explanation = explanation;
    }

    /**
     * Finds a status by the verbs' number. Allocates nothing.
     *
     * @param number value of {@code enum ibv_wc_status}
     * @return the status, or {@link #UNKNOWN}
     */
    public static CompletionStatus of(int number) {
        return number >= 0 && number < BY_NUMBER.length ? BY_NUMBER[number] : UNKNOWN;
    }

    /**
     * Gives the verbs' number.
     *
     * @return value of {@code enum ibv_wc_status}; of {@link #UNKNOWN} one that has no meaning
     *     there
     */
    @SuppressWarnings("EnumOrdinal") // the order of the constants is that of the verbs' numbers
    public int number() {
        return ordinal();
    }

    /**
     * Says what the status means and what usually causes it.
     *
     * @return part of a sentence, for error messages
     */
    public String explanation() {
        return explanation;
    }

    /**
     * Says whether, after a failure with this status, the work requests posted behind the failed
     * one on the same queue pair are known not to have been carried out.
     *
     * @return true if they are known not done, false if some may have reached the peer's memory
     */
    public boolean stopsFollowers() {
        return sent == Sent.NOT_FOLLOWED;
    }
}
