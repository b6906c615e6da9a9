package dev.verbena.kv;

import dev.verbena.transfer.Node;
import dev.verbena.transfer.Peer;
import dev.verbena.transfer.Transfer;
import dev.verbena.transfer.TransferBatch;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Moves chunks through the staging areas of both sides (category 5), for all sends of a {@link
 * KvSender}.
 *
 * <pre>
 *   asked --&gt; assigned --&gt; below the watermark --&gt; gathered --&gt; written --&gt; ended
 *     \----------\------------ cancel, loss --------------------------------/
 * </pre>
 *
 * <p>A chunk asks the decode rank for a region of its ring. Once that is assigned, and the ring's
 * watermark says that it is free, the chunk takes the next free buffer of this side, is gathered
 * into it on a thread of its own, and written in one block with an immediate behind it. One that
 * waits for a ring holds up no other: chunks take buffers in the order in which they may be
 * written, whoever their decode rank is.
 *
 * <p>Safe for use by several threads.
 */
final class StagedWriter {
    private final Node node;
    private final KvCache cache;
    private final int buffers;
    private final long bufferBytes;

    /** Guards what follows; nobody is called with it held. */
    private final Object lock = new Object();

    private final Queue<StagingArea> freeBuffers = new ArrayDeque<>();

    /** Chunks that have not ended. */
    private final Map<Key, Staged> chunks = new LinkedHashMap<>();

    /** Chunks that may be written, as soon as there is a buffer. */
    private final Queue<Staged> ready = new ArrayDeque<>();

    /** By decode rank: everything below this position of its ring is free. */
    private final Map<Peer, Long> watermarks = new HashMap<>();

    /** A chunk as the decode rank names it. */
    private record Key(Peer decode, int token, int number) {}

    private enum State {
        ASKED,
        ASSIGNED,
        READY,
        WRITING,
        ENDED
    }

    /** A chunk on its way to one decode rank. */
    private static final class Staged {
        final KvSend send;
        final KvTarget target;
        final KvChunk chunk;
        final Key key;
        final int[] pages;
        final long bytesPerRank;
        final CompletableFuture<Staged> end = new CompletableFuture<>();

        State state = State.ASKED;
        long start;
        int token;
        @Nullable StagingArea buffer;

        Staged(
                KvSend send,
                KvTarget target,
                KvChunk chunk,
                Key key,
                int[] pages,
                long bytesPerRank) {
            this.send = send;
            this.target = target;
            this.chunk = chunk;
            this.key = key;
            this.pages = pages;
            this.bytesPerRank = bytesPerRank;
        }

        /** Bytes of the whole region, of which this rank writes its part. */
        long regionBytes() {
            return bytesPerRank * target.route().ranks().prefillRanksPerDecodeRank();
        }

        StagingArea ring() {
            return target.ring().orElseThrow();
        }

        @Override
        public String toString() {
            return "chunk %d of room %d to %s".formatted(key.number, send.room(), target);
        }
    }

    /**
     * Makes a writer.
     *
     * @param area memory of a pool of the node, for this writer alone
     * @param buffers equal parts that it is divided into
     */
    StagedWriter(Node node, KvCache cache, StagingArea area, int buffers) {
        this.node = node;
        this.cache = cache;
        this.buffers = buffers;
        this.bufferBytes = area.lengthBytes() / buffers;
        for (int i = 0; i < buffers; i++) {
            freeBuffers.add(area.region(i * bufferBytes, bufferBytes));
        }
    }

    /**
     * Moves a chunk to one decode rank.
     *
     * @param number of the chunk, counted over the request
     * @param firstPage of the chunk, counted over the request
     * @param pages at least one; not changed
     * @return completes when nothing of the chunk is in flight: well, or with why not
     */
    CompletionStage<?> write(
            KvSend send, KvTarget target, KvChunk chunk, int number, int firstPage, int[] pages) {
        KvRoute route = target.route();
        long bytesPerRank =
                StagingPlanner.bytesPerRank(
                        cache.pools(), cache.layout().pageTokens(), route.slice(), pages.length);
        Key key = new Key(target.peer(), target.token(), number);
        Staged staged = new Staged(send, target, chunk, key, pages, bytesPerRank);
        if (bytesPerRank > bufferBytes) {
            return CompletableFuture.failedFuture(
                    new KvException(
                            ("a %s has %d bytes of heads, and a staging buffer of the prefill side"
                                            + " %d: send smaller chunks, or give"
                                            + " KvSenderOptions.staging a larger area or fewer buffers")
                                    .formatted(staged, bytesPerRank, bufferBytes),
                            null));
        }
        synchronized (lock) {
            chunks.put(key, staged);
        }
        try {
            target.peer()
                    .send(
                            KvMessage.TO_DECODE,
                            new KvMessage.Stage(
                                            send.room(),
                                            target.token(),
                                            number,
                                            firstPage,
                                            pages.length,
                                            bytesPerRank)
                                    .encode());
        } catch (IOException lost) {
            end(staged, lost);
        }
        return staged.end;
    }

