package dev.verbena.kv;

import dev.verbena.transfer.Peer;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * A request that decode ranks have announced and that has not been begun: gathers the ranks until
 * all of them are there. Guarded by the lock of its {@link KvSender}.
 */
final class KvRoom {
    private final TreeMap<Integer, KvTarget> byRank = new TreeMap<>();
    private @Nullable String failure;

    /** Why a decode rank is not one of this room, but of another of the same name; or null. */
    @Nullable String refusal(KvTarget target) {
        if (byRank.isEmpty()) {
            return null;
        }
        KvTarget first = byRank.firstEntry().getValue();
        TensorParallel theirs = target.route().decode().tensorParallel();
        TensorParallel known = tensorParallel();
        if (!theirs.equals(known)) {
            return "%s is of %s, and %s of %s".formatted(target, theirs, first, known);
        }
        KvTarget same = byRank.get(target.decodeRank());
        if (same != null) {
            return "%s announced it already".formatted(same);
        }
        return null;
    }

    /** What a decode rank expects otherwise than those that are there, or null. */
    @Nullable String disagreement(KvTarget target) {
        for (KvTarget other : byRank.values()) {
            if (other.isNeeded() && target.isNeeded() && pages(other) != pages(target)) {
                return "%s expects %d pages, and %s %d"
                        .formatted(target, pages(target), other, pages(other));
            }
        }
        return null;
    }

    void add(KvTarget target) {
        byRank.put(target.decodeRank(), target);
    }

    boolean isComplete() {
        return byRank.size() == size();
    }

    /** The ranks of the decode side. Not of a room that nobody has announced. */
    TensorParallel tensorParallel() {
        return byRank.firstEntry().getValue().route().decode().tensorParallel();
    }

    private int size() {
        return tensorParallel().size();
    }

    List<KvTarget> targets() {
        return List.copyOf(byRank.values());
    }

    /** The rank that announced it with this token. */
    @Nullable KvTarget find(Peer peer, int token) {
        for (KvTarget target : byRank.values()) {
            if (target.isOf(peer, token)) {
                return target;
            }
        }
        return null;
    }

    /** The rank that is on this peer. */
    @Nullable KvTarget find(Peer peer) {
        for (KvTarget target : byRank.values()) {
            if (target.peer().equals(peer)) {
                return target;
            }
        }
        return null;
    }

    /** Slots that are kept for it. */
    long slotCount() {
        return byRank.values().stream().mapToLong(target -> target.announce().slotCount()).sum();
    }

    /** Ends it for whoever waits for it. */
    void fail(String reason) {
        failure = reason;
    }

    /** Why it was given up, or null if it was not. */
    @Nullable String failure() {
        return failure;
    }

    /** The decode ranks that have not announced it. */
    Set<Integer> missing() {
        return missing(tensorParallel());
    }

    /** The same of a decode side of that many ranks; all, if none has announced it. */
    Set<Integer> missing(TensorParallel decode) {
        Set<Integer> missing = new TreeSet<>();
        for (int rank = 0; rank < decode.size(); rank++) {
            missing.add(rank);
        }
        missing.removeAll(byRank.keySet());
        return missing;
    }

    /** Pages that a decode rank expects from this side. */
    static int pages(KvTarget target) {
        return target.route().pages(target.announce().pages().length);
    }
}
