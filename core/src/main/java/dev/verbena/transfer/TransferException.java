package dev.verbena.transfer;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A transfer that failed. It is thrown once the transfer has ended: no work request of it is
 * outstanding, and nothing it posted can touch memory any more, unless {@link #deviceLetGo} is
 * false.
 */
public final class TransferException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final FailureReason reason;
    private final int blockIndex;
    private final boolean deviceLetGo;
    private final transient BlockOutcomes outcomes;

    TransferException(
            FailureReason reason,
            String message,
            int blockIndex,
            BlockOutcomes outcomes,
            boolean deviceLetGo,
            @Nullable Throwable cause) {
        super(message, cause);
        this.reason = reason;
        this.blockIndex = blockIndex;
        this.outcomes = outcomes;
        this.deviceLetGo = deviceLetGo;
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
     * Says whether the device has let go of the blocks, as it has but for one case: a queue pair
     * neither gave back its work requests nor could be destroyed, however often that was tried.
     * Then the blocks whose outcome is unknown may still be read or written at any time, on both
     * sides: use their memory for nothing else. The local pools stay held, so that their memory
     * cannot be freed, until the queue pair can be destroyed after all.
     *
     * @return true if nothing that was posted can touch memory any more
     */
    public boolean deviceLetGo() {
        return deviceLetGo;
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
