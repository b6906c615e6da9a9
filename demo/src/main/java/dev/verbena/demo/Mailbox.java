package dev.verbena.demo;

import dev.verbena.transfer.Node;
import dev.verbena.transfer.Peer;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The messages of one peer, in order, for a thread that waits for them. The first peer that sends
 * one, or that is named by {@link #claim}, has the mailbox; others are refused.
 *
 * <p>Safe for use by several threads.
 */
final class Mailbox {
    private final AtomicReference<@Nullable Peer> owner = new AtomicReference<>();
    private final BlockingQueue<Arrival> arrivals = new LinkedBlockingQueue<>();

    private sealed interface Arrival {
        record Message(DemoMessage message) implements Arrival {}

        record Loss(String reason) implements Arrival {}
    }

    private Mailbox() {}

    /** Makes the mailbox of a node; before peers connect. */
    static Mailbox on(Node node) {
        Mailbox mailbox = new Mailbox();
        node.onMessage(DemoMessage.TOPIC, mailbox::arrived);
        node.onPeerLost(mailbox::lost);
        return mailbox;
    }

    /** Gives the mailbox to a peer. */
    void claim(Peer peer) {
        owner.set(peer);
        // It may have been lost before it was known whose loss matters.
        peer.lostReason().ifPresent(reason -> lost(peer, reason));
    }

    /**
     * The peer whose messages come here.
     *
     * @throws IllegalStateException before the first message
     */
    Peer peer() {
        Peer peer = owner.get();
        if (peer == null) {
            throw new IllegalStateException("no peer has sent anything yet");
        }
        return peer;
    }

    /**
     * Waits for the next message, for ever; gives null if the peer has left.
     *
     * @throws DemoException if it is another one
     */
    <M extends DemoMessage> @Nullable M takeUnlessLost(Class<M> kind) throws InterruptedException {
        Arrival arrival = arrivals.take();
        return arrival instanceof Arrival.Loss ? null : open(kind, arrival);
    }

    /**
     * Waits for the next message.
     *
     * @throws DemoException if it is another one, the peer is lost, or the time is up
     */
    <M extends DemoMessage> M take(Class<M> kind, Duration timeout) throws InterruptedException {
        Arrival arrival = arrivals.poll(timeout.toNanos(), TimeUnit.NANOSECONDS);
        if (arrival == null) {
            throw new DemoException(
                    "%s said nothing for %d s".formatted(peer(), timeout.toSeconds()));
        }
        return open(kind, arrival);
    }

    private <M extends DemoMessage> M open(Class<M> kind, Arrival arrival) {
        return switch (arrival) {
            case Arrival.Message(DemoMessage message) when kind.isInstance(message) ->
                    kind.cast(message);
            case Arrival.Message(DemoMessage message) ->
                    throw new DemoException(
                            "%s sent %s instead of %s"
                                    .formatted(
                                            peer(),
                                            message.getClass().getSimpleName(),
                                            kind.getSimpleName()));
            case Arrival.Loss(String reason) ->
                    throw new DemoException(peer() + " is lost: " + reason);
        };
    }

    private void arrived(Peer peer, ByteBuffer bytes) {
        if (!owner.compareAndSet(null, peer) && owner.get() != peer) {
            throw new IllegalStateException("busy with another peer");
        }
        arrivals.add(new Arrival.Message(DemoMessage.decode(bytes)));
    }

    private void lost(Peer peer, String reason) {
        if (owner.get() == peer) {
            arrivals.add(new Arrival.Loss(reason));
        }
    }
}
