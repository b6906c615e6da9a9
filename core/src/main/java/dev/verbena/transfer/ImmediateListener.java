package dev.verbena.transfer;

/** Told of the immediates that a peer sends behind its writes. */
@FunctionalInterface
public interface ImmediateListener {
    /**
     * An immediate has arrived: all that the peer wrote before it on the same queue pair is in
     * memory. A transfer with an immediate brings it once on every queue pair of the peer.
     *
     * <p>Called on the thread that makes progress, or another that has to do with the peer, as
     * {@link Node#onImmediate} says; holding no lock; it should be short. It may be called by two
     * threads at a time, also for immediates of one queue pair, and in any order.
     *
     * @param peer who sent it
     * @param immediate the 32 bits
     */
    void arrived(Peer peer, int immediate);
}
