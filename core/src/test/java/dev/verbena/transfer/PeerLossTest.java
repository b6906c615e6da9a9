package dev.verbena.transfer;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.verbena.memory.Pool;
import dev.verbena.memory.PoolDescriptor;
import dev.verbena.memory.RemotePool;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.DeviceTest;
import dev.verbena.verbs.Gid;
import dev.verbena.verbs.Lifetime;
import dev.verbena.verbs.VerbsException;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * A peer that goes, dies or lies ends its transfers, costs nothing that stays, and leaves the node
 * able to work with others and with the same peer once it is back.
 */
@DeviceTest
class PeerLossTest {
    private static final Duration SOON = Duration.ofSeconds(30);

    /**
     * With the short queue below, a transfer of hundreds of steps: there is a middle to fail in.
     */
    private static final int LARGE = 64 << 20;

    private static final int CHUNK = 256 << 10;
    private static final PosterOptions SHORT_QUEUE =
            TwoNodes.posterOptions(Duration.ofSeconds(20)).withDepth(8, 4);

    private long openBefore;

    @BeforeEach
    void count() {
        openBefore = Lifetime.openCount();
    }

    @AfterEach
    void nothingStaysOpen() {
        assertThat(Lifetime.openCount()).isEqualTo(openBefore);
    }

    @Test
    void aPoolThatItsOwnerClosesMidwayFailsTheTransferAndTheNextConnectionWorks() throws Exception {
        try (TwoNodes nodes = new TwoNodes(o -> o.queuePairs(1).poster(SHORT_QUEUE))) {
            Pool here = nodes.source("here", LARGE, 1);
            Pool there = nodes.target("there", LARGE);
            Peer peer = nodes.connect();
            TransferBatch batch = chunks(here, peer.awaitPool("there", SOON));
            Transfer transfer = peer.write(batch);
            awaitBytes(transfer);
            there.close();

            TransferException failure =
                    catchThrowableOfType(TransferException.class, transfer::await);

            // A race between two honest causes: the owner's device refuses the request and stops
            // its queue pair, so that its node says goodbye over TCP, which now and then is here
            // before the device's answer.
            if (failure.reason() == FailureReason.PEER_LOST) {
                assertThat(failure).hasMessageContaining("the queue pair stopped");
            } else {
                assertThat(failure.reason()).isEqualTo(FailureReason.WORK_REQUEST);
                assertThat(failure).hasMessageContaining("REMOTE_ACCESS");
            }
            assertThat(failure.outcome(0)).isEqualTo(BlockOutcome.DONE);
            assertThat(failure.outcome(batch.size() - 1)).isEqualTo(BlockOutcome.NOT_DONE);
            nodes.lostByNear();
            nodes.lostByFar();
            assertThatIllegalStateException().isThrownBy(() -> peer.write(batch));
            assertThat(peer.isOpen()).isFalse();
            writeSome(nodes, here);
        }
    }

    @Test
    void aPeerThatClosesEndsTheTransferAndMayComeBack() throws Exception {
        try (TwoNodes nodes = new TwoNodes(o -> o.poster(SHORT_QUEUE))) {
            Pool here = nodes.source("here", LARGE, 2);
            nodes.target("there", LARGE);
            Peer peer = nodes.connect();
            Transfer transfer = peer.write(chunks(here, peer.awaitPool("there", SOON)), 7);
            awaitBytes(transfer);

            nodes.accepted().close();

            TransferException failure =
                    catchThrowableOfType(TransferException.class, transfer::await);
            assertThat(failure.reason()).isEqualTo(FailureReason.PEER_LOST);
            assertThat(failure.reason().retryHelps()).isTrue();
            assertThat(nodes.lostByNear()).contains("goodbye");
            nodes.lostByFar();
            writeSome(nodes, here);
        }
    }

