package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.kv.ModelOfBytes.RankOfBytes;
import dev.verbena.memory.Pool;
import dev.verbena.transfer.Node;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.transfer.Peer;
import dev.verbena.verbs.Access;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongFunction;
import java.util.stream.IntStream;

/**
 * All ranks of a prefill side and of a decode side in this process, a node each, every prefill rank
 * connected to every decode rank. Keeps what the memory of each decode rank should be.
 */
final class KvGroup implements AutoCloseable {
    static final Duration SOON = Duration.ofSeconds(60);

    private static final byte UNTOUCHED = 0x33;

    /**
     * The shape of a group.
     *
     * @param prefillTp ranks of each pipeline stage of the prefill side
     * @param stages pipeline stages of the prefill side
     * @param decodeTp ranks of the decode side
     */
    record Shape(int prefillTp, int stages, int decodeTp) {
        static Shape of(int prefillTp, int decodeTp) {
            return new Shape(prefillTp, 1, decodeTp);
        }
    }

    /**
     * Staging areas for every rank, or none.
     *
     * @param ringBytes of each decode rank's ring; 0 for no staging
     * @param bufferBytes of each buffer of a prefill rank
     * @param buffers of each prefill rank
     */
    record Staging(long ringBytes, long bufferBytes, int buffers) {
        static final Staging NONE = new Staging(0, 0, 0);
    }

    /** One rank: its node, its memory, and what that should hold. */
    static final class Rank {
        final Node node;
        final Pool pool;
        final RankOfBytes bytes;
        final byte[] expected;

        /** Peers in the order of the other side's ranks. */
        final List<Peer> peers = new ArrayList<>();

        final BlockingQueue<Peer> accepted = new LinkedBlockingQueue<>();

        private Rank(Node node, Pool pool, RankOfBytes bytes) {
            this.node = node;
            this.pool = pool;
            this.bytes = bytes;
            this.expected = new byte[bytes.lengthBytes()];
        }

        void put(long seed, int tokens, KvSlots slots) {
            byte[] image = ModelOfBytes.bytes(pool.segment());
            bytes.paint(image, seed, tokens, slots);
            MemorySegment.copy(MemorySegment.ofArray(image), 0, pool.segment(), 0, image.length);
        }
    }

    final Shape shape;
    final ModelOfBytes prefillModel;
    final ModelOfBytes decodeModel;
    final List<Rank> prefill = new ArrayList<>();
    final List<Rank> decode = new ArrayList<>();
    final List<KvSender> senders = new ArrayList<>();
    final List<KvReceiver> receivers = new ArrayList<>();

    /** A group whose sides have the same model, with default options. */
    KvGroup(NodeOptions options, Shape shape, ModelOfBytes model, Staging staging)
            throws Exception {
        this(
                options,
                shape,
                model,
                model,
                KvSenderOptions.defaults(),
                KvReceiverOptions.defaults(),
                staging);
    }

    KvGroup(
            NodeOptions options,
            Shape shape,
            ModelOfBytes prefillModel,
            ModelOfBytes decodeModel,
            KvSenderOptions sending,
            KvReceiverOptions receiving,
            Staging staging)
            throws Exception {
        this.shape = shape;
        this.prefillModel = prefillModel;
        this.decodeModel = decodeModel;
        try {
            for (int rank = 0; rank < shape.decodeTp; rank++) {
                Rank opened = open(options.name("decode-" + rank).listen(0), rank);
                decode.add(opened);
                opened.node.onPeer(opened.accepted::add);
                receivers.add(
                        KvReceiver.on(
                                opened.node,
                                opened.bytes.cache,
                                staged(opened.node, receiving, staging)));
            }
            for (int stage = 0; stage < shape.stages; stage++) {
                for (int rank = 0; rank < shape.prefillTp; rank++) {
                    String name = "prefill-" + stage + "-" + rank;
                    Rank opened = open(options.name(name), rank, stage);
                    prefill.add(opened);
                    senders.add(
                            KvSender.on(
                                    opened.node,
                                    opened.bytes.cache,
                                    staged(opened.node, sending, staging)));
                }
            }
            connect();
        } catch (Exception | Error failure) {
            close();
            throw failure;
        }
    }

    private static KvReceiverOptions staged(
            Node node, KvReceiverOptions receiving, Staging staging) {
        if (staging.ringBytes == 0) {
            return receiving;
        }
        Pool ring = node.registry().allocate("ring", staging.ringBytes, Access.REMOTE_WRITE);
        return receiving.staging(new StagingArea(ring.address(), staging.ringBytes));
    }

    private static KvSenderOptions staged(Node node, KvSenderOptions sending, Staging staging) {
        if (staging.ringBytes == 0) {
            return sending;
        }
        long bytes = staging.bufferBytes * staging.buffers;
        Pool area = node.registry().allocate("staging", bytes, Access.LOCAL_WRITE);
        return sending.staging(new StagingArea(area.address(), bytes), staging.buffers);
    }

