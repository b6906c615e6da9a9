package dev.verbena.kv;

import dev.verbena.transfer.Node;
import dev.verbena.transfer.Peer;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * The decode side: sets slots aside for requests, tells all prefill ranks which, and learns when
 * they are filled.
 *
 * <p>That a request is filled is told in band. Each writer ends with an immediate on every one of
 * its queue pairs. A queue pair delivers in order, and an immediate is behind all that its writer
 * posted for the request; so when the last immediate of the last writer has arrived, every byte
 * that was written for the request is in memory, whichever queue pair it came on.
 *
 * <p>Life: one a node, made before peers connect; {@link #expect} a request each; it needs no
 * closing. Safe for use by several threads.
 *
 * <p>Immediates with the top bit set are the receiver's; those of other transfers must be positive.
 *
 * <p>Source: SGLang's {@code KVReceiver}.
 */
public final class KvReceiver {
    /** How long a prefill node may take to say what its cache is, at the first request. */
    private static final Duration INTRODUCTION_WAIT = Duration.ofSeconds(10);

    private final Node node;
    private final KvCache cache;
    private final KvReceiverOptions options;
    private final KvSlotUse slotUse;
    private final @Nullable StagedReader stagedReader;
    private final KvTokens tokens = new KvTokens();
    private final Map<Long, KvRequest> byRoom = new ConcurrentHashMap<>();

    /** What prefill nodes have said of themselves; asked with the first request. */
    private final Map<Peer, CompletableFuture<KvMessage.Side>> prefillSides =
            new ConcurrentHashMap<>();

    private KvReceiver(Node node, KvCache cache, KvReceiverOptions options) {
        this.node = node;
        this.cache = cache;
        this.options = options;
        this.slotUse = new KvSlotUse(cache);
        this.stagedReader =
                options.stagingRing()
                        .map(ring -> new StagedReader(node, cache, ring, tokens))
                        .orElse(null);
    }

    /**
     * Makes the receiver of a node.
     *
     * @param node the node, whose registry holds the pools' memory with remote write
     * @param cache this rank's cache, by its addresses in this process
     * @return the receiver, with the default options
     * @throws IllegalArgumentException if the node has a receiver already
     */
    public static KvReceiver on(Node node, KvCache cache) {
        return on(node, cache, KvReceiverOptions.defaults());
    }

    /**
     * Makes the receiver of a node.
     *
     * @param node the node, whose registry holds the pools' memory with remote write
     * @param cache this rank's cache, by its addresses in this process
     * @param options how to have requests sent
     * @return the receiver
     * @throws IllegalArgumentException if the node has a receiver already
     */
    public static KvReceiver on(Node node, KvCache cache, KvReceiverOptions options) {
        KvReceiver receiver = new KvReceiver(node, cache, options);
        node.onMessage(KvMessage.TO_DECODE, receiver::message);
        node.onImmediate(receiver.tokens::arrived);
        node.onPeerLost(receiver::peerLost);
        return receiver;
    }

    /**
     * Sets slots aside for a request and tells all prefill ranks. At the first request of a peer it
     * waits, some seconds at most, until the peer has said what its cache is; not to be called on a
     * thread that reads a control connection or makes progress.
     *
     * @param room identity of the request, the same on all sides; free again once it is closed
     * @param prefillPeers all ranks of the prefill side, of all its pipeline stages, in any order:
     *     also those that have nothing to write to this rank
     * @param slots page slots in the order of the request's tokens, items of each state, and the
     *     auxiliary slot; the caller's own until the request is closed, and no one else's
     * @return the request, to be awaited and closed; failed already if a peer is lost
     * @throws IllegalArgumentException if the room is in use; there is no peer, one is not
     *     connected to this receiver's node or there twice; ranks or layers of the prefill side are
     *     missing or there twice, or their caches do not fit this one; or slots are missing,
     *     outside their pools, named twice, or part of another request that has not been closed.
     *     Nothing was announced
     * @throws KvException if a peer does not say what its cache is
     */
    public KvRequest expect(long room, List<Peer> prefillPeers, KvSlots slots) {
        checkPeers(room, prefillPeers);
        Map<Peer, Part> parts = parts(prefillPeers);
        slotUse.take(slots);
        KvRequest request;
        try {
            request = newRequest(room, parts, slots);
        } catch (RuntimeException | Error failure) {
            slotUse.release(slots);
            throw failure;
        }
        if (byRoom.putIfAbsent(room, request) != null) {
            tokens.retire(request.token());
            slotUse.release(slots);
            throw new IllegalArgumentException("room " + room + " is in use; close it first");
        }
        announce(request, parts);
        return request;
    }

    /**
     * Counts the requests that have not been closed.
     *
     * @return their number
     */
    public int openRequests() {
        return byRoom.size();
    }

    // What follows is for the package.

    KvTokens tokens() {
        return tokens;
    }

    /** Slots of requests that have not been closed. */
    int slotsInUse() {
        return slotUse.count();
    }

    void forget(KvRequest request) {
        tokens.retire(request.token());
        if (stagedReader != null) {
            stagedReader.forget(request);
        }
        if (byRoom.remove(request.room(), request)) {
            slotUse.release(request.slots());
        }
    }

    /** A writer will write no more for a request, whether it ended well or not. */
    void writerEnded(KvRequest request, Peer writer) {
        if (stagedReader != null) {
            stagedReader.writerEnded(request, writer);
        }
    }

    /** Regions of the staging ring that are in use, and requests that have any. */
    int stagingInUse() {
        return stagedReader == null ? 0 : stagedReader.inUse();
    }

    void writeAux(int slot, byte[] bytes) {
        ItemBytes.write(node.registry(), cache.auxBuffers().orElseThrow(), slot, bytes);
    }

    private void checkPeers(long room, List<Peer> prefillPeers) {
        if (prefillPeers.isEmpty() || new HashSet<>(prefillPeers).size() < prefillPeers.size()) {
            throw new IllegalArgumentException(
                    "room " + room + " needs peers that write it, each once: " + prefillPeers);
        }
        for (Peer peer : prefillPeers) {
            if (peer.isOpen() && !node.peers().contains(peer)) {
                throw new IllegalArgumentException(peer + " is connected to another node");
            }
        }
    }

    // What follows finds out who takes part.

    /**
     * What a prefill rank has to do with a request.
     *
     * @param cache of the rank; null if its peer is lost, and so the request
     */
    private record Part(
            @Nullable KvCache cache, boolean isNeeded, boolean sendsAux, boolean stages) {}

    private Map<Peer, Part> parts(List<Peer> prefillPeers) {
        prefillPeers.forEach(this::introduce);
        List<KvWriters.Member> members = new ArrayList<>();
        Map<Peer, Part> parts = new LinkedHashMap<>();
        for (Peer peer : prefillPeers) {
            KvMessage.Side side = awaitIntroduction(peer);
            parts.put(peer, new Part(side == null ? null : side.cache(), false, false, false));
            if (side != null) {
                boolean staging = stagedReader != null && side.ring().isPresent();
                members.add(new KvWriters.Member(peer.name(), side.cache(), staging));
            }
        }
        if (members.size() < prefillPeers.size()) {
            // The request has failed; the others are told of it, for the other decode ranks' sake.
            return parts;
        }
        KvWriters writers = KvWriters.of(cache, members);
        for (int i = 0; i < members.size(); i++) {
            parts.put(
                    prefillPeers.get(i),
                    new Part(
                            members.get(i).cache(),
                            writers.isNeeded(i),
                            writers.sendsAux(i),
                            writers.stages(i)));
        }
        return parts;
    }

    /** Asks a peer for its cache, once. */
    private void introduce(Peer peer) {
        CompletableFuture<KvMessage.Side> asked = new CompletableFuture<>();
        if (prefillSides.putIfAbsent(peer, asked) != null) {
            return;
        }
        try {
            peer.send(
                    KvMessage.TO_PREFILL,
                    new KvMessage.Side(cache, options.stagingRing(), options.isAuxByMessage())
                            .encode());
        } catch (IOException lost) {
            forgetSide(peer);
        }
        if (peer.lostReason().isPresent()) {
            // Told so, perhaps, before it was in the table.
            forgetSide(peer);
        }
    }

    private void forgetSide(Peer peer) {
        CompletableFuture<KvMessage.Side> side = prefillSides.remove(peer);
        if (side != null) {
            side.cancel(false);
        }
    }

    /** Waits for a peer's cache; null if the peer is lost. */
    private KvMessage.@Nullable Side awaitIntroduction(Peer peer) {
        CompletableFuture<KvMessage.Side> side = prefillSides.get(peer);
        if (side == null) {
            return null;
        }
        boolean interrupted = false;
        long deadline = System.nanoTime() + INTRODUCTION_WAIT.toNanos();
        try {
            while (true) {
                try {
                    return side.get(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
                } catch (InterruptedException later) {
                    interrupted = true;
                }
            }
        } catch (TimeoutException silent) {
            throw new KvException(
                    "%s did not say what its cache is within %s; has its node a KvSender?"
                            .formatted(peer, INTRODUCTION_WAIT),
                    null);
        } catch (ExecutionException | CancellationException lost) {
            return null;
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    // What follows tells them.

    private KvRequest newRequest(long room, Map<Peer, Part> parts, KvSlots slots) {
        Map<Peer, KvCache> writers = new LinkedHashMap<>();
        List<Peer> dummies = new ArrayList<>();
        Peer auxByMessage = null;
        Set<Integer> stages = new HashSet<>();
        String lost = null;
        for (Map.Entry<Peer, Part> entry : parts.entrySet()) {
            Peer peer = entry.getKey();
            Part part = entry.getValue();
            if (part.cache == null) {
                lost = lost(peer, peer.lostReason().orElse("no connection"));
            } else if (part.isNeeded) {
                writers.put(peer, part.cache);
            } else {
                dummies.add(peer);
            }
            if (part.stages && part.cache != null) {
                stages.add(StagedReader.stageOf(part.cache));
            }
            if (part.sendsAux && options.isAuxByMessage()) {
                auxByMessage = peer;
            }
        }
        return new KvRequest(
                this,
                room,
                slots,
                writers,
                auxByMessage,
                dummies,
                stages.size() * slots.pageSlots().length,
                lost);
    }

    private void announce(KvRequest request, Map<Peer, Part> parts) {
        // All are told before any loss counts: what is told of the end must come behind.
        Map<Peer, String> gone = new LinkedHashMap<>();
        parts.forEach((peer, part) -> {
            try {
                peer.send(KvMessage.TO_PREFILL, announcement(request, part).encode());
            } catch (IOException failure) {
                gone.put(peer, String.valueOf(failure.getMessage()));
            }
        });
        request.announced();
        gone.forEach((peer, reason) -> request.writerEnded(peer, lost(peer, reason)));
    }

    private KvMessage.Announce announcement(KvRequest request, Part part) {
        if (!part.isNeeded) {
            return KvMessage.Announce.dummy(request.room(), request.token());
        }
        KvSlots slots = request.slots();
        int[][] states = cache.stateNames().stream().map(slots::requireItems).toArray(int[][]::new);
        return new KvMessage.Announce(
                request.room(),
                request.token(),
                true,
                slots.pageSlots(),
                states,
                part.sendsAux ? slots.auxSlot() : -1);
    }

    private static String lost(Peer peer, String reason) {
        return "prefill node " + peer.name() + " is lost: " + reason;
    }

    // What follows hears them.

    private void message(Peer peer, ByteBuffer bytes) {
        switch (KvMessage.decode(bytes)) {
            case KvMessage.Side side -> {
                CompletableFuture<KvMessage.Side> asked = prefillSides.get(peer);
                if (asked != null) {
                    asked.complete(side);
                }
            }
            case KvMessage.Failed failed -> {
                KvRequest request = find(failed.room(), failed.token());
                if (request != null) {
                    request.failedBy(peer, peer.name() + " failed it: " + failed.reason());
                }
            }
            case KvMessage.Ended ended -> {
                KvRequest request = find(ended.room(), ended.token());
                if (request != null) {
                    request.writerEnded(peer, peer.name() + " ended it");
                }
            }
            case KvMessage.Aux aux -> {
                KvRequest request = find(aux.room(), aux.token());
                if (request != null) {
                    request.auxArrived(peer, aux.bytes());
                }
            }
            case KvMessage.Stage stage -> {
                KvRequest request = find(stage.room(), stage.token());
                if (stagedReader == null) {
                    throw new IllegalArgumentException("this receiver does not stage");
                }
                if (request != null) {
                    stagedReader.stage(request, peer, stage);
                }
            }
            case KvMessage other ->
                    throw new IllegalArgumentException("unexpected KV message " + other);
        }
    }

    /** By its token: the room may stand for a later request already. */
    private @Nullable KvRequest find(long room, int token) {
        KvRequest request = byRoom.get(room);
        return request != null && request.token() == token ? request : null;
    }

    private void peerLost(Peer peer, String reason) {
        forgetSide(peer);
        for (KvRequest request : byRoom.values()) {
            request.writerEnded(peer, lost(peer, reason));
        }
        if (stagedReader != null) {
            stagedReader.lost(peer);
        }
    }
}
