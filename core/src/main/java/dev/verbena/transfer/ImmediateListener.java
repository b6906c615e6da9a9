package dev.verbena.transfer;

/** Told of the immediates that a peer sends behind its writes. */
@FunctionalInterface
public interface ImmediateListener {
    /**
     * An immediate has arrived: all that the peer wrote before it on the same queue pair is in
     * memory. A transfer with an immediate brings it once on every queue pair of the peer.
     *
     * <p>Called on the thread that makes progress, holding no lock; it should be short. Immediates
     * of several queue pairs come in no particular order.
     *
     * @param peer who sent it
     * @param immediate the 32 bits
     */
    void arrived(Peer peer, int immediate);
}
