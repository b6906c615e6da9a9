package dev.verbena.transfer;

import java.util.List;

/**
 * What posting a batch would do: made without posting anything.
 *
 * @param blocks blocks of the batch
 * @param runs blocks left once neighbours that are adjacent on both sides are one
 * @param workRequests work requests, after merging, gathering and splitting
 * @param scatterGatherEntries pieces of local memory in all work requests together
 * @param doorbells calls into the driver, if the send queues have room; more if they must be waited
 *     for
 * @param bytes bytes to move
 * @param longestMessageBytes bytes of the largest work request
 * @param refused blocks that would be refused, the first few of them; if there are any, nothing
 *     would be posted, and all numbers but those of blocks and bytes are 0
 */
public record TransferPlan(
        int blocks,
        int runs,
        long workRequests,
        long scatterGatherEntries,
        long doorbells,
        long bytes,
        long longestMessageBytes,
        List<Refusal> refused) {

    /**
     * A block that would be refused.
     *
     * @param block its index in the batch
     * @param reason why, in words
     */
    public record Refusal(int block, String reason) {}

    /** Copies the list of refusals. */
    public TransferPlan {
        refused = List.copyOf(refused);
    }

    /**
     * Says whether the batch would be posted.
     *
     * @return true if no block is refused
     */
    public boolean isAccepted() {
        return refused.isEmpty();
    }

    /**
     * Says how far merging and gathering shrink the batch.
     *
     * @return blocks a work request; 0 for an empty or refused batch
     */
    public double mergeRatio() {
        return workRequests == 0 ? 0 : (double) blocks / workRequests;
    }
}
