package dev.verbena.demo;

import dev.verbena.kv.KvChunk;
import dev.verbena.kv.KvSend;
import dev.verbena.kv.KvSender;
import dev.verbena.kv.KvSenderOptions;
import dev.verbena.kv.StagingArea;
import dev.verbena.memory.Pool;
import dev.verbena.transfer.Node;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.transfer.Peer;
import dev.verbena.transfer.Transfer;
import dev.verbena.transfer.TransferPlan;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The prefill side: for each request it opens its ranks, makes the cache chunk by chunk, and sends
 * each chunk while it makes the next.
 *
 * <p>Life: {@link #open}, {@link #connect}, {@link #send} any number of times, {@link #close}. For
 * one thread.
 */
final class Prefill implements AutoCloseable {
    /** How long the decode side may take to set its memory aside, or to check one pool. */
    private static final Duration DECODE_DEADLINE = Duration.ofMinutes(4);

    /** Pages that are made and sent at a time, at most. */
    private static final int MOST_CHUNK_PAGES = 32;

    private static final int STAGING_BUFFERS = 2;

    private final NodeOptions options;
    private final Node node;
    private final Progress progress;
    private final Mailbox mailbox;

    private Prefill(NodeOptions options, Node node, Progress progress) {
        this.options = options;
        this.node = node;
        this.progress = progress;
        this.mailbox = Mailbox.on(node);
    }

    /** Opens the device. */
    static Prefill open(NodeOptions options, Progress progress) throws IOException {
        return new Prefill(options, Node.open(options.name("prefill")), progress);
    }

    String deviceName() {
        return node.deviceName();
    }

    String transport() {
        return node.transport();
    }

    /** Connects to the decode side. */
    void connect(InetSocketAddress decode) throws IOException {
        mailbox.claim(node.connect(decode));
    }

    /** A quarter of a request at a time, so that there is more than one chunk. */
    static int chunkPages(Job job) {
        return Math.clamp(Math.ceilDiv(job.pages(Job.Side.PREFILL), 4), 1, MOST_CHUNK_PAGES);
    }

    /**
     * Sends a request and has it checked.
     *
     * @return what became of it, wrong bytes included
     * @throws IOException if the decode side cannot be reached, or is lost
     * @throws RuntimeException if the request fails
     */
    ScenarioResult send(Job job) throws IOException, InterruptedException {
        Peer decode = mailbox.peer();
        decode.send(DemoMessage.TOPIC, new DemoMessage.Begin(job).encode());
        List<Integer> ports = mailbox.take(DemoMessage.Ready.class, DECODE_DEADLINE).ports();
        try (Sending sending = new Sending(job)) {
            for (int port : ports) {
                sending.connect(new InetSocketAddress(decode.address().getAddress(), port));
            }
            sending.sendAll();
            return sending.result(check(job, sending));
        }
    }

    /** Replays a trace. */
    ScenarioResult replay(TraceShape shape, List<TraceRequest> requests)
            throws IOException, InterruptedException {
        try (Node rank = Node.open(options.name("prefill-trace"))) {
            return new TracePrefill(shape, mailbox, progress).run(rank, requests);
        }
    }

    @Override
    public void close() {
        node.close();
    }

    /** Tells the decode side what it should have, and waits for its verdict. */
    private DemoMessage.Verdict check(Job job, Sending sending)
            throws IOException, InterruptedException {
        if (job.hasSameItems()) {
            for (Rank rank : sending.ranks) {
                for (int pool = 0; pool < rank.cache().parts().size(); pool++) {
                    mailbox.peer()
                            .send(
                                    DemoMessage.TOPIC,
                                    rank.checksums.message(rank.cache().rank(), pool).encode());
                }
            }
        }
        int pools = sending.ranks.getFirst().cache().parts().size();
        int total = pools * job.ranks(Job.Side.DECODE);
        AtomicInteger checked = new AtomicInteger();
        try (var _ = progress.begin("checking", "pools", 1, total, checked::get)) {
            while (checked.get() < total) {
                mailbox.take(DemoMessage.Checked.class, DECODE_DEADLINE);
                checked.incrementAndGet();
            }
        }
        return mailbox.take(DemoMessage.Verdict.class, DECODE_DEADLINE);
    }

    /** One rank of the prefill side. */
    private static final class Rank implements AutoCloseable {
        final RankNode opened;
        final KvSender sender;
        final Content content;
        final Checksums checksums;
        final int[] pages;
        final List<Peer> decode = new ArrayList<>();
        final List<KvChunk> chunks = new ArrayList<>();

        Rank(NodeOptions options, Job job, int rank) throws IOException {
            opened = RankNode.open(options, job, Job.Side.PREFILL, rank);
            sender =
                    KvSender.on(
                            opened.node(),
                            cache().cache(opened.pool().address()),
                            senderOptions(job));
            content = new Content(job.seed());
            checksums = new Checksums(cache());
            pages = cache().pages();
        }

        private KvSenderOptions senderOptions(Job job) {
            KvSenderOptions sending =
                    KvSenderOptions.defaults()
                            .layerByLayer(job.scenario().way() == Scenario.Way.LAYERS);
            if (job.scenario().way() != Scenario.Way.STAGED) {
                return sending;
            }
            long bytes = STAGING_BUFFERS * cache().stagedBytes(chunkPages(job));
            Pool area = opened.node().registry().allocate("staging", bytes);
            return sending.staging(new StagingArea(area.address(), bytes), STAGING_BUFFERS);
        }

        RankCache cache() {
            return opened.cache();
        }

        /** Computes pages of the KV, or what stands in for it. */
        void makePages(int first, int end) {
            for (int part = 0; part < kvParts(); part++) {
                for (int i = first; i < end; i++) {
                    make(part, i);
                }
            }
        }

        /** Computes what is moved once: state and auxiliary data. */
        void makeRest() {
            for (int part = kvParts(); part < cache().parts().size(); part++) {
                for (int i = 0; i < cache().parts().get(part).slots().size(); i++) {
                    make(part, i);
                }
            }
        }

        private int kvParts() {
            return (int)
                    cache().parts().stream()
                            .filter(part -> part.kind() == RankCache.Kind.KV)
                            .count();
        }

        private void make(int part, int requestItem) {
            RankCache.PoolPart pool = cache().parts().get(part);
            long offset = pool.itemOffset(pool.slots().get(requestItem));
            cache().fill(content, opened.memory(), offset, part, requestItem);
            MemorySegment item = opened.memory().asSlice(offset, pool.itemBytes());
            checksums.set(part, requestItem, Checksums.of(item));
        }

        /** What posting a transfer of this rank did, as the peer that it went to plans it. */
        TransferPlan plan(Transfer transfer) {
            for (Peer peer : decode) {
                TransferPlan plan = peer.plan(transfer.batch());
                if (plan.isAccepted()) {
                    return plan;
                }
            }
            throw new DemoException("a transfer went to none of the decode ranks");
        }

        @Override
        public void close() {
            opened.close();
        }
    }

    /** One request under way. */
    private final class Sending implements AutoCloseable {
        private final Job job;
        private final List<Rank> ranks = new ArrayList<>();
        private final TransferClock clock = new TransferClock();
        private final List<KvSend> sends = new ArrayList<>();
        private final List<CompletableFuture<?>> ends = new ArrayList<>();
        private long bytes;

        Sending(Job job) throws IOException {
            this.job = job;
            try {
                for (int rank = 0; rank < job.ranks(Job.Side.PREFILL); rank++) {
                    ranks.add(new Rank(options, job, rank));
                }
            } catch (IOException | RuntimeException failure) {
                close();
                throw failure;
            }
        }

        void connect(InetSocketAddress decodeRank) throws IOException {
            for (Rank rank : ranks) {
                rank.decode.add(rank.opened.node().connect(decodeRank));
            }
        }

        void sendAll() throws InterruptedException {
            try {
                for (Rank rank : ranks) {
                    sends.add(rank.sender.begin(job.room(), DECODE_DEADLINE));
                }
                long expected = ranks.stream().mapToLong(r -> r.cache().requestBytes()).sum();
                try (var _ = progress.begin("moving", "MB", 1_000_000, expected, this::bytesDone)) {
                    sendChunks();
                    for (KvSend send : sends) {
                        send.await();
                    }
                    // A request may be told of its end a moment before the clock is.
                    CompletableFuture.allOf(ends.toArray(CompletableFuture[]::new)).join();
                    bytes = bytesDone();
                }
            } finally {
                sends.forEach(KvSend::close);
            }
        }

        private long bytesDone() {
            return sends.stream().mapToLong(KvSend::bytesDone).sum();
        }

        private void sendChunks() {
            int pages = job.pages(Job.Side.PREFILL);
            int chunkPages = chunkPages(job);
            for (int first = 0; first < pages; first += chunkPages) {
                int end = Math.min(pages, first + chunkPages);
                for (int i = 0; i < ranks.size(); i++) {
                    Rank rank = ranks.get(i);
                    rank.makePages(first, end);
                    if (end == pages) {
                        rank.makeRest();
                    }
                    clock.begin();
                    KvChunk chunk =
                            end == pages
                                    ? sends.get(i).last(rank.cache().slotsFrom(first))
                                    : sends.get(i)
                                            .chunk(Arrays.copyOfRange(rank.pages, first, end));
                    rank.chunks.add(chunk);
                    ends.add(
                            chunk.completion()
                                    .whenComplete((_, _) -> clock.end())
                                    .toCompletableFuture());
                }
            }
        }

        ScenarioResult result(DemoMessage.Verdict verdict) {
            long blocks = 0;
            long workRequests = 0;
            for (Rank rank : ranks) {
                for (KvChunk chunk : rank.chunks) {
                    for (Transfer transfer : chunk.transfers()) {
                        if (!transfer.batch().isEmpty()) {
                            TransferPlan plan = rank.plan(transfer);
                            blocks += plan.blocks();
                            workRequests += plan.workRequests();
                        }
                    }
                }
            }
            Scenario scenario = job.scenario();
            return new ScenarioResult(
                    scenario.name(),
                    scenario.category(),
                    scenario.title(),
                    verdict.itemsChecked(),
                    blocks,
                    workRequests,
                    bytes,
                    clock.seconds(),
                    verdict,
                    null);
        }

        @Override
        public void close() {
            ranks.forEach(Rank::close);
        }
    }
}
