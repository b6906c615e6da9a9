package dev.verbena.kv;

import dev.verbena.memory.MemoryRegistry;
import dev.verbena.transfer.Node;
import dev.verbena.transfer.Peer;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The prefill side: hears which slots decode ranks have set aside, and writes requests into them.
 *
 * <p>A request is announced by every rank of the decode side, also by those that other prefill
 * ranks write to; it can be begun once all have. One that a decode rank gives up, or that is lost
 * with a rank that this side was to write to, before it is begun, is over for all of them.
 *
 * <p>Life: one a node, made before it connects; {@link #begin} a request each; it needs no closing.
 * Safe for use by several threads.
 *
 * <p>Source: SGLang's {@code KVSender}.
 */
public final class KvSender {
    /** Announcements of requests that have not been begun; more are refused. */
    private static final int MAX_ANNOUNCED = 1 << 16;

    /** Slots of all requests that are announced and not yet begun: four bytes of memory each. */
    private static final long MAX_ANNOUNCED_SLOTS = 1 << 24;

    /** A decode node: what it said of itself, and the way to it or why there is none. */
    private record DecodeSide(
            KvMessage.Side side, @Nullable KvRoute route, @Nullable String mismatch) {}

    /** What cannot be, told to a decode rank. */
    private record Answer(Peer peer, KvMessage message) {}

    private final MemoryRegistry registry;
    private final KvCache cache;
    private final KvSenderOptions options;
    private final @Nullable StagedWriter stagedWriter;

    private final Object lock = new Object();

    /** When each peer was connected. */
    private final Map<Peer, Long> connected = new HashMap<>();

    private final Map<Peer, DecodeSide> decodeSides = new HashMap<>();
    private final Map<Long, KvRoom> rooms = new HashMap<>();
    private final KvFailedRooms failedRooms = new KvFailedRooms();
    private final Map<Long, KvSend> sends = new HashMap<>();
    private int announced;
    private long announcedSlots;

    private KvSender(Node node, KvCache cache, KvSenderOptions options) {
        this.registry = node.registry();
        this.cache = cache;
        this.options = options;
        this.stagedWriter =
                options.stagingArea()
                        .map(area -> new StagedWriter(node, cache, area, options.stagingBuffers()))
                        .orElse(null);
    }

    /**
     * Makes the sender of a node.
     *
     * @param node the node, whose registry holds the pools' memory
     * @param cache this rank's cache, by its addresses in this process
     * @return the sender, with the default options
     * @throws IllegalArgumentException as {@link #on(Node, KvCache, KvSenderOptions)}
     */
    public static KvSender on(Node node, KvCache cache) {
        return on(node, cache, KvSenderOptions.defaults());
    }

    /**
     * Makes the sender of a node.
     *
     * @param node the node, whose registry holds the pools' memory
     * @param cache this rank's cache, by its addresses in this process
     * @param options how to move what is sent
     * @return the sender
     * @throws IllegalArgumentException if the node has a sender already
     */
    public static KvSender on(Node node, KvCache cache, KvSenderOptions options) {
        KvSender sender = new KvSender(node, cache, options);
        node.onMessage(KvMessage.TO_PREFILL, sender::message);
        node.onPeer(sender::connected);
        node.onPeerLost(sender::lost);
        return sender;
    }

    /**
     * Begins to send a request, waiting until all ranks of the decode side have announced it.
     *
     * @param room identity of the request, the same on all sides
     * @param timeout longest wait for the announcements
     * @return the send, to be given chunks and closed; also if this rank has nothing to write
     * @throws KvException if not all decode ranks announced the room in time, or the request of
     *     that room before it did not end; or a rank gave it up, or was lost, meanwhile
     * @throws InterruptedException if this thread is interrupted
     */
    public KvSend begin(long room, Duration timeout) throws InterruptedException {
        long start = System.nanoTime();
        long limit = TimeUnit.NANOSECONDS.convert(timeout);
        KvRoom seen = null;
        synchronized (lock) {
            while (true) {
                KvRoom found = rooms.get(room);
                seen = found == null ? seen : found;
                if (seen != null && seen.failure() != null) {
                    throw new KvException("room " + room + " failed: " + seen.failure(), null);
                }
                // The decode side may have ended the last request of the room a moment earlier.
                if (found != null && found.isComplete() && !sends.containsKey(room)) {
                    return begin(room, found);
                }
                long left = limit - (System.nanoTime() - start);
                if (left <= 0) {
                    throw new KvException(notAnnounced(room, found, timeout), null);
                }
                TimeUnit.NANOSECONDS.timedWait(lock, Math.max(left, 1_000_000));
            }
        }
    }

    /** With the lock. */
    private KvSend begin(long id, KvRoom room) {
        remove(id, room);
        KvSend send = new KvSend(this, id, room.targets());
        sends.put(id, send);
        return send;
    }

    private static String notAnnounced(long id, @Nullable KvRoom room, Duration timeout) {
        if (room == null) {
            return "no decode node announced room " + id + " within " + timeout;
        }
        return room.isComplete()
                ? "the last request of room %d did not end within %s".formatted(id, timeout)
                : "decode ranks %s did not announce room %d within %s, %s did"
                        .formatted(room.missing(), id, timeout, room.targets());
    }

    /**
     * Lists the rooms that decode ranks wait for and that have not been begun.
     *
     * @return the rooms that all ranks of the decode side have announced, in no particular order
     */
    public List<Long> announcedRooms() {
        synchronized (lock) {
            return rooms.entrySet().stream()
                    .filter(entry -> entry.getValue().isComplete())
                    .map(Map.Entry::getKey)
                    .toList();
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

    // What follows is for the package.

    KvCache cache() {
        return cache;
    }

    MemoryRegistry registry() {
        return registry;
    }

    /** Staged chunks that have not ended, and staging buffers that are not free. */
    int stagingInUse() {
        return stagedWriter == null ? 0 : stagedWriter.inUse();
    }

    /** Only where a route is staged. */
    StagedWriter stagedWriter() {
        if (stagedWriter == null) {
            throw new IllegalArgumentException("this sender does not stage");
        }
        return stagedWriter;
    }

    /** Announcements that are kept, of whatever rooms. */
    int announcements() {
        synchronized (lock) {
            return announced;
        }
    }

    void forget(KvSend send) {
        synchronized (lock) {
            sends.remove(send.room(), send);
            lock.notifyAll();
        }
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

    private void message(Peer peer, ByteBuffer bytes) {
        switch (KvMessage.decode(bytes)) {
            case KvMessage.Side side -> introduced(peer, side);
            case KvMessage.Announce announce -> announced(peer, announce);
            case KvMessage.Abort abort -> aborted(peer, abort);
            case KvMessage.Assigned assigned -> stagedWriter().assigned(peer, assigned);
            case KvMessage.Watermark watermark -> stagedWriter().watermark(peer, watermark);
            case KvMessage other ->
                    throw new IllegalArgumentException("unexpected KV message " + other);
        }
    }

    private void connected(Peer peer) {
        synchronized (lock) {
            if (peer.lostReason().isEmpty()) {
                connected.put(peer, System.nanoTime());
            }
        }
    }

    private void introduced(Peer peer, KvMessage.Side side) {
        KvRoute route = null;
        String mismatch = null;
        try {
            boolean staging = stagedWriter != null && side.ring().isPresent();
            route = KvRoute.of(cache, side.cache(), options, staging);
        } catch (IllegalArgumentException refused) {
            mismatch = refused.getMessage();
        }
        synchronized (lock) {
            if (peer.lostReason().isPresent()) {
                // What is kept of it was dropped, or will be; nobody drops what comes later.
                return;
            }
            decodeSides.put(peer, new DecodeSide(side, route, mismatch));
        }
        answer(peer, new KvMessage.Side(cache, options.stagingArea(), false));
    }

    private void announced(Peer peer, KvMessage.Announce announce) {
        DecodeSide decode;
        synchronized (lock) {
            decode = decodeSides.get(peer);
        }
        if (decode == null) {
            if (peer.lostReason().isPresent()) {
                return;
            }
            throw new IllegalArgumentException("a request was announced before the cache");
        }
        String refusal = refusal(peer, decode, announce);
        List<Answer> answers = new ArrayList<>();
        synchronized (lock) {
            if (peer.lostReason().isPresent()) {
                return;
            }
            long now = System.nanoTime();
            String failed =
                    failedRooms.take(
                            announce.room(),
                            decode.side.cache(),
                            connected.getOrDefault(peer, now),
                            now);
            if (failed != null) {
                refusal = failed;
            } else if (refusal == null) {
                refusal = join(new KvTarget(peer, route(decode), decode.side, announce));
            }
            if (refusal != null && failed == null && isMissing(announce.room(), decode)) {
                failRoom(announce.room(), decode.side.cache(), refusal, answers);
            }
            lock.notifyAll();
        }
        if (refusal != null) {
            answer(peer, new KvMessage.Failed(announce.room(), announce.token(), refusal));
        }
        answers.forEach(told -> answer(told.peer, told.message));
    }

    private static KvRoute route(DecodeSide decode) {
        if (decode.route == null) {
            throw new IllegalStateException(decode.mismatch);
        }
        return decode.route;
    }

    /** Why a request cannot be sent, or null. So that later only this side's slots can be wrong. */
    private @Nullable String refusal(Peer peer, DecodeSide decode, KvMessage.Announce announce) {
        if (decode.route == null) {
            return decode.mismatch;
        }
        if (!announce.needed()) {
            return null;
        }
        try {
            decode.route.checkSlots(announce);
            checkOffered(peer, decode.side, announce);
            return null;
        } catch (IllegalArgumentException | IndexOutOfBoundsException refused) {
            return refused.getMessage();
        }
    }

    /** Refuses pools that the decode side has not opened to this side. */
    private static void checkOffered(Peer peer, KvMessage.Side side, KvMessage.Announce announce) {
        KvCache decode = side.cache();
        Registered.check("KV", decode.pools(), peer);
        for (KvState state : decode.states()) {
            Registered.check("state '" + state.name() + "'", state.pools(), peer);
        }
        if (announce.auxSlot() >= 0 && !side.auxByMessage()) {
            Registered.check("auxiliary", decode.auxBuffers().orElseThrow(), peer);
        }
    }

    /** Adds a decode rank to its room; gives a refusal. With the lock. */
    private @Nullable String join(KvTarget target) {
        long id = target.announce().room();
        int slots = target.announce().slotCount();
        if (announced == MAX_ANNOUNCED || announcedSlots + slots > MAX_ANNOUNCED_SLOTS) {
            return "the prefill side has %d requests with %d slots waiting"
                    .formatted(announced, announcedSlots);
        }
        KvRoom room = rooms.computeIfAbsent(id, _ -> new KvRoom());
        String refusal = room.refusal(target);
        if (refusal != null) {
            return "room " + id + " is in use on the prefill side: " + refusal;
        }
        String disagreement = room.disagreement(target);
        if (disagreement != null) {
            return disagreement;
        }
        room.add(target);
        announced++;
        announcedSlots += slots;
        return null;
    }

    /**
     * Whether a rank is one that the room needs, so that its refusal ends the room, and not a
     * stranger's. With the lock.
     */
    private boolean isMissing(long id, DecodeSide decode) {
        KvRoom room = rooms.get(id);
        KvCache cache = decode.side.cache();
        return room == null
                || (room.tensorParallel().equals(cache.tensorParallel())
                        && room.missing().contains(cache.rank()));
    }

    /**
     * Ends a room that has not been begun, for all ranks of the decode side. With the lock.
     *
     * @param by the rank it fails by, which needs not be one that has announced it
     */
    private void failRoom(long id, KvCache by, String reason, List<Answer> answers) {
        KvRoom room = rooms.get(id);
        if (room == null) {
            room = new KvRoom();
        } else {
            remove(id, room);
        }
        room.fail(reason);
        for (KvTarget target : room.targets()) {
            answers.add(
                    new Answer(target.peer(), new KvMessage.Failed(id, target.token(), reason)));
        }
        Set<Integer> missing = room.missing(by.tensorParallel());
        missing.remove(by.rank());
        failedRooms.add(id, by.tensorParallel(), missing, reason, System.nanoTime());
        lock.notifyAll();
    }

    /** With the lock. */
    private void remove(long id, KvRoom room) {
        rooms.remove(id);
        announced -= room.targets().size();
        announcedSlots -= room.slotCount();
    }

    private void aborted(Peer peer, KvMessage.Abort abort) {
        List<Answer> answers = new ArrayList<>();
        KvSend send;
        KvTarget target;
        synchronized (lock) {
            KvRoom room = rooms.get(abort.room());
            KvTarget waiting = room == null ? null : room.find(peer, abort.token());
            if (waiting != null) {
                failRoom(
                        abort.room(),
                        waiting.route().decode(),
                        waiting + ": " + abort.reason(),
                        answers);
                answers.removeIf(told -> told.peer.equals(peer));
            }
            send = sends.get(abort.room());
            target = send == null ? null : send.find(peer, abort.token());
        }
        if (send != null && target != null) {
            send.aborted(target, abort.reason());
        } else {
            // Not begun, or over: nothing of it is in flight.
            answer(peer, new KvMessage.Ended(abort.room(), abort.token()));
        }
        answers.forEach(told -> answer(told.peer, told.message));
    }

    private void lost(Peer peer, String reason) {
        List<KvSend> open;
        List<Answer> answers = new ArrayList<>();
        synchronized (lock) {
            connected.remove(peer);
            DecodeSide gone = decodeSides.remove(peer);
            if (gone != null) {
                for (Map.Entry<Long, KvRoom> entry : List.copyOf(rooms.entrySet())) {
                    String failed = lost(entry.getValue(), peer, gone.side.cache(), reason);
                    if (failed != null) {
                        failRoom(entry.getKey(), gone.side.cache(), failed, answers);
                    }
                }
            }
            open = List.copyOf(sends.values());
        }
        if (stagedWriter != null) {
            stagedWriter.lost(peer, reason);
        }
        open.forEach(send -> send.lost(peer, reason));
        answers.forEach(told -> answer(told.peer, told.message));
    }

    /** What the loss of a peer means for a room: why it fails, or null. With the lock. */
    private @Nullable String lost(KvRoom room, Peer peer, KvCache gone, String reason) {
        KvTarget target = room.find(peer);
        if (target == null) {
            return isWaitingFor(room, gone)
                    ? "decode rank %d (%s) is lost: %s".formatted(gone.rank(), peer.name(), reason)
                    : null;
        }
        // A rank that other prefill ranks write to may have been served, and gone. Its announcement
        // counts until it is the last one.
        boolean anyIsThere =
                room.targets().stream().anyMatch(other -> other.peer().lostReason().isEmpty());
        return target.isNeeded() || !anyIsThere ? target + " is lost: " + reason : null;
    }

    /** Whether the room is waiting for a rank that is on no peer any more. With the lock. */
    private boolean isWaitingFor(KvRoom room, KvCache gone) {
        return room.tensorParallel().equals(gone.tensorParallel())
                && room.missing().contains(gone.rank())
                && decodeSides.values().stream()
                        .map(decode -> decode.side.cache())
                        .noneMatch(cache ->
                                cache.tensorParallel().equals(gone.tensorParallel())
                                        && cache.rank() == gone.rank());
    }
}
