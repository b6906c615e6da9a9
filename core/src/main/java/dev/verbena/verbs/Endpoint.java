package dev.verbena.verbs;

/**
 * One end of a reliable connection, where work requests are posted: the queue pair of a device, or
 * what stands for one on another transport. What is built over it does not see the difference.
 *
 * <p>It keeps the promises of a reliable connected queue pair: work requests are carried out and
 * complete in order; success gives a completion where it was asked for, failure always does; after
 * the first failure, or {@link #stop}, all that is outstanding completes as flushed, receives too,
 * and what is posted then as well.
 *
 * <p>Posting is for one thread at a time; stopping and closing are safe for any.
 */
public interface Endpoint extends AutoCloseable {
    /**
     * Says how large its queues are.
     *
     * @return what it was made with, or more
     */
    QueuePairOptions options();

    /**
     * Posts a chain of send work requests. Does not wait.
     *
     * @param requests the ring that holds them; its slots stay as they are until their work
     *     requests have completed
     * @param firstSlot first slot of the chain
     * @param count slots in the chain, 1 to the ring's capacity; it may pass the ring's end
     * @return how many were taken, in order from the first; or {@link QueuePair#ACCEPTED_UNKNOWN}
     * @throws IllegalStateException if the endpoint is closed, or the ring is
     * @throws IllegalArgumentException if the count is out of range
     * @throws IndexOutOfBoundsException if there is no such slot
     */
    int post(WorkRequests requests, int firstSlot, int count);

    /**
     * Says why the last {@link #post} took fewer than it was given.
     *
     * @return errno of the last post, 0 if it took all
     */
    int postErrno();

    /**
     * Posts the first receives of a chain.
     *
     * @param receives the chain that holds them
     * @param count slots to post, from slot 0
     * @throws IllegalStateException if the endpoint is closed, or the chain is
     * @throws IndexOutOfBoundsException if the chain has fewer slots
     * @throws VerbsException ENOMEM when there is no room for them
     */
    void postReceives(ReceiveRequests receives, int count);

    /**
     * Stops the endpoint: everything outstanding completes, what is not done as flushed. Does not
     * wait for that. Does nothing if done already.
     *
     * @throws IllegalStateException if the endpoint is closed
     * @throws VerbsException if the device refuses
     */
    void stop();

    /**
     * Destroys the endpoint. What is outstanding ends without a completion, and no memory is
     * touched for it once this returns. Does nothing if done already.
     *
     * @throws VerbsException if the device refuses
     */
    @Override
    void close();
}