    @Test
    void closingANodeEndsItsTransfersAndLeavesItsPoolsFree() throws Exception {
        TwoNodes nodes = new TwoNodes(o -> o.poster(SHORT_QUEUE));
        Pool here = nodes.source("here", LARGE, 3);
        nodes.target("there", LARGE);
        Peer peer = nodes.connect();
        Transfer transfer = peer.write(chunks(here, peer.awaitPool("there", SOON)));

        nodes.near().close();

        assertThat(transfer.isDone()).isTrue();
        assertThat(transfer.failure().reason()).isEqualTo(FailureReason.CLOSED);
        assertThatIllegalStateException().isThrownBy(nodes::connect);
        nodes.close();
    }

    @Test
    void aPeerThatIsKilledFailsTheTransferAndNoOtherPeer() throws Exception {
        Process child = PeerChild.start(LARGE);
        try (TwoNodes nodes =
                        new TwoNodes(o ->
                                o.poster(SHORT_QUEUE)
                                        .heartbeat(Duration.ofMillis(500), Duration.ofSeconds(8)));
                BufferedReader output = child.inputReader()) {
            Pool here = nodes.source("here", LARGE, 4);
            nodes.target("there", 4096);
            Peer other = nodes.connect();
            Peer peer = nodes.near().connect("127.0.0.1:" + output.readLine());
            Transfer transfer = peer.write(chunks(here, peer.awaitPool("there", SOON)));
            awaitBytes(transfer);

            child.destroyForcibly().waitFor();

            TransferException failure =
                    catchThrowableOfType(TransferException.class, transfer::await);
            // Its end of the connection breaks, or its device no longer answers.
            assertThat(failure.reason()).isEqualTo(FailureReason.PEER_LOST);
            nodes.lostByNear();
            assertThat(other.isOpen()).isTrue();
            RemotePool remote = other.awaitPool("there", SOON);
            other.write(new TransferBatch().add(here.address(), remote.address(), 4096)).await();
        } finally {
            child.destroyForcibly().waitFor();
        }
    }

