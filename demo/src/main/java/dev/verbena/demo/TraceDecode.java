package dev.verbena.demo;

import dev.verbena.kv.KvReceiver;
import dev.verbena.kv.KvRequest;
import dev.verbena.kv.KvSlots;
import dev.verbena.memory.Pool;
import dev.verbena.transfer.Node;
import dev.verbena.transfer.Peer;
import dev.verbena.verbs.Access;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The decode side of a trace: keeps what it was sent in a prefix cache, and has only the rest of
 * each prompt sent. All pages of a request are checked, those that were there before too.
 */
final class TraceDecode implements AutoCloseable {
    private static final Duration PREFILL_DEADLINE = Duration.ofMinutes(4);

    private final TraceShape shape;
    private final Node node;
    private final Mailbox mailbox;
    private final Pool pool;
    private final KvReceiver receiver;
    private final PrefixCache prefixes;
    private final LinkedBlockingQueue<Peer> connected = new LinkedBlockingQueue<>();

    /** Takes a node over, which listens. */
    TraceDecode(TraceShape shape, Node node, Mailbox mailbox) {
        this.shape = shape;
        this.node = node;
        this.mailbox = mailbox;
        this.pool = node.registry().allocate("cache", shape.cacheBytes(), Access.REMOTE_WRITE);
        this.receiver = KvReceiver.on(node, shape.cache(pool.address()));
        this.prefixes = new PrefixCache(shape.cachePages(), shape.blockPages());
        node.onPeer(connected::add);
    }

    /**
     * Serves requests until there are no more.
     *
     * @return whether every byte of all of them was right
     */
    boolean serve() throws IOException, InterruptedException {
        say(new DemoMessage.Ready(List.of(node.listenPort())));
        Peer prefill = connected.poll(PREFILL_DEADLINE.toSeconds(), TimeUnit.SECONDS);
        if (prefill == null) {
            throw new DemoException("the prefill rank did not connect");
        }
        boolean allRight = true;
        DemoMessage.Replay replay = next();
        while (!replay.isEnd()) {
            DemoMessage.Verdict verdict = serve(prefill, replay);
            say(verdict);
            allRight &= verdict.allRight();
            replay = next();
        }
        return allRight;
    }

    private DemoMessage.Replay next() throws InterruptedException {
        return mailbox.take(DemoMessage.Replay.class, PREFILL_DEADLINE);
    }

    private DemoMessage.Verdict serve(Peer prefill, DemoMessage.Replay replay)
            throws IOException, InterruptedException {
        PrefixCache.Placed placed = prefixes.place(replay.hashes());
        int[] pages = placed.pages().stream().mapToInt(Integer::intValue).toArray();
        int[] missing =
                placed.pages().stream()
                        .skip(placed.cachedPages())
                        .mapToInt(Integer::intValue)
                        .toArray();
        try (KvRequest request =
                receiver.expect(replay.number(), List.of(prefill), KvSlots.pages(missing))) {
            say(new DemoMessage.Expecting(placed.cachedPages()));
            request.await(PREFILL_DEADLINE);
            return check(replay, pages);
        }
    }

    private DemoMessage.Verdict check(DemoMessage.Replay replay, int[] pages) {
        long checked = 0;
        long wrong = 0;
        @Nullable WrongItem first = null;
        try (Arena arena = Arena.ofConfined()) {
            long pageBytes = shape.layout().pageBytes();
            MemorySegment expected = arena.allocate(pageBytes, Long.BYTES);
            for (int part = 0; part < shape.layout().poolCount(); part++) {
                for (int i = 0; i < pages.length; i++) {
                    long hash = replay.hashes().get(i / shape.blockPages());
                    shape.fill(expected, 0, part, hash, i % shape.blockPages());
                    long offset = shape.offset(part, pages[i]);
                    long mismatch = pool.segment().asSlice(offset, pageBytes).mismatch(expected);
                    checked++;
                    if (mismatch >= 0) {
                        wrong++;
                        if (first == null) {
                            first =
                                    new WrongItem(
                                            "request %d, pool %d, page %d"
                                                    .formatted(replay.number(), part, i),
                                            "byte " + mismatch + " is wrong");
                        }
                    }
                }
            }
        }
        return new DemoMessage.Verdict(checked, wrong, first);
    }

    private void say(DemoMessage message) throws IOException {
        mailbox.peer().send(DemoMessage.TOPIC, message.encode());
    }

    @Override
    public void close() {
        node.close();
    }
}