    /**
     * Gives all chunks of a request to one decode rank up: what has not been written never will be.
     * Those whose transfer is under way end with it; the request cancels that by itself.
     */
    void cancel(KvSend send, KvTarget target, String reason) {
        giveUp(
                staged -> staged.send.equals(send) && staged.target.equals(target),
                new KvException("cancelled: " + reason, null));
    }

    /**
     * A decode rank has set a region aside.
     *
     * @throws IllegalArgumentException if the region is not inside its ring
     */
    void assigned(Peer decode, KvMessage.Assigned message) {
        synchronized (lock) {
            Staged staged = chunks.get(new Key(decode, message.token(), message.chunk()));
            if (staged == null || staged.state != State.ASKED) {
                return;
            }
            long ringBytes = staged.ring().lengthBytes();
            if (message.start() < 0
                    || message.bytesPerRank() != staged.bytesPerRank
                    || message.start() % ringBytes > ringBytes - staged.regionBytes()) {
                throw new IllegalArgumentException(
                        "%s was assigned %d bytes a rank at %d, which is not a region of it"
                                .formatted(staged, message.bytesPerRank(), message.start()));
            }
            staged.start = message.start();
            staged.token = message.chunkToken();
            staged.state = State.ASSIGNED;
            takeReady(decode);
        }
        pump();
    }

    /** A decode rank has regions that are free again. */
    void watermark(Peer decode, KvMessage.Watermark message) {
        synchronized (lock) {
            watermarks.merge(decode, message.tail(), Math::max);
            takeReady(decode);
        }
        pump();
    }

    /** A decode rank is lost, and nothing to it is in flight. */
    void lost(Peer decode, String reason) {
        giveUp(
                staged -> staged.key.decode.equals(decode),
                new KvException(decode + " is lost: " + reason, null));
        synchronized (lock) {
            watermarks.remove(decode);
        }
    }

    /** Chunks that have not ended, and buffers that are not free. */
    int inUse() {
        synchronized (lock) {
            return chunks.size() + buffers - freeBuffers.size();
        }
    }

    /** Makes ready what a decode rank's watermark allows, oldest first. With the lock. */
    private void takeReady(Peer decode) {
        long tail = watermarks.getOrDefault(decode, 0L);
        for (Staged staged : chunks.values()) {
            if (staged.state == State.ASSIGNED
                    && staged.key.decode.equals(decode)
                    && StagingRing.isFree(
                            staged.start + staged.regionBytes(),
                            tail,
                            staged.ring().lengthBytes())) {
                staged.state = State.READY;
                ready.add(staged);
            }
        }
    }

    /** Gives buffers to those that are ready. */
    private void pump() {
        List<Staged> starting = new ArrayList<>();
        synchronized (lock) {
            while (!ready.isEmpty() && !freeBuffers.isEmpty()) {
                Staged staged = ready.remove();
                staged.buffer = freeBuffers.remove();
                staged.state = State.WRITING;
                starting.add(staged);
            }
        }
        for (Staged staged : starting) {
            Thread.ofVirtual().name("verbena-staging").start(() -> write(staged));
        }
    }

    private void write(Staged staged) {
        try {
            Transfer transfer = post(staged);
            if (transfer == null) {
                end(staged, new KvException(staged + " was given up", null));
            } else {
                transfer.completion().whenComplete((done, failed) -> end(staged, failed));
            }
        } catch (RuntimeException | Error failure) {
            end(staged, failure);
        }
    }

    /** Gathers a chunk and posts it; gives null if the request has failed. */
    private @Nullable Transfer post(Staged staged) {
        KvRoute route = staged.target.route();
        StagingArea buffer = staged.buffer;
        if (buffer == null) {
            throw new IllegalStateException(staged + " has no buffer");
        }
        node.copy(
                StagingPlanner.gather(
                        cache.pools(),
                        cache.layout().pageTokens(),
                        route.slice(),
                        staged.pages,
                        buffer));
        StagingArea ring = staged.ring();
        StagingArea region = ring.region(staged.start % ring.lengthBytes(), staged.regionBytes());
        TransferBatch bulk =
                StagingPlanner.bulk(
                        buffer,
                        region,
                        StagingPlanner.rankOffset(route.ranks(), cache.rank(), staged.bytesPerRank),
                        staged.bytesPerRank);
        return staged.send.write(staged.target, staged.chunk, bulk, OptionalInt.of(staged.token));
    }

    /** Ends those of some chunks that are not being written. */
    private void giveUp(Predicate<Staged> which, KvException reason) {
        List<Staged> ending = new ArrayList<>();
        synchronized (lock) {
            for (Staged staged : chunks.values()) {
                if (which.test(staged) && staged.state != State.WRITING) {
                    ending.add(staged);
                }
            }
        }
        ending.forEach(staged -> end(staged, reason));
    }

    private void end(Staged staged, @Nullable Throwable failure) {
        synchronized (lock) {
            if (staged.state == State.ENDED) {
                return;
            }
            staged.state = State.ENDED;
            chunks.remove(staged.key);
            ready.remove(staged);
            if (staged.buffer != null) {
                freeBuffers.add(staged.buffer);
            }
        }
        pump();
        if (failure == null) {
            staged.end.complete(staged);
        } else {
            staged.end.completeExceptionally(failure);
        }
    }
}
