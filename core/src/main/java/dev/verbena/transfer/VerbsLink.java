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
import dev.verbena.verbs.VerbsException;
import java.net.InetAddress;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * The queue pairs of this side towards one peer: created first, so that their numbers can be told,
 * then connected to the peer's, then handed to a poster.
 */
final class VerbsLink implements Link {
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

    private final VerbsFabric fabric;
    private final int port;
    private final Gid gid;
    private final PosterOptions options;
    private final CompletionQueue completionQueue;
    private final List<QueuePair> queuePairs = new ArrayList<>();
    private final List<Hello.Endpoint> endpoints = new ArrayList<>();

    /** Creates and initialises queue pairs. */
    VerbsLink(VerbsFabric fabric, NodeOptions nodeOptions, Gid gid) {
        this.fabric = fabric;
        this.port = nodeOptions.port();
        this.gid = gid;
        this.options = nodeOptions.poster();
        int count = nodeOptions.queuePairs();
        completionQueue =
                fabric.channel()
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
        int sge = Math.min(options.maxSge(), fabric.device().attributes().maxSge());
        QueuePair pair =
                fabric.domain()
                        .createQueuePair(
                                new QueuePairOptions(
                                        options.sendRequests(), sge, options.receiveRequests(), 1),
                                completionQueue,
                                completionQueue);
        queuePairs.add(pair);
        pair.initialize(port, PEER_ACCESS);
        endpoints.add(new Hello.Endpoint(pair.number(), RANDOM.nextInt(1 << PSN_BITS)));
    }

    @Override
    public Hello.Rdma address() {
        PortAttributes attributes = fabric.portAttributes();
        return new Hello.Rdma(
                attributes.ethernet(),
                gid.address(),
                attributes.lid(),
                attributes.activeMtuBytes(),
                fabric.readsAsResponder(),
                endpoints);
    }

    @Override
    public int queuePairs() {
        return queuePairs.size();
    }

    @Override
    public BatchPoster connect(Hello hello, InetAddress host, BatchPoster.Listener listener) {
        Hello.Rdma peer = fabric.peer(hello);
        while (queuePairs.size() > peer.queuePairs().size()) {
            queuePairs.removeLast().close();
            endpoints.removeLast();
        }
        // Receives first: a peer that is connected may send at once.
        BatchPoster poster =
                new BatchPoster(
                        queuePairs,
                        completionQueue,
                        fabric.portAttributes().maxMessageBytes(),
                        options,
                        listener);
        try {
            for (int i = 0; i < queuePairs.size(); i++) {
                connect(queuePairs.get(i), endpoints.get(i), peer.queuePairs().get(i), peer);
            }
        } catch (VerbsException unreachable) {
            poster.close();
            String mismatch = GidChoice.explainMismatch(gid.address(), peer.gid()).orElse(null);
            throw mismatch == null ? unreachable : unreachable.with(mismatch);
        } catch (RuntimeException failure) {
            poster.close();
            throw failure;
        }
        return poster;
    }

    /** There is nothing to wait for: what a peer sends too early is sent again. */
    @Override
    public void awaitConnected() {}

    /** No change of a queue pair's state waits for a peer. */
    @Override
    public void breakOff() {}

    private void connect(
            QueuePair pair, Hello.Endpoint own, Hello.Endpoint partner, Hello.Rdma peer) {
        int mtu = fabric.portAttributes().activeMtuBytes();
        int reads = fabric.device().attributes().maxReadsAsRequester();
        pair.modify(
                QueuePairState.READY_TO_RECEIVE,
                new QueuePairAttributes()
                        .destination(
                                new Destination(
                                        peer.gid(), gid.index(), peer.lid(), port, HOP_LIMIT, 0, 0))
                        .set(QueuePairAttribute.PATH_MTU, Math.min(mtu, peer.mtuBytes()))
                        .set(QueuePairAttribute.PEER_QUEUE_PAIR, partner.number())
                        .set(QueuePairAttribute.RECEIVE_PSN, partner.psn())
                        .set(QueuePairAttribute.READS_AS_RESPONDER, fabric.readsAsResponder())
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

    @Override
    public boolean has(int queuePairNumber) {
        return endpoints.stream().anyMatch(endpoint -> endpoint.number() == queuePairNumber);
    }

    @Override
    public void close() {
        Closing closing = new Closing();
        queuePairs.forEach(pair -> closing.then(pair::close));
        closing.then(completionQueue::close).end();
    }
}
