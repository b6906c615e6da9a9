package dev.verbena.transfer;

/** What is known of one block once its transfer has ended. */
public enum BlockOutcome {
    /** Every byte is where it should be. */
    DONE,
    /** No byte was moved, and none will be. */
    NOT_DONE,
    /**
     * Some, all or none of its bytes were moved; none will be from now on, unless {@link
     * TransferException#deviceLetGo} is false.
     */
    UNKNOWN
}