    private Rank open(NodeOptions options, int rank) throws IOException {
        Rank opened =
                open(
                        options,
                        decodeModel.rank(shape.decodeTp, rank, 0, 1, 0).lengthBytes(),
                        base -> decodeModel.rank(shape.decodeTp, rank, 0, 1, base),
                        Access.REMOTE_WRITE);
        opened.pool.segment().fill(UNTOUCHED);
        Arrays.fill(opened.expected, UNTOUCHED);
        return opened;
    }

    private Rank open(NodeOptions options, int rank, int stage) throws IOException {
        return open(
                options,
                prefillModel.rank(shape.prefillTp, rank, stage, shape.stages, 0).lengthBytes(),
                base -> prefillModel.rank(shape.prefillTp, rank, stage, shape.stages, base),
                Access.LOCAL_WRITE);
    }

    private static Rank open(
            NodeOptions options, int lengthBytes, LongFunction<RankOfBytes> describe, Access access)
            throws IOException {
        Node node = Node.open(options);
        Pool pool = node.registry().allocate("cache", lengthBytes, access);
        return new Rank(node, pool, describe.apply(pool.address()));
    }

    /** One by one, so that both sides know who is who. */
    private void connect() throws Exception {
        for (Rank from : prefill) {
            for (Rank to : decode) {
                from.peers.add(from.node.connect("127.0.0.1:" + to.node.listenPort()));
                to.peers.add(accepted(to));
            }
        }
    }

    /** Makes connections anew that are gone. */
    void reconnectLost() throws Exception {
        for (int p = 0; p < prefill.size(); p++) {
            for (int d = 0; d < decode.size(); d++) {
                Rank from = prefill.get(p);
                Rank to = decode.get(d);
                if (!from.peers.get(d).isOpen() || !to.peers.get(p).isOpen()) {
                    from.peers.get(d).close();
                    to.peers.get(p).close();
                    from.peers.set(d, from.node.connect("127.0.0.1:" + to.node.listenPort()));
                    to.peers.set(p, accepted(to));
                }
            }
        }
    }

    private static Peer accepted(Rank by) throws InterruptedException {
        Peer accepted = by.accepted.poll(60, TimeUnit.SECONDS);
        assertThat(accepted).isNotNull();
        return accepted;
    }

    /** A request of this group: slots on every rank, drawn by its room. */
    final class Job {
        final long room;
        final int tokens;
        final List<KvSlots> prefillSlots = new ArrayList<>();
        final List<KvSlots> decodeSlots = new ArrayList<>();
        final List<KvRequest> requests = new ArrayList<>();
        final List<KvSend> sends = new ArrayList<>();
        final AtomicInteger requestEnds = new AtomicInteger();

        Job(long room, int tokens) {
            this.room = room;
            this.tokens = tokens;
            Random random = new Random(room);
            int stateItems = 1 + random.nextInt(5);
            for (Rank rank : prefill) {
                prefillSlots.add(slots(prefillModel, stateItems, random));
                rank.put(room, tokensMoved(), prefillSlots.getLast());
            }
            for (int rank = 0; rank < decode.size(); rank++) {
                decodeSlots.add(slots(decodeModel, stateItems, random));
            }
        }

        /** Whole pages are moved, unless the decode side keeps single tokens. */
        private int tokensMoved() {
            return decodeModel.pageTokens() == 1
                    ? tokens
                    : Math.ceilDiv(tokens, decodeModel.pageTokens()) * decodeModel.pageTokens();
        }

        private KvSlots slots(ModelOfBytes model, int stateItems, Random random) {
            int pages = Math.ceilDiv(tokens, model.pageTokens());
            int total = ModelOfBytes.SLOT_TOKENS / model.pageTokens();
            KvSlots slots = KvSlots.pages(draw(pages, total, random));
            if (model.swa()) {
                slots = slots.state("swa", draw(stateItems, ModelOfBytes.STATE_PAGES, random));
            }
            if (model.mamba()) {
                slots = slots.state("mamba", draw(1, ModelOfBytes.MAMBA_SLOTS, random));
            }
            return model.aux() ? slots.aux(draw(1, ModelOfBytes.AUX_SLOTS, random)[0]) : slots;
        }

        /** Rooms of odd and of even number have no slot in common. */
        private int[] draw(int count, int of, Random random) {
            int half = of / 2;
            int first = (int) (room % 2) * half;
            int[] all = IntStream.range(first, first + half).toArray();
            for (int i = 0; i < count; i++) {
                int other = i + random.nextInt(half - i);
                int swapped = all[i];
                all[i] = all[other];
                all[other] = swapped;
            }
            return Arrays.copyOf(all, count);
        }

        void expect() {
            for (int rank = 0; rank < decode.size(); rank++) {
                expect(rank);
            }
        }

