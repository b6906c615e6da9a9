package dev.verbena.demo;

import dev.verbena.kv.KvReceiver;
import dev.verbena.kv.KvReceiverOptions;
import dev.verbena.kv.KvRequest;
import dev.verbena.kv.StagingArea;
import dev.verbena.memory.Pool;
import dev.verbena.transfer.Node;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.transfer.Peer;
import dev.verbena.verbs.Access;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The decode side: for every request that the prefill side begins it opens its ranks, sets slots
 * aside, waits until they are filled, checks them, and tells the prefill side. Ends with it.
 */
final class Decode {
    /** How long the prefill side may take for one step. */
    private static final Duration PREFILL_DEADLINE = Duration.ofMinutes(4);

    private final NodeOptions options;
    private final UnaryOperator<NodeOptions> listen;
    private final boolean corruptOneByte;
    private final Progress progress;

    /**
     * Makes the decode side.
     *
     * @param options of all nodes
     * @param listen adds where to listen, at any free port
     * @param corruptOneByte whether to spoil a byte before each check, which must find it
     * @param progress for what it has to say
     */
    Decode(
            NodeOptions options,
            UnaryOperator<NodeOptions> listen,
            boolean corruptOneByte,
            Progress progress) {
        this.options = options;
        this.listen = listen;
        this.corruptOneByte = corruptOneByte;
        this.progress = progress;
    }

    /**
     * Serves one prefill side until it leaves.
     *
     * @param control options of the node for what is said beside the requests
     * @param listening told the TCP port once prefill may connect
     * @return whether every byte of every request was right
     * @throws IOException if an address cannot be bound, or the prefill side is lost in between
     * @throws RuntimeException if a request fails
     */
    boolean serve(NodeOptions control, IntConsumer listening)
            throws IOException, InterruptedException {
        boolean allRight = true;
        try (Node node = Node.open(control.name("decode"))) {
            Mailbox mailbox = Mailbox.on(node);
            listening.accept(node.listenPort());
            DemoMessage next;
            while ((next = mailbox.takeUnlessLost(DemoMessage.class)) != null) {
                allRight &=
                        switch (next) {
                            case DemoMessage.Begin(Job job) -> begin(mailbox, job);
                            case DemoMessage.Trace(TraceShape shape) -> replay(mailbox, shape);
                            default -> throw new DemoException("unexpected " + next);
                        };
            }
            return allRight;
        }
    }

    private boolean begin(Mailbox mailbox, Job job) throws IOException, InterruptedException {
        DemoMessage.Verdict verdict = serve(mailbox, job);
        mailbox.peer().send(DemoMessage.TOPIC, verdict.encode());
        progress.say(job.scenario().name() + ": " + verdict.words());
        return verdict.allRight();
    }

    private boolean replay(Mailbox mailbox, TraceShape shape)
            throws IOException, InterruptedException {
        Node node = Node.open(listen.apply(options).name("decode-trace"));
        try (TraceDecode trace = new TraceDecode(shape, node, mailbox, corruptOneByte)) {
            DemoMessage.Verdict verdict = trace.serve();
            progress.say("trace: " + verdict.words());
            return verdict.allRight();
        }
    }

    private DemoMessage.Verdict serve(Mailbox mailbox, Job job)
            throws IOException, InterruptedException {
        List<Rank> ranks = new ArrayList<>();
        List<KvRequest> requests = new ArrayList<>();
        try {
            for (int rank = 0; rank < job.ranks(Job.Side.DECODE); rank++) {
                ranks.add(new Rank(job, rank));
            }
            List<Integer> ports = ranks.stream().map(Rank::port).toList();
            mailbox.peer().send(DemoMessage.TOPIC, new DemoMessage.Ready(ports).encode());
            for (Rank rank : ranks) {
                requests.add(rank.expect(job));
            }
            for (KvRequest request : requests) {
                request.await(PREFILL_DEADLINE);
            }
            // Still inside the requests: until they are closed, the slots are ours to look at.
            return check(mailbox, job, ranks);
        } finally {
            requests.forEach(KvRequest::close);
            ranks.forEach(Rank::close);
        }
    }

    private DemoMessage.Verdict check(Mailbox mailbox, Job job, List<Rank> ranks)
            throws IOException, InterruptedException {
        List<Checksums> theirs = new ArrayList<>();
        for (Rank rank : ranks) {
            if (job.hasSameItems()) {
                theirs.add(checksums(mailbox, rank.opened.cache()));
            }
        }
        DemoMessage.Verdict verdict = new DemoMessage.Verdict(0, 0, null);
        for (int i = 0; i < ranks.size(); i++) {
            RankNode rank = ranks.get(i).opened;
            RankCheck check = new RankCheck(rank.cache(), rank.memory(), new Content(job.seed()));
            if (corruptOneByte && i == 0) {
                check.corruptOneByte();
            }
            @Nullable Checksums sums = theirs.isEmpty() ? null : theirs.get(i);
            verdict =
                    verdict.and(
                            check.run(
                                    sums,
                                    () ->
                                            mailbox.peer()
                                                    .send(
                                                            DemoMessage.TOPIC,
                                                            new DemoMessage.Checked().encode())));
        }
        return verdict;
    }

    private static Checksums checksums(Mailbox mailbox, RankCache cache)
            throws InterruptedException {
        Checksums theirs = new Checksums(cache);
        for (int pool = 0; pool < cache.parts().size(); pool++) {
            theirs.put(mailbox.take(DemoMessage.Checksums.class, PREFILL_DEADLINE));
        }
        return theirs;
    }

    /** One rank, and the prefill ranks that have connected to it. */
    private final class Rank implements AutoCloseable {
        private final RankNode opened;
        private final KvReceiver receiver;
        private final BlockingQueue<Peer> connected = new LinkedBlockingQueue<>();

        Rank(Job job, int rank) throws IOException {
            opened = RankNode.open(listen.apply(options), job, Job.Side.DECODE, rank);
            Node node = opened.node();
            receiver =
                    KvReceiver.on(
                            node, opened.cache().cache(opened.pool().address()), options(job));
            node.onPeer(connected::add);
        }

        private KvReceiverOptions options(Job job) {
            KvReceiverOptions receiving = KvReceiverOptions.defaults();
            if (job.scenario().way() != Scenario.Way.STAGED) {
                return receiving;
            }
            // Room for two chunks, so that a request goes round it.
            long bytes = 2 * opened.cache().stagedBytes(Prefill.chunkPages(job));
            Pool ring = opened.node().registry().allocate("ring", bytes, Access.REMOTE_WRITE);
            return receiving.staging(new StagingArea(ring.address(), bytes));
        }

        int port() {
            return opened.node().listenPort();
        }

        /** Sets slots aside once all prefill ranks are here. */
        KvRequest expect(Job job) throws InterruptedException {
            List<Peer> prefill = new ArrayList<>();
            while (prefill.size() < job.ranks(Job.Side.PREFILL)) {
                Peer peer = connected.poll(PREFILL_DEADLINE.toSeconds(), TimeUnit.SECONDS);
                if (peer == null) {
                    throw new DemoException("the prefill ranks did not connect");
                }
                prefill.add(peer);
            }
            return receiver.expect(job.room(), prefill, opened.cache().slotsFrom(0));
        }

        @Override
        public void close() {
            opened.close();
        }
    }
}
