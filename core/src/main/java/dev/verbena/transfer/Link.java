package dev.verbena.transfer;

import dev.verbena.verbs.Access;
import dev.verbena.verbs.CompletionQueue;
import dev.verbena.verbs.Destination;
import dev.verbena.verbs.Gid;
import dev.verbena.verbs.PortAttributes;
import dev.verbena.verbs.QueuePair;
import dev.verbena.verbs.QueuePairAttribute;
import dev.verbena.verbs.QueuePairAttributes;
import dev.verbena.verbs.QueuePairOptions;
import dev.verbena.verbs.QueuePairState;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * The queue pairs of this side towards one peer: created first, so that their numbers can be told,
 * then connected to the peer's, then handed to a poster.
 */
final class Link implements AutoCloseable {
    /** Acknowledgements are awaited for 4.096 us times two to this power: 67 ms. */
    private static final int TIMEOUT = 14;

    /** Seven would mean for ever, on some devices. */
    private static final int RETRIES = 6;

    /**
     * The verbs' code for 41 ms: with all retries a quarter of a second, so that a pause of the
     * peer's collector is no failure.
     */
    private static final int MIN_RNR_TIMER = 24;

    private static final int PSN_BITS = 24;
    private static final int HOP_LIMIT = 64;

    private static final Set<Access> PEER_ACCESS =
            EnumSet.of(Access.REMOTE_WRITE, Access.REMOTE_READ, Access.LOCAL_WRITE);

    private static final SecureRandom RANDOM = new SecureRandom();

    private final NodeResources resources;
    private final PosterOptions options;
    private final CompletionQueue completionQueue;
    private final List<QueuePair> queuePairs = new ArrayList<>();
    private final List<Hello.Endpoint> endpoints = new ArrayList<>();

    /** Creates and initialises queue pairs. */
    Link(NodeResources resources, NodeOptions nodeOptions) {
        this.resources = resources;
        this.options = nodeOptions.poster();
        int count = nodeOptions.queuePairs();
        completionQueue =
                resources
                        .channel()
                        .createCompletionQueue(BatchPoster.completionsNeeded(count, options));
        try {
            for (int i = 0; i < count; i++) {
                add();
            }
        } catch (RuntimeException failure) {
            close();
            throw failure;
        }
    }

    private void add() {
        int sge = Math.min(options.maxSge(), resources.device().attributes().maxSge());
        QueuePair pair =
                resources
                        .domain()
                        .createQueuePair(
                                new QueuePairOptions(
                                        options.sendRequests(), sge, options.receiveRequests(), 1),
                                completionQueue,
                                completionQueue);
        queuePairs.add(pair);
        pair.initialize(resources.port(), PEER_ACCESS);
        endpoints.add(new Hello.Endpoint(pair.number(), RANDOM.nextInt(1 << PSN_BITS)));
    }

    /** The queue pairs as the peer must know them, in order. */
    List<Hello.Endpoint> endpoints() {
        return List.copyOf(endpoints);
    }

    /**
     * Connects each queue pair to the peer's of the same index; those that the peer has no partner
     * for are closed.
     *
     * @return the poster, which owns the queue pairs from now on
     */
    BatchPoster connect(Hello peer, Gid gid, BatchPoster.Listener listener) {
        while (queuePairs.size() > peer.queuePairs().size()) {
            queuePairs.removeLast().close();
            endpoints.removeLast();
        }
        // Receives first: a peer that is connected may send at once.
        BatchPoster poster =
                new BatchPoster(
                        queuePairs,
                        completionQueue,
                        resources.portAttributes().maxMessageBytes(),
                        options,
                        listener);
        try {
            for (int i = 0; i < queuePairs.size(); i++) {
                connect(queuePairs.get(i), endpoints.get(i), peer.queuePairs().get(i), peer, gid);
            }
        } catch (RuntimeException failure) {
            poster.close();
            throw failure;
        }
        return poster;
    }

    private void connect(
            QueuePair pair, Hello.Endpoint own, Hello.Endpoint partner, Hello peer, Gid gid) {
        PortAttributes port = resources.portAttributes();
        int reads = resources.device().attributes().maxReadsAsRequester();
        pair.modify(
                QueuePairState.READY_TO_RECEIVE,
                new QueuePairAttributes()
                        .destination(
                                new Destination(
                                        peer.gid(),
                                        gid.index(),
                                        peer.lid(),
                                        resources.port(),
                                        HOP_LIMIT,
                                        0,
                                        0))
                        .set(
                                QueuePairAttribute.PATH_MTU,
                                Math.min(port.activeMtuBytes(), peer.mtuBytes()))
                        .set(QueuePairAttribute.PEER_QUEUE_PAIR, partner.number())
                        .set(QueuePairAttribute.RECEIVE_PSN, partner.psn())
                        .set(QueuePairAttribute.READS_AS_RESPONDER, resources.readsAsResponder())
                        .set(QueuePairAttribute.MIN_RNR_TIMER, MIN_RNR_TIMER));
        pair.modify(
                QueuePairState.READY_TO_SEND,
                new QueuePairAttributes()
                        .set(QueuePairAttribute.TIMEOUT, TIMEOUT)
                        .set(QueuePairAttribute.RETRY_COUNT, RETRIES)
                        .set(QueuePairAttribute.RNR_RETRY, RETRIES)
                        .set(QueuePairAttribute.SEND_PSN, own.psn())
                        .set(
                                QueuePairAttribute.READS_AS_REQUESTER,
                                Math.min(Math.min(reads, 255), peer.readsAsResponder())));
    }

    /** Whether one of the queue pairs has this number. */
    boolean has(int queuePairNumber) {
        return endpoints.stream().anyMatch(endpoint -> endpoint.number() == queuePairNumber);
    }

    /** Closes the queue pairs, if no poster has, and the completion queue. */
    @Override
    public void close() {
        queuePairs.forEach(QueuePair::close);
        completionQueue.close();
    }
}
