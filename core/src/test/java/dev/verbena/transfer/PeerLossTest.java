package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.memory.PoolDescriptor;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.DeviceTest;
import dev.verbena.verbs.Gid;
import dev.verbena.verbs.Lifetime;
import dev.verbena.verbs.VerbsException;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Peers that go, and peers that lie, over a real device. */
@DeviceTest
class PeerLossTest extends PeerLosses {
    PeerLossTest() {
        super(TwoNodes.Transport.VERBS);
    }

    @Override
    void assertPeerClosed(String reason) {
        assertThat(reason).contains("goodbye");
    }

    /** Absurd numbers, pools that overlap, addresses that lead nowhere: refused, or harmless. */
    @Test
    void aPeerThatLiesIsRefusedAndNothingOfItStays() throws Exception {
        Gid.Address nowhere = ControlPeers.gid("00000000000000000000ffff0a4d00fe");
        Gid.Address wrongKind = ControlPeers.gid("fe80000000000000deadbeefdeadbeef");
        PoolDescriptor pool = ControlPeers.pool("kv", 2);
        PoolDescriptor overlapping =
                new PoolDescriptor(
                        "kv2",
                        1,
                        pool.address() + 4096,
                        8192,
                        Set.of(Access.REMOTE_WRITE),
                        List.of(new PoolDescriptor.Region(8192, 1)));
        try (TwoNodes nodes = TwoNodes.of(TwoNodes.Transport.VERBS, 2)) {
            long open = Lifetime.openCount();
            for (Hello lie :
                    List.of(
                            hello(nowhere, 256, 0, 4096, List.of(pool, overlapping)),
                            hello(wrongKind, 256, 255, 256, List.of(pool)),
                            hello(nowhere, 1, 0, 256, List.of()))) {
                try (ControlConnection liar =
                        ControlConnection.connect(
                                ControlPeers.loopback(nodes.far().listenPort()),
                                ControlOptions.defaults())) {
                    liar.send(ControlFrame.HELLO, lie.encode());
                    try {
                        liar.receive(ControlFrame.WELCOME);
                    } catch (IOException refused) {
                        assertThat(refused).hasMessageContaining("refused");
                    }
                }
            }
            awaitOpenCount(open);
            assertThat(nodes.far().peers()).isEmpty();
            // It still takes honest ones.
            writeSome(nodes, nodes.source("here", 4096, 1));
        }
    }

    /** The handshake fails at each of its steps, on the side that connects. */
    @Test
    void aListenerThatFailsTheHandshakeLeavesNothingOpen() throws Exception {
        Gid.Address wrongKind = ControlPeers.gid("fe80000000000000deadbeefdeadbeef");
        try (TwoNodes nodes = TwoNodes.of(TwoNodes.Transport.VERBS, 2)) {
            long open = Lifetime.openCount();
            for (int step = 0; step < 4; step++) {
                int stepNow = step;
                try (ServerSocket server = new ServerSocket()) {
                    server.bind(ControlPeers.loopback(0));
                    Thread listener =
                            Thread.startVirtualThread(() -> listen(server, stepNow, wrongKind));
                    assertThatThrownBy(() ->
                                    nodes.near()
                                            .connect(ControlPeers.loopback(server.getLocalPort())))
                            .isInstanceOfAny(IOException.class, VerbsException.class);
                    listener.join();
                }
                awaitOpenCount(open);
            }
            assertThat(nodes.near().peers()).isEmpty();
            assertThat(nodes.nearHasLost()).as("what was never a peer is not lost").isFalse();
        }
    }

    /** The flag alone tells: an address of InfiniBand may look like one of RoCE. */
    @Test
    void aPeerOnInfiniBandIsRefusedByName() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(TwoNodes.Transport.VERBS, 1);
                ControlConnection other =
                        ControlConnection.connect(
                                ControlPeers.loopback(nodes.far().listenPort()),
                                ControlOptions.defaults())) {
            Hello.Rdma rdma = (Hello.Rdma) ControlPeers.hello("ib-node").address();
            Hello.Rdma infiniBand =
                    new Hello.Rdma(
                            false,
                            rdma.gid(),
                            rdma.lid(),
                            rdma.mtuBytes(),
                            rdma.readsAsResponder(),
                            rdma.queuePairs());
            other.send(ControlFrame.HELLO, new Hello("ib-node", 1, infiniBand, List.of()).encode());

            assertThatThrownBy(() -> other.receive(ControlFrame.WELCOME))
                    .isInstanceOf(ControlRefusedException.class)
                    .hasMessageContaining("ib-node is on InfiniBand")
                    .hasMessageContaining("Ethernet (RoCE)");
        }
    }

    @Test
    void aPeerThatSpeaksTcpIsRefusedByName() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(TwoNodes.Transport.VERBS, 1);
                Node tcp = Node.open(NodeOptions.tcp().name("tcp-node"))) {
            assertThatThrownBy(() -> tcp.connect(ControlPeers.loopback(nodes.far().listenPort())))
                    .isInstanceOf(ControlRefusedException.class)
                    .hasMessageContaining("tcp-node speaks tcp and this node verbs");
        }
    }

    private static void listen(ServerSocket server, int step, Gid.Address wrongKind) {
        try (Socket socket = server.accept();
                ControlConnection connection =
                        ControlPeers.over(socket, ControlOptions.defaults())) {
            if (step == 0) {
                return;
            }
            Hello near = Hello.decode(connection.receive(ControlFrame.HELLO).payload());
            PoolDescriptor pool = ControlPeers.pool("kv", 2);
            switch (step) {
                case 1 -> connection.refuse("as meant");
                case 2 ->
                        connection.send(
                                ControlFrame.WELCOME,
                                hello(
                                                ((Hello.Rdma) near.address()).gid(),
                                                2,
                                                1,
                                                1024,
                                                List.of(pool, overlap(pool)))
                                        .encode());
                default ->
                        connection.send(
                                ControlFrame.WELCOME,
                                hello(wrongKind, 2, 1, 1024, List.of(pool)).encode());
            }
            connection.receive(ControlFrame.READY);
        } catch (IOException ended) {
            // The side under test hung up.
        }
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

    private static Hello hello(
            Gid.Address gid, int queuePairs, int reads, int mtu, List<PoolDescriptor> pools) {
        List<Hello.Endpoint> endpoints =
                Stream.generate(() -> new Hello.Endpoint(0xffffff, 0xffffff))
                        .limit(queuePairs)
                        .toList();
        return new Hello(
                "liar", -1, new Hello.Rdma(true, gid, 0xffff, mtu, reads, endpoints), pools);
    }
}
