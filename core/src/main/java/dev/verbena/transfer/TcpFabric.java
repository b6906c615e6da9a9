package dev.verbena.transfer;

import dev.verbena.memory.RegionSource;
import dev.verbena.tcp.TcpDoor;
import dev.verbena.tcp.TcpEvents;
import dev.verbena.tcp.TcpRegions;
import dev.verbena.verbs.AsyncEvent;
import dev.verbena.verbs.CompletionEvents;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** TCP, for a node without RDMA. */
final class TcpFabric implements Fabric {
    private final NodeOptions options;
    private final TcpEvents events = new TcpEvents();
    private final TcpRegions regions = new TcpRegions();

    /** Where data connections come in; a node that only connects needs none. */
    private final @Nullable TcpDoor door;

    private TcpFabric(NodeOptions options, @Nullable TcpDoor door) {
        this.options = options;
        this.door = door;
    }

    /** Opens it, and the door if the node is to listen. */
    static TcpFabric open(NodeOptions options) throws IOException {
        InetSocketAddress address = options.listenAddress().orElse(null);
        return new TcpFabric(
                options,
                address == null
                        ? null
                        : TcpDoor.open(
                                address.getAddress(), options.control().handshakeDeadline()));
    }

    @Override
    public String transport() {
        return Hello.Tcp.TRANSPORT;
    }

    @Override
    public String deviceName() {
        return Hello.Tcp.TRANSPORT;
    }

    @Override
    public RegionSource regions() {
        return regions;
    }

    @Override
    public CompletionEvents events() {
        return events;
    }

    @Override
    public void watch(Consumer<AsyncEvent> handler) {
        // There is no device that could have any.
    }

    @Override
    public Link link(@Nullable Hello peer) {
        if (peer == null) {
            return TcpLink.connecting(options, events, regions);
        }
        if (door == null) {
            throw new IllegalStateException("this node does not listen");
        }
        return TcpLink.listening(options, events, regions, door, peer(peer));
    }

    /** What a peer has said of its end. */
    static Hello.Tcp peer(Hello hello) {
        if (hello.address() instanceof Hello.Tcp tcp) {
            return tcp;
        }
        throw hello.otherTransport(Hello.Tcp.TRANSPORT);
    }

    @Override
    public void close() {
        Closing closing = new Closing();
        if (door != null) {
            closing.then(door::close);
        }
        closing.then(events::close).end();
    }
}
