package dev.verbena.demo;

import dev.verbena.kv.KvCache;
import dev.verbena.kv.KvLayout;
import dev.verbena.kv.KvReceiver;
import dev.verbena.kv.KvRequest;
import dev.verbena.kv.KvSlots;
import dev.verbena.memory.Pool;
import dev.verbena.transfer.Node;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.transfer.Peer;
import dev.verbena.verbs.Access;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.function.IntConsumer;

/**
 * The decode side: sets pages aside for one request, waits until they are filled, checks them,
 * tells the prefill side, and ends.
 */
final class Decode {
    /** How long the prefill side may take to make and send the checksums of one pool. */
    private static final Duration PREFILL_DEADLINE = Duration.ofMinutes(2);

    /** How long the prefill side may take to hang up. */
    private static final Duration FAREWELL = Duration.ofSeconds(10);

    private final NodeOptions options;
    private final boolean corruptOneByte;
    private final Progress progress;

    /**
     * Makes the decode side.
     *
     * @param options with an address to listen on
     * @param corruptOneByte whether to spoil a byte before the check, which must find it
     * @param progress for what it has to say
     */
    Decode(NodeOptions options, boolean corruptOneByte, Progress progress) {
        this.options = options.name("decode");
        this.corruptOneByte = corruptOneByte;
        this.progress = progress;
    }

    /**
     * Serves one prefill side.
     *
     * @param listening told the TCP port once prefill may connect
     * @return what the check found
     * @throws IOException if the address cannot be bound, or the prefill side is lost
     * @throws RuntimeException if the request fails
     */
    DemoMessage.Verdict serve(IntConsumer listening) throws IOException, InterruptedException {
        try (Node node = Node.open(options)) {
            Mailbox mailbox = Mailbox.on(node);
            listening.accept(node.listenPort());
            Job job = mailbox.take(DemoMessage.Begin.class).job();
            DemoMessage.Verdict verdict = serve(node, mailbox, job);
            mailbox.peer().send(DemoMessage.TOPIC, verdict.encode());
            mailbox.awaitLoss(FAREWELL);
            return verdict;
        }
    }

    private DemoMessage.Verdict serve(Node node, Mailbox mailbox, Job job)
            throws IOException, InterruptedException {
        KvLayout layout = job.layout();
        Peer prefill = mailbox.peer();
        Pool pool = node.registry().allocate("kv", job.cacheBytes(), Access.REMOTE_WRITE);
        CacheMemory cache = new CacheMemory(layout, job.cachePages(), pool.segment());
        KvReceiver receiver =
                KvReceiver.on(
                        node, KvCache.of(layout, layout.pools(pool.address(), job.cachePages())));
        int[] pages = RequestPages.onDecode(job.pages(), job.cachePages(), job.seed());
        try (KvRequest request =
                receiver.expect(job.room(), List.of(prefill), KvSlots.pages(pages))) {
            progress.say(
                    "set %d of %d pages aside, in each of %d pools"
                            .formatted(job.pages(), job.cachePages(), layout.poolCount()));
            request.await();
            // Still inside the request: until it is closed, the pages are ours to look at.
            PageCheck check = new PageCheck(cache, pages, new PageContent(layout, job.seed()));
            if (corruptOneByte) {
                check.corruptOneByte();
            }
            PageChecksums theirs = checksums(mailbox, layout, job.pages());
            return check.run(
                    theirs,
                    pools ->
                            prefill.send(
                                    DemoMessage.TOPIC, new DemoMessage.Checked(pools).encode()));
        }
    }

    private static PageChecksums checksums(Mailbox mailbox, KvLayout layout, int pages)
            throws InterruptedException {
        PageChecksums theirs = new PageChecksums(layout.poolCount(), pages);
        for (int pool = 0; pool < layout.poolCount(); pool++) {
            theirs.put(mailbox.take(DemoMessage.Checksums.class, PREFILL_DEADLINE));
        }
        return theirs;
    }
}
