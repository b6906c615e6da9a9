package dev.verbena.transfer;

import dev.verbena.tcp.LaneToken;
import dev.verbena.tcp.TcpCompletions;
import dev.verbena.tcp.TcpDoor;
import dev.verbena.tcp.TcpEvents;
import dev.verbena.tcp.TcpLane;
import dev.verbena.tcp.TcpRegions;
import dev.verbena.verbs.QueuePairOptions;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Lanes to one peer: TCP connections that stand for queue pairs. */
final class TcpLink implements Link {
    /** As deadlines see a message only once all of it is done, it should take moments. */
    private static final long MAX_MESSAGE_BYTES = 16L << 20;

    private final PosterOptions options;
    private final Duration deadline;
    private final @Nullable TcpDoor door;
    private final TcpCompletions completions;

    /** Another thread may break them off while this one connects. */
    private final List<TcpLane> lanes = new CopyOnWriteArrayList<>();

    private final List<LaneToken> tokens;

    private TcpLink(
            NodeOptions options,
            TcpEvents events,
            TcpRegions regions,
            @Nullable TcpDoor door,
            List<LaneToken> tokens) {
        this.options = options.poster();
        this.deadline = options.control().handshakeDeadline();
        this.door = door;
        this.tokens = new ArrayList<>(tokens);
        this.completions =
                new TcpCompletions(
                        events, BatchPoster.completionsNeeded(tokens.size(), this.options));
        QueuePairOptions size =
                new QueuePairOptions(
                        this.options.sendRequests(),
                        this.options.maxSge(),
                        this.options.receiveRequests(),
                        1);
        for (int i = 0; i < tokens.size(); i++) {
            lanes.add(new TcpLane(options.name() + "-" + i, size, completions, regions));
        }
    }

    /** The end that connects. */
    static TcpLink connecting(NodeOptions options, TcpEvents events, TcpRegions regions) {
        List<LaneToken> tokens =
                Stream.generate(LaneToken::random).limit(options.queuePairs()).toList();
        return new TcpLink(options, events, regions, null, tokens);
    }

    /** The end that listens, of as many lanes as both sides want. */
    static TcpLink listening(
            NodeOptions options,
            TcpEvents events,
            TcpRegions regions,
            TcpDoor door,
            Hello.Tcp peer) {
        int count = Math.min(options.queuePairs(), peer.lanes().size());
        return new TcpLink(options, events, regions, door, peer.lanes().subList(0, count));
    }

    @Override
    public Hello.Tcp address() {
        return new Hello.Tcp(door == null ? 0 : door.port(), tokens);
    }

    @Override
    public int queuePairs() {
        return lanes.size();
    }

    @Override
    public BatchPoster connect(Hello hello, InetAddress host, BatchPoster.Listener listener)
            throws IOException {
        Hello.Tcp peer = TcpFabric.peer(hello);
        while (lanes.size() > peer.lanes().size()) {
            lanes.removeLast().close();
            tokens.removeLast();
        }
        BatchPoster poster =
                new BatchPoster(lanes, completions, MAX_MESSAGE_BYTES, options, listener);
        try {
            for (int i = 0; i < lanes.size(); i++) {
                if (door != null) {
                    door.expect(tokens.get(i), lanes.get(i));
                } else {
                    InetSocketAddress address = new InetSocketAddress(host, peer.port());
                    lanes.get(i).connect(address, tokens.get(i), deadline);
                }
            }
        } catch (IOException | RuntimeException failure) {
            poster.close();
            throw failure;
        }
        return poster;
    }

    @Override
    public void awaitConnected() throws IOException {
        long end = System.nanoTime() + deadline.toNanos();
        try {
            for (TcpLane lane : lanes) {
                if (!lane.awaitConnected(end - System.nanoTime())) {
                    throw new IOException(
                            "the peer did not open its data connections within "
                                    + deadline
                                    + ": is port "
                                    + Objects.requireNonNull(door).port()
                                    + " of this host open to it?");
                }
            }
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("interrupted while the peer connected");
        }
    }

    @Override
    public void breakOff() {
        lanes.forEach(TcpLane::breakOff);
    }

    @Override
    public boolean has(int queuePairNumber) {
        return false;
    }

    @Override
    public void close() {
        if (door != null) {
            tokens.forEach(door::forget);
        }
        Closing closing = new Closing();
        lanes.forEach(lane -> closing.then(lane::close));
        closing.then(completions::close).end();
    }
}
