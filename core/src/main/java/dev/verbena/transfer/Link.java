package dev.verbena.transfer;

import java.io.IOException;
import java.net.InetAddress;

/**
 * This side's end of the queue pairs to one peer: made first, so that it can be told where they
 * are, then connected to the peer's.
 */
interface Link extends AutoCloseable {
    /** Where this end is, for the peer. After {@link #connect} only what is connected. */
    Hello.Address address();

    /** How many queue pairs it has. */
    int queuePairs();

    /**
     * Connects each queue pair to the peer's of the same index; those that the peer has no partner
     * for are closed.
     *
     * @param peer what it has said
     * @param host where its control connection is
     * @return the poster, which owns the queue pairs from now on
     * @throws IOException if the peer cannot be reached
     * @throws IllegalStateException if it is on another transport
     */
    BatchPoster connect(Hello peer, InetAddress host, BatchPoster.Listener listener)
            throws IOException;

    /**
     * Waits, on the side that listens, until the peer has connected its end.
     *
     * @throws IOException if it has not in time
     */
    void awaitConnected() throws IOException;

    /**
     * Makes connecting, and waiting for it, end soon with an exception: for another thread, that
     * closes the node meanwhile.
     */
    void breakOff();

    /** Whether one of the queue pairs has this number at the device. */
    boolean has(int queuePairNumber);

    /** Closes the queue pairs, if no poster has, and what they complete to. */
    @Override
    void close();
}
