package dev.verbena.kv;

import dev.verbena.transfer.Node;
import dev.verbena.transfer.Peer;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The decode side: sets pages aside for requests, tells the prefill side which, and learns when
 * they are filled.
 *
 * <p>That a request is filled is told in band. Each writer ends with an immediate on every one of
 * its queue pairs; a queue pair delivers in order, so when the last of them has arrived, every byte
 * of the request is in memory.
 *
 * <p>Life: one a node, made before peers connect; {@link #expect} a request each; it needs no
 * closing. Safe for use by several threads.
 *
 * <p>Immediates with the top bit set are the receiver's; those of other transfers must be positive.
 *
 * <p>Source: SGLang's {@code KVReceiver}.
 */
public final class KvReceiver {
    /** Marks a token among immediates, whose other half is the user's. */
    private static final int TOKEN = Integer.MIN_VALUE;

    private final Node node;
    private final KvPools pools;

    /** Pages of requests that have not been closed; guarded by itself. */
    private final BitSet pagesInUse = new BitSet();

    private final Map<Integer, KvRequest> byToken = new ConcurrentHashMap<>();
    private final Map<Long, KvRequest> byRoom = new ConcurrentHashMap<>();
    private final Set<Peer> introduced = ConcurrentHashMap.newKeySet();
    private final AtomicInteger nextToken = new AtomicInteger(1);

    private KvReceiver(Node node, KvPools pools) {
        this.node = node;
        this.pools = pools;
    }

    /**
     * Makes the receiver of a node.
     *
     * @param node the node, whose registry holds the pools' memory with remote write
     * @param pools the decode side's pools, by their addresses in this process
     * @return the receiver
     * @throws IllegalArgumentException if the node has a receiver already
     */
    public static KvReceiver on(Node node, KvPools pools) {
        KvReceiver receiver = new KvReceiver(node, pools);
        node.onMessage(KvMessage.TO_DECODE, receiver::message);
        node.onImmediate(receiver::immediate);
        node.onPeerLost(receiver::lost);
        return receiver;
    }

    /**
     * Sets pages aside for a request and tells its writers.
     *
     * @param room identity of the request, the same on all sides; free again once it is closed
     * @param prefillPeers who will write it, each its own part
     * @param pages page slots, in the order of the request's tokens; the caller's own until the
     *     request is closed, and no one else's
     * @return the request, to be awaited and closed; failed already if a writer is lost
     * @throws IllegalArgumentException if the room is in use, there is no peer, a peer is not
     *     connected to this receiver's node, or a page is outside the pools, named twice, or part
     *     of another request that has not been closed
     */
    public KvRequest expect(long room, List<Peer> prefillPeers, int[] pages) {
        if (prefillPeers.isEmpty() || new HashSet<>(prefillPeers).size() < prefillPeers.size()) {
            throw new IllegalArgumentException(
                    "room " + room + " needs peers that write it, each once: " + prefillPeers);
        }
        for (Peer peer : prefillPeers) {
            if (peer.isOpen() && !node.peers().contains(peer)) {
                throw new IllegalArgumentException(peer + " is connected to another node");
            }
        }
        int token = TOKEN | nextToken.getAndIncrement();
        KvRequest request = new KvRequest(this, room, token, prefillPeers, pages);
        takePages(pages);
        if (byRoom.putIfAbsent(room, request) != null) {
            releasePages(pages);
            throw new IllegalArgumentException("room " + room + " is in use; close it first");
        }
        byToken.put(request.token(), request);
        for (Peer peer : prefillPeers) {
            try {
                announce(peer, room, request.token(), pages);
            } catch (IOException failure) {
                // It was not told, so it will not write; the request fails when it is awaited.
                request.writerEnded(
                        peer, "writer " + peer.name() + " is lost: " + failure.getMessage());
            }
        }
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

    void forget(KvRequest request) {
        byToken.remove(request.token(), request);
        if (byRoom.remove(request.room(), request)) {
            releasePages(request.pages());
        }
    }

    private void announce(Peer peer, long room, int token, int[] pages) throws IOException {
        // Two requests at once may both introduce the pools, which does no harm.
        if (!introduced.contains(peer)) {
            peer.send(KvMessage.TO_PREFILL, new KvMessage.Pools(pools).encode());
            introduced.add(peer);
            if (peer.lostReason().isPresent()) {
                // Lost meanwhile, and told so perhaps before it was added.
                introduced.remove(peer);
            }
        }
        peer.send(
                KvMessage.TO_PREFILL, new KvMessage.Announce(room, token, pages.clone()).encode());
    }

    /** Takes all pages for one request, or none. */
    private void takePages(int[] pages) {
        if (pages.length > KvMessage.MAX_PAGES) {
            throw new IllegalArgumentException(
                    pages.length + " pages; a request has at most " + KvMessage.MAX_PAGES);
        }
        int limit = pools.itemCount(pools.smallestPool());
        synchronized (pagesInUse) {
            for (int i = 0; i < pages.length; i++) {
                String refusal = null;
                if (pages[i] < 0 || pages[i] >= limit) {
                    refusal = "outside 0.." + (limit - 1);
                } else if (pagesInUse.get(pages[i])) {
                    refusal = "in the list before, or part of a request that is not closed";
                }
                if (refusal != null) {
                    for (int taken = 0; taken < i; taken++) {
                        pagesInUse.clear(pages[taken]);
                    }
                    throw new IllegalArgumentException(
                            "pages[%d] is %d, %s".formatted(i, pages[i], refusal));
                }
                pagesInUse.set(pages[i]);
            }
        }
    }

    private void releasePages(int[] pages) {
        synchronized (pagesInUse) {
            for (int page : pages) {
                pagesInUse.clear(page);
            }
        }
    }

    private void message(Peer peer, ByteBuffer bytes) {
        switch (KvMessage.decode(bytes)) {
            case KvMessage.Failed failed ->
                    writerEnded(
                            peer,
                            failed.room(),
                            failed.token(),
                            peer.name() + " failed it: " + failed.reason());
            case KvMessage.Ended ended ->
                    writerEnded(peer, ended.room(), ended.token(), peer.name() + " ended it");
            case KvMessage other ->
                    throw new IllegalArgumentException("unexpected KV message " + other);
        }
    }

    /** By its token: the room may stand for a later request already. */
    private void writerEnded(Peer peer, long room, int token, String reason) {
        KvRequest request = byToken.get(token);
        if (request != null && request.room() == room) {
            request.writerEnded(peer, reason);
        }
    }

    private void immediate(Peer peer, int token) {
        KvRequest request = byToken.get(token);
        if (request != null) {
            request.arrived(peer);
        }
    }

    private void lost(Peer peer, String reason) {
        introduced.remove(peer);
        for (KvRequest request : byRoom.values()) {
            request.writerEnded(peer, "writer " + peer.name() + " is lost: " + reason);
        }
    }
}
