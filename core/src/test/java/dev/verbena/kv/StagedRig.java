package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.kv.ModelOfBytes.RankOfBytes;
import dev.verbena.memory.Pool;
import dev.verbena.transfer.Node;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.transfer.Peer;
import dev.verbena.transfer.TransferBatch;
import dev.verbena.verbs.Access;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;

/**
 * A decode rank that stages, and two prefill ranks that are played by hand: each says what it is
 * told to, when it is told to, and notes what it hears.
 */
final class StagedRig implements AutoCloseable {
    private static final ModelOfBytes MODEL = ModelOfBytes.heads(2);
    private static final RankMap RANKS = RankMap.of(2, 1, MODEL.kvHeads());
    private static final int ALL_PAGES = ModelOfBytes.SLOT_TOKENS / MODEL.pageTokens();
    private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(60);

    final List<Writer> writers = new ArrayList<>();

    /** The largest chunk that fits into the ring. */
    final int ringPages;

    private final Node node = Node.open(NodeOptions.tcp().name("decode").listen(0));
    private final BlockingQueue<Peer> accepted = new LinkedBlockingQueue<>();
    private final Pool pool;
    private final Pool ring;
    private final RankOfBytes bytes;
    private final KvReceiver receiver;
    private final Set<Integer> pagesInUse = new HashSet<>();
    private final byte[] expected;

    /** Makes a ring of so many chunks, of so many pages each. */
    StagedRig(int chunkPages, double chunks) throws IOException {
        pool = node.registry().allocate("cache", rank(1, 0, 0).lengthBytes(), Access.REMOTE_WRITE);
        pool.segment().fill((byte) 0x5a);
        bytes = rank(1, 0, pool.address());
        expected = memory();
        for (int rank = 0; rank < RANKS.prefill().size(); rank++) {
            writers.add(new Writer(rank));
        }
        long page = bytesPerRank(1) * RANKS.prefillRanksPerDecodeRank();
        long ringBytes = (long) (page * chunkPages * chunks);
        ringPages = (int) (ringBytes / page);
        ring = node.registry().allocate("ring", ringBytes, Access.REMOTE_WRITE);
        node.onPeer(accepted::add);
        receiver =
                KvReceiver.on(
                        node,
                        bytes.cache,
                        KvReceiverOptions.defaults()
                                .staging(new StagingArea(ring.address(), ringBytes)));
    }

    private static RankOfBytes rank(int tpSize, int rank, long base) {
        return MODEL.rank(tpSize, rank, 0, 1, base);
    }

    void connect() throws Exception {
        for (Writer writer : writers) {
            reconnect(writer);
        }
    }

    /** Closes a connection, if there is one, and makes another. */
    void reconnect(Writer writer) throws Exception {
        if (writer.decode != null) {
            writer.decode.close();
        }
        synchronized (writer) {
            writer.tail = 0;
            writer.watermarks.clear();
        }
        writer.decode = writer.node.connect("127.0.0.1:" + node.listenPort());
        writer.atDecode = accepted.poll(60, TimeUnit.SECONDS);
        assertThat(writer.atDecode).isNotNull();
        writer.decode.awaitPool("ring", Duration.ofSeconds(60));
    }

    long bytesPerRank(int pages) {
        KvCache prefill = writers.getFirst().bytes.cache;
        return StagingPlanner.bytesPerRank(
                prefill.pools(), prefill.layout().pageTokens(), RANKS.slice(0, 0), pages);
    }

    byte[] memory() {
        return ModelOfBytes.bytes(pool.segment());
    }

    /** Of whatever requests have written so far, no other byte is expected to change. */
    void expectWhatIsThere() {
        byte[] now = memory();
        System.arraycopy(now, 0, expected, 0, now.length);
    }

    /** All of a request is expected. */
    void expectAll(Job job) {
        bytes.paint(expected, job.room, job.tokens(), job.slots);
    }

    void assertBytes(String what) {
        assertThat(Arrays.mismatch(memory(), expected)).as(what).isEqualTo(-1);
    }

