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
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The decode side of a trace: keeps what it was sent in a prefix cache, and has only the rest of
 * each prompt sent. All pages of a request are checked, those that were there before too, and at
 * the end the whole cache.
 */
final class TraceDecode implements AutoCloseable {
    private static final Duration PREFILL_DEADLINE = Duration.ofMinutes(4);

    private static final long NOTHING = -1;

    private final TraceShape shape;
    private final Node node;
    private final Mailbox mailbox;
    private final Pool pool;
    private final KvReceiver receiver;
    private final PrefixCache prefixes;
    private final LinkedBlockingQueue<Peer> connected = new LinkedBlockingQueue<>();
    private final MemorySegment expected;

    /** The first token of what each page of the cache holds, or {@link #NOTHING}. */
    private final long[] held;

    private boolean corruptOneByte;
    private DemoMessage.Verdict verdict = new DemoMessage.Verdict(0, 0, null);
    private long checked;
    private long wrong;
    private @Nullable WrongItem firstWrong;

    /** Takes a node over, which listens; may spoil a byte of the first request, to be found. */
    TraceDecode(TraceShape shape, Node node, Mailbox mailbox, boolean corruptOneByte) {
        this.shape = shape;
        this.node = node;
        this.mailbox = mailbox;
        this.pool = node.registry().allocate("cache", shape.cacheBytes(), Access.REMOTE_WRITE);
        this.receiver = KvReceiver.on(node, shape.cache(pool.address()));
        this.prefixes = shape.prefixes(Job.Side.DECODE);
        this.corruptOneByte = corruptOneByte;
        this.expected = Arena.ofAuto().allocate(shape.layout().pageBytes(), Long.BYTES);
        this.held = new long[shape.cachePages()];
        Arrays.fill(held, NOTHING);
        node.onPeer(connected::add);
    }

    /**
     * Serves requests until there are no more.
     *
     * @return what the checks of all of them found
     */
    DemoMessage.Verdict serve() throws IOException, InterruptedException {
        say(new DemoMessage.Ready(List.of(node.listenPort())));
        Peer prefill = connected.poll(PREFILL_DEADLINE.toSeconds(), TimeUnit.SECONDS);
        if (prefill == null) {
            throw new DemoException("the prefill rank did not connect");
        }
        DemoMessage.Replay replay = next();
        while (!replay.isEnd()) {
            serve(prefill, replay);
            tell();
            replay = next();
        }
        checkAll();
        tell();
        return verdict;
    }

    private DemoMessage.Replay next() throws InterruptedException {
        return mailbox.take(DemoMessage.Replay.class, PREFILL_DEADLINE);
    }

    private void serve(Peer prefill, DemoMessage.Replay replay)
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
            if (corruptOneByte) {
                corruptOneByte = false;
                spoil(pages);
            }
            check(replay, pages);
        }
    }

    /** Checks all pages of a request, and remembers what they hold. */
    private void check(DemoMessage.Replay replay, int[] pages) {
        for (int i = 0; i < pages.length; i++) {
            held[pages[i]] = shape.firstToken(replay.hashes(), i);
        }
        for (int part = 0; part < shape.layout().poolCount(); part++) {
            String name = ModelShape.poolName(shape.layout(), part);
            for (int i = 0; i < pages.length; i++) {
                checked++;
                check(
                        part,
                        pages[i],
                        "request %d, %s, page %d".formatted(replay.number(), name, i),
                        (long) i * Scenario.PAGE_TOKENS);
            }
        }
    }

    /**
     * Checks every page of the cache once more, after the last request: what was sent must not have
     * been touched since, nor what never was.
     */
    private void checkAll() {
        for (int part = 0; part < shape.layout().poolCount(); part++) {
            String name = ModelShape.poolName(shape.layout(), part);
            for (int page = 0; page < shape.cachePages(); page++) {
                check(part, page, "after all, %s, slot %d".formatted(name, page), 0);
            }
        }
    }

    private void check(int part, int page, String label, long tokensBefore) {
        if (held[page] == NOTHING) {
            expected.fill((byte) 0);
        } else {
            shape.fill(expected, 0, part, held[page]);
        }
        MemorySegment found = page(part, page);
        long offset = found.mismatch(expected);
        if (offset >= 0) {
            wrong++;
            if (firstWrong == null) {
                String place = shape.place(tokensBefore, offset);
                firstWrong =
                        new WrongItem(label, RankCheck.describe(place, found, expected, offset));
            }
        }
    }

    private MemorySegment page(int part, int page) {
        return pool.segment().asSlice(shape.offset(part, page), shape.layout().pageBytes());
    }

    /** Spoils one byte in the middle of a request, to prove that it is found. */
    private void spoil(int[] pages) {
        MemorySegment page = page(shape.layout().poolCount() / 2, pages[pages.length / 2]);
        long offset = page.byteSize() / 2;
        byte value = page.get(ValueLayout.JAVA_BYTE, offset);
        page.set(ValueLayout.JAVA_BYTE, offset, (byte) (value ^ 1));
    }

    /** Tells the prefill side what was found since it was last told. */
    private void tell() throws IOException {
        DemoMessage.Verdict found = new DemoMessage.Verdict(checked, wrong, firstWrong);
        say(found);
        verdict = verdict.and(found);
        checked = 0;
        wrong = 0;
        firstWrong = null;
    }

    private void say(DemoMessage message) throws IOException {
        mailbox.peer().send(DemoMessage.TOPIC, message.encode());
    }

    @Override
    public void close() {
        node.close();
    }
}
