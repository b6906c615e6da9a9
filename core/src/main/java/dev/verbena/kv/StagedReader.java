package dev.verbena.kv;

import dev.verbena.transfer.Node;
import dev.verbena.transfer.Peer;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Sets regions of the staging ring aside for chunks (category 5), and scatters them into the pools
 * once they are written, for all requests of a {@link KvReceiver}.
 *
 * <p>The prefill ranks of one pipeline stage share the region of a chunk, each with its part, and
 * must chunk alike. A region is given out when the first of them asks, in that order, and is known
 * to all by its position, also while older bytes still lie there; the watermark, {@link
 * StagingRing#tail}, says when they may write. It is free again when its chunk has been scattered;
 * or, if its request fails, when no writer of it can write any more: never earlier.
 *
 * <p>Safe for use by several threads.
 */
final class StagedReader {
    private final Node node;
    private final KvCache cache;
    private final StagingArea area;
    private final KvTokens tokens;

    /** Guards what follows; nobody is called with it held. */
    private final Object lock = new Object();

    private final StagingRing ring;
    private final Map<KvRequest, Map<Key, Chunk>> chunks = new HashMap<>();

    /** Requests that are closed, and have a region still. */
    private final Set<KvRequest> closed = new HashSet<>();

    /** The watermark that each peer was told last. */
    private final Map<Peer, Long> told = new HashMap<>();

    /** A chunk within its request: which pipeline stage, by its first layer, and its number. */
    private record Key(int firstLayer, int number) {}

    /** A chunk that has a region. */
    private static final class Chunk {
        final KvRequest request;
        final Key key;
        final int firstPage;
        final int pageCount;
        final StagingRing.Region region;
        final long bytesPerRank;

        /** The writers that share it, and the immediates that each still owes. */
        final Map<Peer, Integer> owed = new LinkedHashMap<>();

        /** The writers that have asked for it: once each, as its region will be another's. */
        final Set<Peer> asked = new HashSet<>();

        int token;

        /** Nothing of it is on its way any more. */
        boolean isComplete;

        boolean isReleased;

        Chunk(
                KvRequest request,
                Key key,
                KvMessage.Stage message,
                StagingRing.Region region,
                List<Peer> writers) {
            this.request = request;
            this.key = key;
            this.firstPage = message.firstPage();
            this.pageCount = message.pageCount();
            this.region = region;
            this.bytesPerRank = message.bytesPerRank();
            // One that has ended meanwhile writes nothing.
            writers.forEach(
                    writer -> owed.put(writer, request.isOwedBy(writer) ? writer.queuePairs() : 0));
        }

        boolean isAllThere() {
            return owed.values().stream().allMatch(left -> left == 0);
        }

        @Override
        public String toString() {
            return "chunk %d of %s".formatted(key.number, request);
        }
    }

    /** Something to be said, once the lock is given up. */
    private record Answer(Peer peer, KvMessage message) {}

    StagedReader(Node node, KvCache cache, StagingArea area, KvTokens tokens) {
        this.node = node;
        this.cache = cache;
        this.area = area;
        this.tokens = tokens;
        this.ring = new StagingRing(area.lengthBytes());
    }

    /**
     * Tells the pipeline stages of a request's writers apart: its pages come once from each.
     *
     * @return the first layer of a rank's pools, or 0 if they have no layer ids
     */
    static int stageOf(KvCache prefill) {
        KvPools pools = prefill.pools();
        return pools.hasLayers() ? pools.layer(pools.byLayer()[0]) : 0;
    }

    /**
     * A writer of a request wants to write a chunk. Called on the thread that reads the writer's
     * control connection.
     */
    void stage(KvRequest request, Peer writer, KvMessage.Stage message) {
        KvCache prefill = request.writer(writer);
        if (prefill == null) {
            return;
        }
        List<Answer> answers = new ArrayList<>();
        try {
            synchronized (lock) {
                if (request.hasFailed() || !request.isOwedBy(writer)) {
                    // An abort is on its way to the writer, or the writer is lost.
                    return;
                }
                Chunk chunk = chunk(request, writer, prefill, message);
                addWatermark(writer, answers);
                answers.add(
                        new Answer(
                                writer,
                                new KvMessage.Assigned(
                                        request.room(),
                                        request.token(),
                                        message.chunk(),
                                        chunk.region.start(),
                                        chunk.bytesPerRank,
                                        chunk.token)));
            }
        } catch (IllegalArgumentException refused) {
            request.fail("staging for " + writer.name() + ": " + refused.getMessage());
            return;
        }
        send(answers);
    }

    /**
     * A writer will write no more for a request: it has ended well, or failed, or is lost. Called
     * once a writer. What it has not written of a chunk never comes, or has come: its last
     * immediates are behind those of its chunks.
     */
    void writerEnded(KvRequest request, Peer writer) {
        List<Chunk> complete = new ArrayList<>();
        synchronized (lock) {
            for (Chunk chunk : chunks.getOrDefault(request, Map.of()).values()) {
                if (chunk.owed.replace(writer, 0) != null && completes(chunk)) {
                    complete.add(chunk);
                }
            }
        }
        complete.forEach(this::scatter);
    }

    /** A prefill rank is lost: it waits for nothing any more. */
    void lost(Peer writer) {
        synchronized (lock) {
            told.remove(writer);
        }
    }

    /** A request has been closed: no more is asked for it. */
    void forget(KvRequest request) {
        synchronized (lock) {
            closed.add(request);
            forgetIfReleased(request);
        }
    }

    /** Regions that are in use, and requests that have or had any and are not closed. */
    int inUse() {
        synchronized (lock) {
            return ring.regionsInUse() + chunks.size() + closed.size();
        }
    }

    /** The chunk that a writer asks for: a new one, or one that another has asked for before. */
    private Chunk chunk(KvRequest request, Peer writer, KvCache prefill, KvMessage.Stage message) {
        checkBytes(prefill, message);
        Map<Key, Chunk> ofRequest = chunks.computeIfAbsent(request, _ -> new HashMap<>());
        Key key = new Key(stageOf(prefill), message.chunk());
        Chunk known = ofRequest.get(key);
        if (known == null) {
            known = newChunk(request, prefill, key, message, ofRequest);
            ofRequest.put(key, known);
        } else if (known.firstPage != message.firstPage()
                || known.pageCount != message.pageCount()) {
            throw new IllegalArgumentException(
                    ("chunk %d has pages %d..%d of the request, and of another prefill rank pages"
                                    + " %d..%d: all ranks of a stage must chunk alike")
                            .formatted(
                                    message.chunk(),
                                    message.firstPage(),
                                    message.firstPage() + message.pageCount() - 1,
                                    known.firstPage,
                                    known.firstPage + known.pageCount - 1));
        }
        if (!known.owed.containsKey(writer)) {
            throw new IllegalArgumentException("it has no heads for this decode rank");
        }
        if (!known.asked.add(writer)) {
            throw new IllegalArgumentException(
                    "chunk %d was staged already".formatted(message.chunk()));
        }
        return known;
    }

    private Chunk newChunk(
            KvRequest request,
            KvCache prefill,
            Key key,
            KvMessage.Stage message,
            Map<Key, Chunk> ofRequest) {
        int next =
                ofRequest.values().stream()
                        .filter(chunk -> chunk.key.firstLayer == key.firstLayer)
                        .mapToInt(chunk -> chunk.firstPage + chunk.pageCount)
                        .max()
                        .orElse(0);
        int pages = request.slots().pageSlots().length;
        if (message.firstPage() != next || message.pageCount() > pages - next) {
            throw new IllegalArgumentException(
                    "chunk %d has %d pages from page %d, where %d of %d pages come next"
                            .formatted(
                                    message.chunk(),
                                    message.pageCount(),
                                    message.firstPage(),
                                    pages - next,
                                    pages));
        }
        long bytes =
                Checks.product(
                        "bytes of a staging region",
                        message.bytesPerRank(),
                        ranks(prefill).prefillRanksPerDecodeRank());
        if (bytes > ring.size()) {
            throw new IllegalArgumentException(
                    ("chunk %d takes %d bytes, more than the whole staging ring of %d: give"
                                    + " KvReceiverOptions.staging a larger one, or send smaller"
                                    + " chunks")
                            .formatted(message.chunk(), bytes, ring.size()));
        }
        Chunk chunk =
                new Chunk(
                        request,
                        key,
                        message,
                        ring.allocate(bytes),
                        writersOf(request, key.firstLayer));
        chunk.token = tokens.issue(peer -> arrived(chunk, peer));
        return chunk;
    }

    /** Those that share the chunks of a pipeline stage. */
    private List<Peer> writersOf(KvRequest request, int firstLayer) {
        return request.writers().stream()
                .filter(peer -> {
                    KvCache writer = request.writer(peer);
                    return writer != null
                            && stageOf(writer) == firstLayer
                            && ranks(writer).writes(writer.rank(), cache.rank());
                })
                .toList();
    }

    private void checkBytes(KvCache prefill, KvMessage.Stage message) {
        if (message.pageCount() < 1) {
            throw new IllegalArgumentException(
                    "chunk %d has %d pages".formatted(message.chunk(), message.pageCount()));
        }
        long bytes =
                StagingPlanner.bytesPerRank(
                        prefill.pools(),
                        prefill.layout().pageTokens(),
                        ranks(prefill).slice(prefill.rank(), cache.rank()),
                        message.pageCount());
        if (bytes != message.bytesPerRank()) {
            throw new IllegalArgumentException(
                    "chunk %d of %d pages is said to have %d bytes, and has %d"
                            .formatted(
                                    message.chunk(),
                                    message.pageCount(),
                                    message.bytesPerRank(),
                                    bytes));
        }
    }

    private RankMap ranks(KvCache prefill) {
        return new RankMap(prefill.tensorParallel(), cache.tensorParallel());
    }

    private void arrived(Chunk chunk, Peer writer) {
        synchronized (lock) {
            Integer left = chunk.owed.get(writer);
            if (left == null || left == 0) {
                return;
            }
            chunk.owed.put(writer, left - 1);
            if (!completes(chunk)) {
                return;
            }
        }
        scatter(chunk);
    }

    /** Whether nothing of a chunk is on its way any more; true once. With the lock. */
    private boolean completes(Chunk chunk) {
        if (chunk.isComplete || !chunk.isAllThere()) {
            return false;
        }
        chunk.isComplete = true;
        return true;
    }

    /** Scatters a chunk on a thread of its own, unless its request has failed. */
    private void scatter(Chunk chunk) {
        if (!chunk.request.beginScatter()) {
            release(chunk);
            return;
        }
        Thread.ofVirtual()
                .name("verbena-scatter")
                .start(() -> {
                    String problem = null;
                    try {
                        copy(chunk);
                    } catch (RuntimeException | Error failure) {
                        problem = chunk + " could not be scattered: " + failure.getMessage();
                    }
                    release(chunk);
                    chunk.request.endScatter(chunk.pageCount, problem);
                });
    }

    private void copy(Chunk chunk) {
        int[] pages =
                Arrays.copyOfRange(
                        chunk.request.slots().pageSlots(),
                        chunk.firstPage,
                        chunk.firstPage + chunk.pageCount);
        StagingArea region =
                area.region(
                        ring.offset(chunk.region.start()),
                        chunk.region.end() - chunk.region.start());
        for (Peer writer : chunk.owed.keySet()) {
            KvCache prefill = chunk.request.writer(writer);
            if (prefill != null) {
                RankMap ranks = ranks(prefill);
                node.copy(
                        StagingPlanner.scatter(
                                poolsFor(prefill),
                                cache.layout().pageTokens(),
                                ranks.slice(prefill.rank(), cache.rank()),
                                pages,
                                region,
                                StagingPlanner.rankOffset(
                                        ranks, prefill.rank(), chunk.bytesPerRank)));
            }
        }
    }

    /** This side's pools that a prefill rank's are gathered from, in its order. */
    private KvPools poolsFor(KvCache prefill) {
        return PoolPairs.of(prefill.pools(), cache.pools()).decodeInOrder();
    }

    private void release(Chunk chunk) {
        tokens.retire(chunk.token);
        List<Answer> answers = new ArrayList<>();
        synchronized (lock) {
            chunk.isReleased = true;
            if (ring.release(chunk.region)) {
                addWatermarks(answers);
            }
            forgetIfReleased(chunk.request);
        }
        send(answers);
    }

    /** With the lock. */
    private void forgetIfReleased(KvRequest request) {
        if (closed.contains(request)
                && chunks.getOrDefault(request, Map.of()).values().stream()
                        .allMatch(chunk -> chunk.isReleased)) {
            chunks.remove(request);
            closed.remove(request);
        }
    }

    private void addWatermarks(List<Answer> answers) {
        for (Map<Key, Chunk> ofRequest : chunks.values()) {
            for (Chunk chunk : ofRequest.values()) {
                for (Map.Entry<Peer, Integer> writer : chunk.owed.entrySet()) {
                    if (writer.getValue() > 0) {
                        addWatermark(writer.getKey(), answers);
                    }
                }
            }
        }
    }

    /** With the lock. */
    private void addWatermark(Peer peer, List<Answer> answers) {
        long tail = ring.tail();
        if (told.getOrDefault(peer, 0L) < tail) {
            told.put(peer, tail);
            answers.add(new Answer(peer, new KvMessage.Watermark(tail)));
        }
    }

    private static void send(List<Answer> answers) {
        for (Answer answer : answers) {
            try {
                answer.peer.send(KvMessage.TO_PREFILL, answer.message.encode());
            } catch (IOException lost) {
                // Its loss ends its part of the requests.
            }
        }
    }
}