        KvRequest expect(int rank) {
            List<Peer> peers = new ArrayList<>(decode.get(rank).peers);
            Collections.shuffle(peers, new Random(room + rank));
            KvRequest request = receivers.get(rank).expect(room, peers, decodeSlots.get(rank));
            request.completion().whenComplete((_, _) -> requestEnds.incrementAndGet());
            requests.add(request);
            return request;
        }

        void begin() throws InterruptedException {
            for (KvSender sender : senders) {
                sends.add(sender.begin(room, SOON));
            }
        }

        /** Gives all of it to all prefill ranks, in chunks of so many pages. */
        void sendAll(int chunkPages) {
            for (int rank = 0; rank < sends.size(); rank++) {
                send(rank, chunkPages);
            }
        }

        void send(int rank, int chunkPages) {
            KvSend send = sends.get(rank);
            KvSlots slots = prefillSlots.get(rank);
            int[] pages = slots.pageSlots();
            int first = 0;
            for (; first + chunkPages < pages.length; first += chunkPages) {
                send.chunk(Arrays.copyOfRange(pages, first, first + chunkPages));
            }
            send.last(lastSlots(rank, first));
        }

        /** What is left from a page on, with all that is moved once. */
        KvSlots lastSlots(int rank, int firstPage) {
            KvSlots slots = prefillSlots.get(rank);
            int[] pages = slots.pageSlots();
            KvSlots last = KvSlots.pages(Arrays.copyOfRange(pages, firstPage, pages.length));
            if (prefillModel.swa()) {
                last = last.state("swa", slots.requireItems("swa"));
            }
            if (prefillModel.mamba()) {
                last = last.state("mamba", slots.requireItems("mamba"));
            }
            return prefillModel.aux() ? last.aux(slots.auxSlot()) : last;
        }

        void awaitAll() throws InterruptedException {
            for (KvSend send : sends) {
                send.await();
            }
            for (KvRequest request : requests) {
                request.await(SOON);
            }
        }

        /** From now on the memory of the decode ranks should have it. */
        void isExpected() {
            for (int rank = 0; rank < decode.size(); rank++) {
                Rank there = decode.get(rank);
                there.bytes.paint(there.expected, room, tokensMoved(), decodeSlots.get(rank));
            }
        }

        /** Whoever waits for an end may be woken before a stage that hangs on it has run. */
        void assertEndedOnce() {
            while (requestEnds.get() < requests.size()) {
                Thread.onSpinWait();
            }
            assertThat(requestEnds).hasValue(requests.size());
        }

        void close() {
            sends.forEach(KvSend::close);
            requests.forEach(KvRequest::close);
        }

        /** All of the life of a request that goes well. */
        void run(int chunkPages) throws InterruptedException {
            expect();
            begin();
            sendAll(chunkPages);
            awaitAll();
            isExpected();
            close();
        }
    }

    void assertBytes() {
        for (int rank = 0; rank < decode.size(); rank++) {
            byte[] memory = ModelOfBytes.bytes(decode.get(rank).pool.segment());
            int wrong = Arrays.mismatch(memory, decode.get(rank).expected);
            if (wrong >= 0) {
                throw new AssertionError(
                        "byte %d of decode rank %d is 0x%02x, not 0x%02x; caches %s"
                                .formatted(
                                        wrong,
                                        rank,
                                        memory[wrong],
                                        decode.get(rank).expected[wrong],
                                        decode.get(rank).bytes.cache));
            }
        }
    }

    /** Nothing is left on any rank; what is left to another thread may take a moment. */
    void assertQuiet() throws InterruptedException {
        long deadline = System.nanoTime() + SOON.toNanos();
        while (leftovers() > 0 && System.nanoTime() < deadline) {
            Thread.sleep(2);
        }
        assertThat(senders).allMatch(sender -> sender.openSends() == 0);
        assertThat(senders).allMatch(sender -> sender.announcements() == 0);
        assertThat(receivers).allMatch(receiver -> receiver.openRequests() == 0);
        assertThat(receivers).allMatch(receiver -> receiver.slotsInUse() == 0);
        assertThat(receivers).allMatch(receiver -> receiver.tokens().count() == 0);
        assertThat(receivers).allMatch(receiver -> receiver.stagingInUse() == 0);
        assertThat(senders).allMatch(sender -> sender.stagingInUse() == 0);
    }

    private long leftovers() {
        long left = 0;
        for (KvSender sender : senders) {
            left += sender.openSends() + sender.announcements() + sender.stagingInUse();
        }
        for (KvReceiver receiver : receivers) {
            left += receiver.openRequests() + receiver.slotsInUse() + receiver.tokens().count();
            left += receiver.stagingInUse();
        }
        return left;
    }

    @Override
    public void close() {
        prefill.forEach(rank -> rank.node.close());
        decode.forEach(rank -> rank.node.close());
    }
}
