package dev.verbena.demo;

import dev.verbena.kv.KvCache;
import dev.verbena.kv.KvChunk;
import dev.verbena.kv.KvLayout;
import dev.verbena.kv.KvSend;
import dev.verbena.kv.KvSender;
import dev.verbena.kv.KvSlots;
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
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The prefill side: makes the pages of a request chunk by chunk, and sends each chunk while it
 * makes the next.
 *
 * <p>Life: {@link #open}, {@link #send} once, {@link #close}. For one thread.
 */
final class Prefill implements AutoCloseable {
    /** How long the decode side may take to set its memory aside, or to check one pool. */
    private static final Duration DECODE_DEADLINE = Duration.ofMinutes(2);

    private final Node node;
    private final Job job;
    private final KvLayout layout;
    private final Progress progress;
    private final Mailbox mailbox;

    /** Where the decode side listens, which may take a while to find out. */
    @FunctionalInterface
    interface DecodeAddress {
        /** Waits for the address. */
        InetSocketAddress await() throws InterruptedException;
    }

    private Prefill(Node node, Job job, Progress progress) {
        this.node = node;
        this.job = job;
        this.layout = job.layout();
        this.progress = progress;
        this.mailbox = Mailbox.on(node);
    }

    /** Opens the device, to send one request. */
    static Prefill open(NodeOptions options, Job job, Progress progress) throws IOException {
        return new Prefill(Node.open(options.name("prefill")), job, progress);
    }

    String deviceName() {
        return node.deviceName();
    }

    /**
     * Sends the request and has it checked.
     *
     * @param chunkTokens tokens of one chunk, a multiple of those of a page
     * @param address gives the address of the decode side, once this side's memory is ready
     * @return what became of it, wrong bytes included
     * @throws IOException if the decode side cannot be reached, or is lost
     * @throws RuntimeException if the request fails
     */
    ScenarioResult send(int chunkTokens, DecodeAddress address)
            throws IOException, InterruptedException {
        Pool pool = node.registry().allocate("kv", job.cacheBytes());
        CacheMemory cache = new CacheMemory(layout, job.cachePages(), pool.segment());
        KvSender sender =
                KvSender.on(
                        node, KvCache.of(layout, layout.pools(pool.address(), job.cachePages())));
        int[] pages = RequestPages.onPrefill(job.pages(), job.cachePages(), job.seed());
        try (Peer decode = node.connect(address.await())) {
            mailbox.claim(decode);
            decode.send(DemoMessage.TOPIC, new DemoMessage.Begin(job).encode());
            decode.awaitPool("kv", DECODE_DEADLINE);
            Sending sending;
            try (KvSend send = sender.begin(job.room(), DECODE_DEADLINE)) {
                sending = new Sending(cache, pages, send);
                sending.sendAll(chunkTokens / Job.PAGE_TOKENS);
            }
            return sending.result(check(decode, sending.checksums));
        }
    }

    @Override
    public void close() {
        node.close();
    }

    /** Tells the decode side what it should have, and waits for its verdict. */
    private DemoMessage.Verdict check(Peer decode, PageChecksums checksums)
            throws IOException, InterruptedException {
        for (int pool = 0; pool < layout.poolCount(); pool++) {
            decode.send(DemoMessage.TOPIC, checksums.message(pool).encode());
        }
        AtomicInteger checked = new AtomicInteger();
        try (var _ = progress.begin("checking", "pools", 1, layout.poolCount(), checked::get)) {
            while (checked.get() < layout.poolCount()) {
                checked.set(mailbox.take(DemoMessage.Checked.class, DECODE_DEADLINE).pools());
            }
        }
        return mailbox.take(DemoMessage.Verdict.class, DECODE_DEADLINE);
    }

    /** One request under way. */
    private final class Sending {
        private final CacheMemory cache;
        private final int[] pages;
        private final KvSend send;
        private final PageContent content;
        private final PageChecksums checksums;
        private final TransferClock clock = new TransferClock();
        private final List<CompletableFuture<?>> ends = new CopyOnWriteArrayList<>();
        private long blocks;
        private long workRequests;

        Sending(CacheMemory cache, int[] pages, KvSend send) {
            this.cache = cache;
            this.pages = pages;
            this.send = send;
            this.content = new PageContent(layout, job.seed());
            this.checksums = new PageChecksums(layout.poolCount(), pages.length);
        }

        void sendAll(int chunkPages) throws InterruptedException {
            try (var _ = progress.begin("moving", "MB", 1_000_000, job.bytes(), send::bytesDone)) {
                for (int first = 0; first < pages.length; first += chunkPages) {
                    int end = Math.min(pages.length, first + chunkPages);
                    make(first, end);
                    post(first, end);
                }
                send.await();
                // The request may be told of its end a moment before the clock is.
                CompletableFuture.allOf(ends.toArray(CompletableFuture[]::new)).join();
            }
        }

        /** Computes pages, or what stands in for it. */
        private void make(int first, int end) {
            for (int pool = 0; pool < layout.poolCount(); pool++) {
                for (int i = first; i < end; i++) {
                    MemorySegment page = cache.page(pool, pages[i]);
                    content.fill(page, pool, i);
                    checksums.set(pool, i, PageChecksums.of(page));
                }
            }
        }

        private void post(int first, int end) {
            int[] some = Arrays.copyOfRange(pages, first, end);
            clock.begin();
            KvChunk chunk = end < pages.length ? send.chunk(some) : send.last(KvSlots.pages(some));
            ends.add(chunk.completion().whenComplete((_, _) -> clock.end()).toCompletableFuture());
            for (Transfer transfer : chunk.transfers()) {
                TransferPlan plan = send.peers().getFirst().plan(transfer.batch());
                blocks += plan.blocks();
                workRequests += plan.workRequests();
            }
        }

        ScenarioResult result(DemoMessage.Verdict verdict) {
            return new ScenarioResult(
                    job.model().title() + "/kv-pages",
                    1,
                    "KV cache, all layers",
                    (long) layout.poolCount() * pages.length,
                    blocks,
                    workRequests,
                    send.bytesDone(),
                    clock.seconds(),
                    verdict);
        }
    }
}
