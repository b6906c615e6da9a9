package dev.verbena.demo;

import dev.verbena.kv.KvChunk;
import dev.verbena.kv.KvSend;
import dev.verbena.kv.KvSender;
import dev.verbena.kv.KvSlots;
import dev.verbena.memory.Pool;
import dev.verbena.transfer.Node;
import dev.verbena.transfer.Peer;
import dev.verbena.transfer.Transfer;
import dev.verbena.transfer.TransferPlan;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The prefill side of a trace: sends one request after the other, in the order of their arrival,
 * each without the prefix that the decode side has. Its own prefix cache leaves pages scattered, as
 * later requests share the pages of earlier ones.
 *
 * <p>For one thread.
 */
final class TracePrefill {
    private static final Duration DECODE_DEADLINE = Duration.ofMinutes(4);

    private final TraceShape shape;
    private final Mailbox mailbox;
    private final Progress progress;
    private final PrefixCache prefixes;
    private final TransferClock clock = new TransferClock();
    private final List<Long> latencies = new ArrayList<>();
    private long itemsMoved;
    private long itemsReused;
    private long blocks;
    private long workRequests;
    private long bytes;
    private DemoMessage.Verdict verdict = new DemoMessage.Verdict(0, 0, null);

    TracePrefill(TraceShape shape, Mailbox mailbox, Progress progress) {
        this.shape = shape;
        this.mailbox = mailbox;
        this.progress = progress;
        this.prefixes = shape.prefixes(Job.Side.PREFILL);
    }

    /** Replays requests over a node of their own. */
    ScenarioResult run(Node node, List<TraceRequest> requests)
            throws IOException, InterruptedException {
        Pool pool = node.registry().allocate("cache", shape.cacheBytes());
        KvSender sender = KvSender.on(node, shape.cache(pool.address()));
        say(new DemoMessage.Trace(shape));
        int port = mailbox.take(DemoMessage.Ready.class, DECODE_DEADLINE).ports().getFirst();
        InetSocketAddress address =
                new InetSocketAddress(mailbox.peer().address().getAddress(), port);
        AtomicInteger done = new AtomicInteger();
        try (Peer decode = node.connect(address);
                var _ = progress.begin("replaying", "requests", 1, requests.size(), done::get)) {
            for (TraceRequest request : requests) {
                replay(done.incrementAndGet(), request, sender, decode, pool);
            }
            say(DemoMessage.Replay.END);
            judge();
        }
        return result();
    }

    private void replay(int number, TraceRequest request, KvSender sender, Peer decode, Pool pool)
            throws IOException, InterruptedException {
        PrefixCache.Placed placed = prefixes.place(request.hashes());
        for (int i = placed.cachedPages(); i < placed.pages().size(); i++) {
            long firstToken = shape.firstToken(request.hashes(), i);
            for (int part = 0; part < shape.layout().poolCount(); part++) {
                long offset = shape.offset(part, placed.pages().get(i));
                shape.fill(pool.segment(), offset, part, firstToken);
            }
        }
        long start = System.nanoTime();
        say(new DemoMessage.Replay(number, request.hashes()));
        int cached = mailbox.take(DemoMessage.Expecting.class, DECODE_DEADLINE).cachedPages();
        int[] pages = placed.pages().stream().skip(cached).mapToInt(Integer::intValue).toArray();
        try (KvSend send = sender.begin(number, DECODE_DEADLINE)) {
            clock.begin();
            KvChunk chunk = send.last(KvSlots.pages(pages));
            CompletionStage<?> end = chunk.completion().whenComplete((_, _) -> clock.end());
            send.await();
            latencies.add(System.nanoTime() - start);
            // A request may be told of its end a moment before the clock is.
            end.toCompletableFuture().join();
            count(decode, chunk);
            bytes += send.bytesDone();
        }
        itemsMoved += (long) pages.length * shape.layout().poolCount();
        itemsReused += (long) cached * shape.layout().poolCount();
        judge();
    }

    /** Waits for what the decode side found. */
    private void judge() throws InterruptedException {
        verdict = verdict.and(mailbox.take(DemoMessage.Verdict.class, DECODE_DEADLINE));
    }

    private void count(Peer decode, KvChunk chunk) {
        for (Transfer transfer : chunk.transfers()) {
            TransferPlan plan = decode.plan(transfer.batch());
            blocks += plan.blocks();
            workRequests += plan.workRequests();
        }
    }

    private ScenarioResult result() {
        return new ScenarioResult(
                "trace",
                1,
                latencies.size() + " requests of a trace",
                itemsMoved,
                blocks,
                workRequests,
                bytes,
                clock.seconds(),
                verdict,
                TraceResult.of(latencies, itemsReused));
    }

    private void say(DemoMessage message) throws IOException {
        mailbox.peer().send(DemoMessage.TOPIC, message.encode());
    }
}
