package dev.verbena.kv;

import dev.verbena.transfer.Node;
import dev.verbena.transfer.Peer;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The prefill side: hears which pages decode nodes have set aside, and writes requests into them.
 *
 * <p>Life: one a node, made before it connects; {@link #begin} a request each; it needs no closing.
 * Safe for use by several threads.
 *
 * <p>Source: SGLang's {@code KVSender}.
 */
public final class KvSender {
    /** Requests that may be announced and not yet begun; more are refused. */
    private static final int MAX_ANNOUNCED = 1 << 16;

    /** Pages of all requests that are announced and not yet begun: four bytes of memory each. */
    private static final long MAX_ANNOUNCED_PAGES = 1 << 24;

    /** A request that a decode node waits for. */
    private record Announced(Peer peer, KvPools decodePools, KvMessage.Announce announce) {}

    private final KvPools pools;

    private final Object lock = new Object();
    private final Map<Peer, KvPools> decodePools = new HashMap<>();
    private final Map<Long, Announced> announced = new HashMap<>();
    private final Map<Long, KvSend> sends = new HashMap<>();
    private long announcedPages;

    private KvSender(KvPools pools) {
        this.pools = pools;
    }

    /**
     * Makes the sender of a node.
     *
     * @param node the node, whose registry holds the pools' memory
     * @param pools the prefill side's pools, by their addresses in this process
     * @return the sender
     * @throws IllegalArgumentException if the node has a sender already
     */
    public static KvSender on(Node node, KvPools pools) {
        KvSender sender = new KvSender(pools);
        node.onMessage(KvMessage.TO_PREFILL, sender::message);
        node.onPeerLost(sender::lost);
        return sender;
    }

    /**
     * Begins to send a request, waiting for a decode node to announce it.
     *
     * @param room identity of the request, the same on all sides
     * @param timeout longest wait for the announcement
     * @return the send, to be given chunks and closed
     * @throws KvException if no decode node announced the room in time
     * @throws InterruptedException if this thread is interrupted
     */
    public KvSend begin(long room, Duration timeout) throws InterruptedException {
        long deadline = System.nanoTime() + timeout.toNanos();
        synchronized (lock) {
            Announced found;
            while ((found = forgetAnnounced(room)) == null) {
                long millis = (deadline - System.nanoTime()) / 1_000_000;
                if (millis <= 0) {
                    throw new KvException(
                            "no decode node announced room " + room + " within " + timeout, null);
                }
                lock.wait(millis);
            }
            KvSend send = new KvSend(this, found.peer, pools, found.decodePools, found.announce);
            sends.put(room, send);
            return send;
        }
    }

    /**
     * Lists the rooms that decode nodes wait for and that have not been begun.
     *
     * @return the rooms, in no particular order
     */
    public List<Long> announcedRooms() {
        synchronized (lock) {
            return new ArrayList<>(announced.keySet());
        }
    }

    /**
     * Counts the requests that have been begun and have not ended.
     *
     * @return their number
     */
    public int openSends() {
        synchronized (lock) {
            return sends.size();
        }
    }

    void forget(KvSend send) {
        synchronized (lock) {
            sends.remove(send.room(), send);
        }
    }

    private void message(Peer peer, ByteBuffer bytes) {
        switch (KvMessage.decode(bytes)) {
            case KvMessage.Pools message -> {
                synchronized (lock) {
                    if (peer.lostReason().isEmpty()) {
                        decodePools.put(peer, message.pools());
                    }
                }
            }
            case KvMessage.Announce announce -> announced(peer, announce);
            case KvMessage.Abort abort -> aborted(peer, abort);
            case KvMessage other ->
                    throw new IllegalArgumentException("unexpected KV message " + other);
        }
    }

    private void announced(Peer peer, KvMessage.Announce announce) {
        long room = announce.room();
        String refusal = null;
        synchronized (lock) {
            if (peer.lostReason().isPresent()) {
                // What is kept of it was dropped, or will be; nobody drops what comes later.
                return;
            }
            KvPools remote = decodePools.get(peer);
            if (remote == null) {
                throw new IllegalArgumentException("a request was announced before the pools");
            }
            if (announced.containsKey(room) || sends.containsKey(room)) {
                refusal = "room " + room + " is in use on the prefill side";
            } else if (announced.size() == MAX_ANNOUNCED) {
                refusal = "the prefill side has " + MAX_ANNOUNCED + " requests waiting";
            } else if (announcedPages + announce.pages().length > MAX_ANNOUNCED_PAGES) {
                refusal = "the prefill side has " + announcedPages + " pages waiting";
            } else {
                announced.put(room, new Announced(peer, remote, announce));
                announcedPages += announce.pages().length;
                lock.notifyAll();
            }
        }
        if (refusal != null) {
            answer(peer, new KvMessage.Failed(room, announce.token(), refusal));
        }
    }

    private void aborted(Peer peer, KvMessage.Abort abort) {
        KvSend send;
        synchronized (lock) {
            Announced waiting = announced.get(abort.room());
            if (waiting != null
                    && waiting.peer.equals(peer)
                    && waiting.announce.token() == abort.token()) {
                forgetAnnounced(abort.room());
            }
            send = sends.get(abort.room());
        }
        if (send != null && send.isOf(peer, abort.token())) {
            send.aborted(abort.reason());
        } else {
            // Not begun, or over: nothing of it is in flight.
            answer(peer, new KvMessage.Ended(abort.room(), abort.token()));
        }
    }

    private void lost(Peer peer, String reason) {
        List<KvSend> open = new ArrayList<>();
        synchronized (lock) {
            decodePools.remove(peer);
            for (Announced waiting : List.copyOf(announced.values())) {
                if (waiting.peer.equals(peer)) {
                    forgetAnnounced(waiting.announce.room());
                }
            }
            for (KvSend send : sends.values()) {
                if (send.peer().equals(peer)) {
                    open.add(send);
                }
            }
        }
        open.forEach(send -> send.lost(reason));
    }

    /** With the lock. */
    private @Nullable Announced forgetAnnounced(long room) {
        Announced waiting = announced.remove(room);
        announcedPages -= waiting == null ? 0 : waiting.announce.pages().length;
        return waiting;
    }

    static void answer(Peer peer, KvMessage message) {
        if (!peer.isOpen()) {
            // A transfer to it has failed, and packets may still be on their way. Its loss is what
            // tells the decode side, once the queue pairs are gone.
            return;
        }
        try {
            peer.send(KvMessage.TO_DECODE, message.encode());
        } catch (IOException lost) {
            // The decode side learns of it by the same loss.
        }
    }
}