    @Test
    void garbageOnTheControlPortDisturbsNobody() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(1)) {
            Pool here = nodes.source("here", 4096, 1);
            nodes.target("there", 4096);
            Peer peer = nodes.connect();
            RemotePool remote = peer.awaitPool("there", SOON);
            for (String garbage : List.of("GET / HTTP/1.1\r\n\r\n", "\u0001\u0002", "VRBN")) {
                try (Socket socket = socketTo(nodes.far())) {
                    socket.getOutputStream().write(garbage.getBytes(US_ASCII));
                    socket.shutdownOutput();
                    socket.getInputStream().readAllBytes();
                } catch (IOException cutOff) {
                    // As good an answer as any.
                }
                peer.write(new TransferBatch().add(here.address(), remote.address(), 64)).await();
            }
            assertThat(nodes.far().peers()).hasSize(1);
        }
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
        try (TwoNodes nodes = TwoNodes.of(2)) {
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
        try (TwoNodes nodes = TwoNodes.of(2)) {
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
                            .isInstanceOfAny(
                                    IOException.class,
                                    IllegalArgumentException.class,
                                    VerbsException.class);
                    listener.join();
                }
                awaitOpenCount(open);
            }
            assertThat(nodes.near().peers()).isEmpty();
            assertThat(nodes.nearHasLost()).as("what was never a peer is not lost").isFalse();
        }
    }

    /** The other side says nothing, and the node does not wait until its handshake is over. */
    @Test
    void aNodeThatClosesEndsTheConnectionsThatItIsMaking() throws Exception {
        try (ServerSocket silent = new ServerSocket()) {
            silent.bind(ControlPeers.loopback(0));
            TwoNodes nodes = TwoNodes.of(2);
            CompletableFuture<Throwable> failure = new CompletableFuture<>();
            Thread.startVirtualThread(() ->
                    failure.complete(
                            catchThrowable(() ->
                                    nodes.near()
                                            .connect(
                                                    ControlPeers.loopback(
                                                            silent.getLocalPort())))));
            try (Socket socket = silent.accept()) {
                // Its hello has come, so its queue pairs are there.
                assertThat(socket.getInputStream().read()).isNotNegative();

                nodes.close();

                assertThat(failure.join())
                        .isInstanceOf(IOException.class)
                        .hasMessageContaining("closing");
            }
        }
    }

    @Test
    void aListenerOfPeersMayCloseTheNode() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(1)) {
            nodes.near().onPeer(peer -> nodes.near().close());

            Peer peer = nodes.connect();

            assertThat(peer.isOpen()).isFalse();
            nodes.lostByNear();
        }
    }

    @Test
    void listenersOfPeersAreToldOfEachOnce() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(1)) {
            Queue<Peer> told = new ConcurrentLinkedQueue<>();
            Peer before = nodes.connect();
            nodes.near().onPeer(told::add);
            Peer after = nodes.connect();

            assertThat(told).containsExactly(before, after);
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

    @Test
    void connectingAndClosingManyTimesLeavesNothingBehind() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(2)) {
            nodes.target("there", 4096);
            Pool here = nodes.source("here", 4096, 1);
            rounds(nodes, here, 4);
            long open = Lifetime.openCount();
            long files = files();
            int threads = platformThreads();

            rounds(nodes, here, 10);

            awaitOpenCount(open);
            assertThat(files()).isLessThanOrEqualTo(files + 2);
            assertThat(platformThreads()).isLessThanOrEqualTo(threads + 2);
        }
    }

    private static void rounds(TwoNodes nodes, Pool here, int rounds) throws Exception {
        for (int round = 0; round < rounds; round++) {
            Peer peer = nodes.connect();
            Peer back = nodes.accepted();
            RemotePool remote = peer.awaitPool("there", SOON);
            peer.write(new TransferBatch().add(here.address(), remote.address(), 4096), round)
                    .await();
            (round % 2 == 0 ? peer : back).close();
            nodes.lostByNear();
            nodes.lostByFar();
        }
    }

    @Test
    void anUnreachableAddressIsAnErrorThatNamesIt() throws Exception {
        int port;
        try (ServerSocket closed = new ServerSocket(0)) {
            port = closed.getLocalPort();
        }
        try (TwoNodes nodes = TwoNodes.of(1)) {
            assertThatExceptionOfType(IOException.class)
                    .isThrownBy(() -> nodes.near().connect("127.0.0.1:" + port))
                    .withMessageContaining(Integer.toString(port));
        }
    }

    private static void writeSome(TwoNodes nodes, Pool here) throws Exception {
        Pool there = nodes.target("again", 4096);
        Peer peer = nodes.connect();
        RemotePool remote = peer.awaitPool("again", SOON);
        TransferBatch batch = new TransferBatch().add(here.address(), remote.address(), 4096);
        peer.write(batch).await();
        TwoNodes.assertSame(batch, here, there);
    }

    private static TransferBatch chunks(Pool here, RemotePool there) {
        TransferBatch batch = new TransferBatch();
        // From back to front, so that no two are merged.
        for (long at = here.lengthBytes() - CHUNK; at >= 0; at -= CHUNK) {
            batch.add(here.address() + at, there.address() + at, CHUNK);
        }
        return batch;
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

    private static void awaitBytes(Transfer transfer) {
        while (transfer.bytesDone() == 0 && !transfer.isDone()) {
            Thread.onSpinWait();
        }
        assertThat(transfer.isDone()).as("there is a middle").isFalse();
    }

    private static void awaitOpenCount(long count) throws InterruptedException {
        for (int i = 0; i < 3000 && Lifetime.openCount() > count; i++) {
            Thread.sleep(10);
        }
        assertThat(Lifetime.openCount()).isEqualTo(count);
    }

    private static Socket socketTo(Node node) throws IOException {
        return new Socket(InetAddress.getLoopbackAddress(), node.listenPort());
    }

    private static long files() throws IOException {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            return open.count();
        }
    }

    private static int platformThreads() {
        return Thread.getAllStackTraces().size();
    }
}
