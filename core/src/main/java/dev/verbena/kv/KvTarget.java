package dev.verbena.kv;

import dev.verbena.transfer.Peer;
import java.util.Optional;

/**
 * A decode rank that has announced a room to this prefill rank, and what is under way to it. The
 * fields that change are guarded by the lock of the {@link KvSend} it belongs to.
 */
final class KvTarget {
    private final Peer peer;
    private final KvRoute route;
    private final KvMessage.Side side;
    private final KvMessage.Announce announce;

    /** Transfers under way, and staged chunks that have not ended. */
    int inFlight;

    /** Of those, the staged chunks: state and auxiliary data come behind them. */
    int staged;

    /** State and auxiliary data have been posted. */
    boolean isFinished;

    /** The last word has been posted: the immediates that say that the request is done. */
    boolean isDonePosted;

    /** The decode rank gave the request up, and waits for an answer. */
    boolean isAborted;

    /** The decode rank was told the end, or needs not be. */
    boolean isTold;

    KvTarget(Peer peer, KvRoute route, KvMessage.Side side, KvMessage.Announce announce) {
        this.peer = peer;
        this.route = route;
        this.side = side;
        this.announce = announce;
    }

    Peer peer() {
        return peer;
    }

    KvRoute route() {
        return route;
    }

    /** Where the decode rank stages. */
    Optional<StagingArea> ring() {
        return side.ring();
    }

    boolean isAuxByMessage() {
        return side.auxByMessage();
    }

    KvMessage.Announce announce() {
        return announce;
    }

    int token() {
        return announce.token();
    }

    int decodeRank() {
        return route.decode().rank();
    }

    /** Whether anything is to be written to it; otherwise this rank is a dummy to it. */
    boolean isNeeded() {
        return announce.needed();
    }

    boolean isOf(Peer decode, int token) {
        return peer.equals(decode) && announce.token() == token;
    }

    @Override
    public String toString() {
        return "decode rank %d (%s)".formatted(decodeRank(), peer.name());
    }
}