    void awaitScattered(Job job, int pages) throws InterruptedException {
        await(() -> {
            byte[] scattered = memory();
            bytes.paint(scattered, job.room, pages * MODEL.pageTokens(), job.slots);
            return Arrays.equals(scattered, memory());
        });
    }

    /** Expects a request of so many pages, none of which is another open one's. */
    Job expect(long room, int pages) {
        int[] free =
                IntStream.range(0, ALL_PAGES)
                        .filter(page -> !pagesInUse.contains(page))
                        .limit(pages)
                        .toArray();
        // Not in ascending order.
        int[] slots =
                IntStream.range(0, pages).map(i -> free[(i * 5 + 3) % pages]).distinct().toArray();
        if (slots.length < pages) {
            slots = free;
        }
        Arrays.stream(slots).forEach(pagesInUse::add);
        Job job = new Job(room, KvSlots.pages(slots));
        job.request =
                receiver.expect(
                        room, writers.stream().map(Writer::decodesPeer).toList(), job.slots);
        for (Writer writer : writers) {
            writer.bytes.paint(writer.image, room, job.tokens(), writer.slots(job));
            writer.pool.segment().copyFrom(MemorySegment.ofArray(writer.image));
        }
        return job;
    }

    void close(Job job) {
        job.request.close();
        Arrays.stream(job.slots.pageSlots()).forEach(pagesInUse::remove);
    }

