package dev.verbena.verbs;

/**
 * The size of a queue pair.
 *
 * <p>Source: {@code ibv_create_qp(3)}, struct {@code ibv_qp_cap}.
 *
 * @param sendRequests work requests outstanding on the send queue, above 0
 * @param sendSge scatter-gather entries of one send, above 0
 * @param receiveRequests receives posted at once, at least 0
 * @param receiveSge scatter-gather entries of one receive, at least 0
 */
public record QueuePairOptions(int sendRequests, int sendSge, int receiveRequests, int receiveSge) {

    /**
     * Checks the numbers.
     *
     * @throws IllegalArgumentException if one is out of its range
     */
    public QueuePairOptions {
        if (sendRequests <= 0 || sendSge <= 0 || receiveRequests < 0 || receiveSge < 0) {
            throw new IllegalArgumentException(
                    "a queue pair needs sendRequests=%d and sendSge=%d above 0, receiveRequests=%d and receiveSge=%d at least 0"
                            .formatted(sendRequests, sendSge, receiveRequests, receiveSge));
        }
    }

    @Override
    public String toString() {
        return "sendRequests=%d, sendSge=%d, receiveRequests=%d, receiveSge=%d"
                .formatted(sendRequests, sendSge, receiveRequests, receiveSge);
    }
}
