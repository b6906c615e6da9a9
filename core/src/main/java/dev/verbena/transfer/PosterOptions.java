package dev.verbena.transfer;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * How a peer's transfers are posted. A duration of centuries, which nanoseconds cannot count, means
 * for ever.
 *
 * @param sendRequests work requests outstanding on one queue pair, a power of two
 * @param maxSge most pieces of local memory in one work request; the device may allow fewer
 * @param chainRequests most work requests behind one doorbell
 * @param signalRequests one work request in so many is signalled, beside the last behind each
 *     doorbell: a power of two. Above half of {@code sendRequests} it counts as that half, as room
 *     in the queue comes back by signals only
 * @param receiveRequests receives kept posted on one queue pair for the peer's immediates
 * @param progressDeadline how long a peer's transfers may go without any work request completing
 * @param drainDeadline how long a stopped queue pair may take to give back its work requests before
 *     it is destroyed
 * @param spin how long a waiting thread polls before it sleeps
 */
public record PosterOptions(
        int sendRequests,
        int maxSge,
        int chainRequests,
        int signalRequests,
        int receiveRequests,
        Duration progressDeadline,
        Duration drainDeadline,
        Duration spin) {

    /**
     * Checks the numbers.
     *
     * @throws IllegalArgumentException if one is out of its range
     */
    public PosterOptions {
        if (Integer.bitCount(sendRequests) != 1 || sendRequests < 2 || sendRequests > 1 << 16) {
            throw new IllegalArgumentException(
                    "sendRequests=" + sendRequests + " must be a power of two from 2 to 65536");
        }
        if (Integer.bitCount(signalRequests) != 1 || signalRequests < 1) {
            throw new IllegalArgumentException(
                    "signalRequests=" + signalRequests + " must be a power of two from 1");
        }
        if (maxSge <= 0 || chainRequests <= 0 || receiveRequests <= 0) {
            throw new IllegalArgumentException(
                    "maxSge=%d, chainRequests=%d and receiveRequests=%d must be above 0"
                            .formatted(maxSge, chainRequests, receiveRequests));
        }
        if (!progressDeadline.isPositive() || !drainDeadline.isPositive() || spin.isNegative()) {
            throw new IllegalArgumentException(
                    "progressDeadline=%s and drainDeadline=%s must be above 0, spin=%s at least 0"
                            .formatted(progressDeadline, drainDeadline, spin));
        }
    }

    /**
     * Gives the options that suit most peers.
     *
     * @return 256 work requests of 16 pieces, doorbells of up to 128, one in 128 signalled, 128
     *     receives, ten seconds without progress, two to drain, 20 microseconds of spinning
     */
    public static PosterOptions defaults() {
        return new PosterOptions(
                256,
                16,
                128,
                128,
                128,
                Duration.ofSeconds(10),
                Duration.ofSeconds(2),
                Duration.ofNanos(20_000));
    }

    /**
     * Changes the depth of the send queues.
     *
     * @param requests a power of two from 2 to 65536
     * @param chain most work requests behind one doorbell, above 0
     * @return options that differ in these only
     * @throws IllegalArgumentException if out of range
     */
    public PosterOptions withDepth(int requests, int chain) {
        return new PosterOptions(
                requests,
                maxSge,
                chain,
                signalRequests,
                receiveRequests,
                progressDeadline,
                drainDeadline,
                spin);
    }

    /**
     * Changes how many pieces a work request may gather.
     *
     * @param pieces above 0
     * @return options that differ in this only
     * @throws IllegalArgumentException if out of range
     */
    public PosterOptions withMaxSge(int pieces) {
        return new PosterOptions(
                sendRequests,
                pieces,
                chainRequests,
                signalRequests,
                receiveRequests,
                progressDeadline,
                drainDeadline,
                spin);
    }

    /**
     * Changes how often a work request is signalled.
     *
     * @param requests one in so many, a power of two
     * @return options that differ in this only
     * @throws IllegalArgumentException if out of range
     */
    public PosterOptions withSignals(int requests) {
        return new PosterOptions(
                sendRequests,
                maxSge,
                chainRequests,
                requests,
                receiveRequests,
                progressDeadline,
                drainDeadline,
                spin);
    }

    /**
     * Changes how many receives are kept posted.
     *
     * @param receives above 0
     * @return options that differ in this only
     * @throws IllegalArgumentException if out of range
     */
    public PosterOptions withReceives(int receives) {
        return new PosterOptions(
                sendRequests,
                maxSge,
                chainRequests,
                signalRequests,
                receives,
                progressDeadline,
                drainDeadline,
                spin);
    }

    /**
     * Changes the deadline of progress.
     *
     * @param deadline above 0
     * @return options that differ in this only
     * @throws IllegalArgumentException if out of range
     */
    public PosterOptions withProgressDeadline(Duration deadline) {
        return new PosterOptions(
                sendRequests,
                maxSge,
                chainRequests,
                signalRequests,
                receiveRequests,
                deadline,
                drainDeadline,
                spin);
    }

    /**
     * Changes how long a stopped queue pair may take to drain.
     *
     * @param deadline above 0
     * @return options that differ in this only
     * @throws IllegalArgumentException if out of range
     */
    public PosterOptions withDrainDeadline(Duration deadline) {
        return new PosterOptions(
                sendRequests,
                maxSge,
                chainRequests,
                signalRequests,
                receiveRequests,
                progressDeadline,
                deadline,
                spin);
    }

    /**
     * Changes how long who waits polls before it sleeps.
     *
     * @param duration at least 0
     * @return options that differ in this only
     * @throws IllegalArgumentException if out of range
     */
    public PosterOptions withSpin(Duration duration) {
        return new PosterOptions(
                sendRequests,
                maxSge,
                chainRequests,
                signalRequests,
                receiveRequests,
                progressDeadline,
                drainDeadline,
                duration);
    }

    /** A duration in nanoseconds; the most there are if it is longer, which is for ever. */
    static long nanos(Duration duration) {
        return TimeUnit.NANOSECONDS.convert(duration);
    }
}