    static void await(BooleanSupplier condition) throws InterruptedException {
        long start = System.nanoTime();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - start > LIMIT_NANOS) {
                throw new AssertionError("it did not come");
            }
            Thread.sleep(1);
        }
    }

    /** Nothing is left on the decode rank; what is left to another thread may take a moment. */
    void assertQuiet() throws InterruptedException {
        await(() -> receiver.stagingInUse() == 0 && receiver.tokens().count() == 0);
        assertThat(receiver.openRequests()).isZero();
        assertThat(receiver.slotsInUse()).isZero();
    }

    @Override
    public void close() {
        writers.forEach(writer -> writer.node.close());
        node.close();
    }

    /** A request of the decode rank. */
    static final class Job {
        final long room;
        final KvSlots slots;
        KvRequest request;

        private Job(long room, KvSlots slots) {
            this.room = room;
            this.slots = slots;
        }

        int tokens() {
            return slots.pageSlots().length * MODEL.pageTokens();
        }
    }

    /** A prefill rank. */
    final class Writer {
        private final int rank;
        private final Node node;
        private final Pool pool;
        private final Pool staging;
        private final RankOfBytes bytes;
        private final byte[] image;
        private Peer decode;
        private Peer atDecode;

        // Guarded by this.
        private final Set<Long> aborted = new HashSet<>();
        private final Map<List<Long>, KvMessage.Assigned> assigned = new HashMap<>();
        private final Map<List<Long>, KvMessage.Stage> staged = new HashMap<>();
        private final Set<Long> watermarks = new HashSet<>();
        private long tail;

        private Writer(int rank) throws IOException {
            this.rank = rank;
            node = Node.open(NodeOptions.tcp().name("prefill-" + rank));
            int length = rank(2, rank, 0).lengthBytes();
            pool = node.registry().allocate("cache", length, Access.LOCAL_WRITE);
            staging = node.registry().allocate("staging", length, Access.LOCAL_WRITE);
            bytes = rank(2, rank, pool.address());
            image = ModelOfBytes.bytes(pool.segment());
            node.onMessage(KvMessage.TO_PREFILL, this::hear);
        }

        String name() {
            return "prefill-" + rank;
        }

        /** This rank as the decode rank knows it. */
        Peer decodesPeer() {
            return atDecode;
        }

        private void hear(Peer peer, ByteBuffer message) {
            switch (KvMessage.decode(message)) {
                case KvMessage.Side _ ->
                        say(
                                peer,
                                new KvMessage.Side(
                                        bytes.cache,
                                        Optional.of(new StagingArea(staging.address(), 1)),
                                        false));
                case KvMessage.Abort abort -> {
                    synchronized (this) {
                        aborted.add(abort.room());
                    }
                }
                case KvMessage.Assigned given -> {
                    synchronized (this) {
                        assigned.put(List.of(given.room(), (long) given.chunk()), given);
                    }
                }
                case KvMessage.Watermark watermark -> {
                    synchronized (this) {
                        assertThat(watermarks.add(watermark.tail())).as("told once").isTrue();
                        tail = Math.max(tail, watermark.tail());
                    }
                }
                default -> {}
            }
        }

        private void say(Peer peer, KvMessage message) {
            try {
                peer.send(KvMessage.TO_DECODE, message.encode());
            } catch (IOException lost) {
                throw new AssertionError(lost);
            }
        }

        void stage(Job job, int chunk, int firstPage, int pages) {
            stage(job, chunk, firstPage, pages, bytesPerRank(pages));
        }

        void stage(Job job, int chunk, int firstPage, int pages, long bytesPerRank) {
            KvMessage.Stage message =
                    new KvMessage.Stage(
                            job.room, job.request.token(), chunk, firstPage, pages, bytesPerRank);
            synchronized (this) {
                staged.put(List.of(job.room, (long) chunk), message);
            }
            say(decode, message);
        }

        void awaitAssigned(Job job, int chunk) throws InterruptedException {
            await(() -> assigned(job, chunk) != null);
        }

        private synchronized KvMessage.Assigned assigned(Job job, int chunk) {
            return assigned.get(List.of(job.room, (long) chunk));
        }

        /** Whether the watermark, as far as it was heard of, lets a chunk be written. */
        synchronized boolean mayWrite(Job job, int chunk) {
            KvMessage.Assigned given = assigned(job, chunk);
            long end = given.start() + given.bytesPerRank() * RANKS.prefillRanksPerDecodeRank();
            return StagingRing.isFree(end, tail, ring.lengthBytes());
        }

        /** Writes a chunk, with its immediates behind it, and waits until it is there. */
        void write(Job job, int chunk) throws InterruptedException {
            KvMessage.Stage what;
            synchronized (this) {
                what = staged.get(List.of(job.room, (long) chunk));
            }
            KvMessage.Assigned given = assigned(job, chunk);
            int[] pages =
                    Arrays.copyOfRange(
                            slots(job).pageSlots(),
                            what.firstPage(),
                            what.firstPage() + what.pageCount());
            StagingArea area = new StagingArea(staging.address(), staging.lengthBytes());
            node.copy(
                    StagingPlanner.gather(
                            bytes.cache.pools(),
                            MODEL.pageTokens(),
                            RANKS.slice(rank, 0),
                            pages,
                            area));
            long position = given.start() % ring.lengthBytes();
            TransferBatch bulk =
                    StagingPlanner.bulk(
                            area,
                            new StagingArea(ring.address(), ring.lengthBytes())
                                    .region(
                                            position,
                                            given.bytesPerRank()
                                                    * RANKS.prefillRanksPerDecodeRank()),
                            StagingPlanner.rankOffset(RANKS, rank, given.bytesPerRank()),
                            given.bytesPerRank());
            decode.write(bulk, given.chunkToken()).await();
        }

        /** Says that all of a request is there. */
        void done(Job job) throws InterruptedException {
            decode.write(new TransferBatch(), job.request.token()).await();
        }

        void end(Job job) {
            say(decode, new KvMessage.Ended(job.room, job.request.token()));
        }

        void fail(Job job) {
            say(decode, new KvMessage.Failed(job.room, job.request.token(), "no memory"));
        }

        void awaitAbort(Job job) throws InterruptedException {
            await(() -> {
                synchronized (this) {
                    return aborted.contains(job.room);
                }
            });
        }

        /** Where this rank keeps a request: not where the decode rank does. */
        private KvSlots slots(Job job) {
            return KvSlots.pages(
                    Arrays.stream(job.slots.pageSlots())
                            .map(page -> ALL_PAGES - 1 - page)
                            .toArray());
        }
    }
}
