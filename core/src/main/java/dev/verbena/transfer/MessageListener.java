package dev.verbena.transfer;

import java.nio.ByteBuffer;

/** Told of the messages that peers send on a topic. */
@FunctionalInterface
public interface MessageListener {
    /**
     * A message has arrived. Messages of one peer come one at a time, in the order of sending, on
     * the thread that reads its control connection, which this should not hold up.
     *
     * @param peer who sent it
     * @param message its bytes, big-endian; they may come from anybody who may connect, so a
     *     listener checks every length. If it throws, the peer is disconnected
     */
    void arrived(Peer peer, ByteBuffer message);
}
