package dev.verbena.transfer;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A transfer that failed. It is thrown once the transfer has ended: no work request of it is
 * outstanding, and nothing it posted can touch memory any more.
 */
public final class TransferException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final FailureReason reason;
    private final int blockIndex;
    private final transient BlockOutcomes outcomes;

    TransferException(
            FailureReason reason,
            String message,
            int blockIndex,
            BlockOutcomes outcomes,
            @Nullable Throwable cause) {
        super(message, cause);
        this.reason = reason;
        this.blockIndex = blockIndex;
        this.outcomes = outcomes;
    }

    /**
     * Says why the transfer failed.
     *
     * @return the first cause
     */
    public FailureReason reason() {
        return reason;
    }

    /**
     * Gives the block at which the transfer failed.
     *
     * @return index of the first block of the work request that failed first, or -1 if the cause
     *     lies outside this transfer
     */
    public int blockIndex() {
        return blockIndex;
    }

    /**
     * Says what is known of a block.
     *
     * @param block index in the batch
     * @return whether it was moved
     * @throws IndexOutOfBoundsException if the batch has no such block
     */
    public BlockOutcome outcome(int block) {
        return outcomes.of(block);
    }

    /**
     * Lists the blocks that are not known to be done.
     *
     * @return ranges of blocks in ascending order; every block outside them is {@link
     *     BlockOutcome#DONE}
     */
    public List<BlockOutcomes.Range> notDone() {
        return outcomes.notDone();
    }
}
