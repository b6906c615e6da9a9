package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.verbena.memory.Pool;
import dev.verbena.memory.PoolDescriptor;
import dev.verbena.memory.RemotePool;
import dev.verbena.tcp.LaneToken;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.Lifetime;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Peers that go, and peers that lie or do not read, over TCP. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class TcpPeerLossTest extends PeerLosses {
    private static final TwoNodes.Transport TCP = TwoNodes.Transport.TCP;

    TcpPeerLossTest() {
        super(TCP);
    }

    /** A data connection that ends is mostly seen before the word that explains it. */
    @Override
    void assertPeerClosed(String reason) {
        assertThat(reason).containsAnyOf("goodbye", "the peer did not answer");
    }

    @Test
    void helloesThatLieAreRefusedAndNothingOfThemStays() throws Exception {
        PoolDescriptor pool = ControlPeers.pool("kv", 2);
        LaneToken token = LaneToken.random();
        try (TwoNodes nodes = TwoNodes.of(TCP, 2)) {
            long open = Lifetime.openCount();
            for (Hello lie :
                    List.of(
                            hello(0, List.of(token), List.of(pool, overlap(pool))),
                            // One token for all: only one lane could come in.
                            hello(9, Collections.nCopies(256, token), List.of(pool)),
                            ControlPeers.hello("rdma-node"))) {
                try (ControlConnection liar = dial(nodes.far())) {
                    liar.send(ControlFrame.HELLO, lie.encode());
                    try {
                        liar.receive(ControlFrame.WELCOME);
                    } catch (ControlRefusedException refused) {
                        assertThat(refused)
                                .message()
                                .containsAnyOf(
                                        "pools make no sense",
                                        "rdma-node speaks verbs and this node tcp");
                    }
                }
            }
            awaitOpenCount(open);
            assertThat(nodes.far().peers()).isEmpty();
            writeSome(nodes, nodes.source("here", 4096, 1));
        }
    }

    /** The handshake fails at each of its steps, on the side that connects. */
    @Test
    void aListenerThatFailsTheHandshakeIsAnErrorThatSaysSo() throws Exception {
        PoolDescriptor pool = ControlPeers.pool("kv", 2);
        int closed;
        try (ServerSocket nobody = new ServerSocket(0)) {
            closed = nobody.getLocalPort();
        }
        List<LaneToken> lanes = List.of(LaneToken.random());
        byte[] cutShort = hello(1, lanes, List.of(pool)).encode();
        record Step(byte[] welcome, Class<? extends Exception> type, String message) {}
        List<Step> steps =
                List.of(
                        new Step(new byte[3], IOException.class, "welcome makes no sense"),
                        new Step(
                                Arrays.copyOf(cutShort, cutShort.length - 1),
                                IOException.class,
                                "welcome makes no sense"),
                        new Step(
                                hello(1, lanes, List.of(pool, overlap(pool))).encode(),
                                IOException.class,
                                "pools make no sense"),
                        new Step(
                                hello(closed, lanes, List.of(pool)).encode(),
                                IOException.class,
                                "data connection to 127.0.0.1:" + closed),
                        new Step(
                                hello(0, lanes, List.of(pool)).encode(),
                                IOException.class,
                                "data connection"),
                        new Step(
                                new Hello(
                                                "rdma-node",
                                                1,
                                                ControlPeers.hello("rdma-node").address(),
                                                List.of())
                                        .encode(),
                                IllegalStateException.class,
                                "rdma-node speaks verbs and this node tcp"));
        try (TwoNodes nodes = TwoNodes.of(TCP, 2)) {
            long open = Lifetime.openCount();
            for (Step step : steps) {
                try (ServerSocket server = new ServerSocket()) {
                    server.bind(ControlPeers.loopback(0));
                    CompletableFuture<String> farewell = new CompletableFuture<>();
                    Thread.startVirtualThread(() -> listen(server, step.welcome, farewell));

                    assertThatThrownBy(() ->
                                    nodes.near()
                                            .connect(ControlPeers.loopback(server.getLocalPort())))
                            .isInstanceOf(step.type)
                            .hasMessageContaining(step.message);
                    assertThat(farewell.join()).as("told to the other").contains(step.message);
                }
                awaitOpenCount(open);
            }
            assertThat(nodes.near().peers()).isEmpty();
            assertThat(nodes.nearHasLost()).as("what was never a peer is not lost").isFalse();
        }
    }

    /**
     * Nothing of the peer's data connections comes, and the node does not wait until it is late.
     */
    @Test
    void aNodeThatClosesWaitsForNoDataConnection() throws Exception {
        TwoNodes nodes =
                new TwoNodes(TCP, o -> o.connectDeadline(Duration.ofDays(1)).queuePairs(2));
        try (ControlConnection peer = dial(nodes.far())) {
            peer.send(
                    ControlFrame.HELLO, hello(0, List.of(LaneToken.random()), List.of()).encode());
            peer.receive(ControlFrame.WELCOME);
            peer.send(ControlFrame.READY, new byte[0]);

            nodes.far().close();

            assertThatThrownBy(() -> peer.receive(ControlFrame.READY))
                    .isInstanceOf(IOException.class);
        }
        nodes.close();
    }

    @Test
    void aPeerWhoseDataConnectionsDoNotComeIsRefused() throws Exception {
        try (TwoNodes nodes = new TwoNodes(TCP, o -> o.connectDeadline(Duration.ofMillis(300)));
                ControlConnection peer = dial(nodes.far())) {
            peer.send(
                    ControlFrame.HELLO, hello(0, List.of(LaneToken.random()), List.of()).encode());
            peer.receive(ControlFrame.WELCOME);
            peer.send(ControlFrame.READY, new byte[0]);

            assertThatThrownBy(() -> peer.receive(ControlFrame.READY))
                    .isInstanceOf(IOException.class);
            assertThat(nodes.far().peers()).isEmpty();
        }
    }

    /** Its sockets stay open, and its pings come: only the deadline of the transfer can tell. */
    @Test
    void aPeerThatDoesNotReadIsCaughtByTheDeadline() throws Exception {
        int bytes = 64 << 20;
        try (TwoNodes nodes =
                        new TwoNodes(
                                TCP,
                                o ->
                                        o.queuePairs(1)
                                                .poster(
                                                        TwoNodes.posterOptions(
                                                                Duration.ofMillis(500))));
                ServerSocket control = new ServerSocket();
                ServerSocket data = new ServerSocket()) {
            Pool here = nodes.source("here", bytes, 1);
            control.bind(ControlPeers.loopback(0));
            data.bind(ControlPeers.loopback(0));
            PoolDescriptor pool =
                    new PoolDescriptor(
                            "there",
                            1,
                            1 << 20,
                            bytes,
                            Set.of(Access.REMOTE_WRITE),
                            List.of(new PoolDescriptor.Region(bytes, 1)));
            CompletableFuture<ControlConnection> met = new CompletableFuture<>();
            Thread.startVirtualThread(() -> {
                try {
                    ControlConnection connection =
                            ControlPeers.over(control.accept(), ControlOptions.defaults());
                    connection.receive(ControlFrame.HELLO);
                    Hello welcome =
                            hello(data.getLocalPort(), List.of(LaneToken.random()), List.of(pool));
                    connection.send(ControlFrame.WELCOME, welcome.encode());
                    connection.receive(ControlFrame.READY);
                    connection.start(new ControlPeers.Notes());
                    met.complete(connection);
                } catch (IOException failure) {
                    met.completeExceptionally(failure);
                }
            });
            Peer peer = nodes.near().connect(ControlPeers.loopback(control.getLocalPort()));
            try (ControlConnection _ = met.join();
                    Socket unread = data.accept()) {
                RemotePool there = peer.pool("there");
                Transfer transfer =
                        peer.write(new TransferBatch().add(here.address(), there.address(), bytes));

                TransferException failure =
                        catchThrowableOfType(TransferException.class, transfer::await);

                assertThat(failure.reason()).isEqualTo(FailureReason.DEADLINE);
                assertThat(failure.outcome(0)).isEqualTo(BlockOutcome.UNKNOWN);
                nodes.lostByNear();
                here.close();
                // The connection ends, behind what had been sent before.
                while (unread.getInputStream().skip(1 << 20) > 0) {}
            }
        }
    }

    @Test
    void strangersOnTheDataPortDisturbNobody() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(TCP, 2)) {
            int port = dataPort(nodes.far());
            List<Socket> strangers = new ArrayList<>();
            for (int i = 0; i < 300; i++) {
                Socket stranger = new Socket(ControlPeers.loopback(0).getAddress(), port);
                strangers.add(stranger);
                if (i % 3 == 0) {
                    byte[] greeting = new byte[16 + 24 * (i % 2)];
                    ByteBuffer.wrap(greeting).putLong(i);
                    stranger.getOutputStream().write(greeting);
                }
            }
            writeSome(nodes, nodes.source("here", 4096, 1));
            for (Socket stranger : strangers) {
                stranger.close();
            }
            // Far may still be at the end of its handshake: near does not wait for that to write.
            Peer accepted = nodes.accepted();
            assertThat(nodes.far().peers()).containsExactly(accepted);
        }
    }

    /** Where the data connections go is told to whoever says hello; the token is what counts. */
    private static int dataPort(Node node) throws IOException {
        try (ControlConnection asking = dial(node)) {
            asking.send(
                    ControlFrame.HELLO, hello(0, List.of(LaneToken.random()), List.of()).encode());
            Hello welcome = Hello.decode(asking.receive(ControlFrame.WELCOME).payload());
            return ((Hello.Tcp) welcome.address()).port();
        }
    }

    private static ControlConnection dial(Node node) throws IOException {
        return ControlConnection.connect(
                ControlPeers.loopback(node.listenPort()), ControlOptions.defaults());
    }

    private static void listen(
            ServerSocket server, byte[] welcome, CompletableFuture<String> farewell) {
        try (Socket socket = server.accept();
                ControlConnection connection =
                        ControlPeers.over(socket, ControlOptions.defaults())) {
            connection.receive(ControlFrame.HELLO);
            connection.send(ControlFrame.WELCOME, welcome);
            connection.receive(ControlFrame.READY);
            farewell.complete("ready");
        } catch (IOException ended) {
            farewell.complete(ended.getMessage());
        }
    }

    private static Hello hello(int port, List<LaneToken> lanes, List<PoolDescriptor> pools) {
        return new Hello("liar", -1, new Hello.Tcp(port, lanes), pools);
    }

    private static PoolDescriptor overlap(PoolDescriptor pool) {
        return new PoolDescriptor(
                "other",
                1,
                pool.address() + 1,
                4096,
                Set.of(Access.REMOTE_WRITE),
                List.of(new PoolDescriptor.Region(4096, 1)));
    }
}
