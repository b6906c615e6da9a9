package dev.verbena.transfer;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.verbena.memory.Pool;
import dev.verbena.memory.RemotePool;
import dev.verbena.verbs.Lifetime;
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
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * A peer that goes or dies, on each transport, ends its transfers, costs nothing that stays, and
 * leaves the node able to work with others and with the same peer once it is back.
 */
abstract class PeerLosses {
    private static final Duration SOON = Duration.ofSeconds(30);

    /**
     * With the short queue below, a transfer of hundreds of steps: there is a middle to fail in.
     */
    private static final int LARGE = 64 << 20;

    private static final int CHUNK = 256 << 10;
    private static final PosterOptions SHORT_QUEUE =
            TwoNodes.posterOptions(Duration.ofSeconds(20)).withDepth(8, 4);

    private final TwoNodes.Transport transport;
    private long openBefore;

    PeerLosses(TwoNodes.Transport transport) {
        this.transport = transport;
    }

    /** The reason that is told of a peer whose own side has closed it. */
    abstract void assertPeerClosed(String reason);

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
        try (TwoNodes nodes = new TwoNodes(transport, o -> o.queuePairs(1).poster(SHORT_QUEUE))) {
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
        try (TwoNodes nodes = new TwoNodes(transport, o -> o.poster(SHORT_QUEUE))) {
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
            assertPeerClosed(nodes.lostByNear());
            nodes.lostByFar();
            writeSome(nodes, here);
        }
    }

    @Test
    void closingANodeEndsItsTransfersAndLeavesItsPoolsFree() throws Exception {
        TwoNodes nodes = new TwoNodes(transport, o -> o.poster(SHORT_QUEUE));
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
        Process child = PeerChild.start(transport, LARGE);
        try (TwoNodes nodes =
                        new TwoNodes(
                                transport,
                                o ->
                                        o.poster(SHORT_QUEUE)
                                                .heartbeat(
                                                        Duration.ofMillis(500),
                                                        Duration.ofSeconds(8)));
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
        try (TwoNodes nodes = TwoNodes.of(transport, 1)) {
            Pool here = nodes.source("here", 4096, 1);
            nodes.target("there", 4096);
            Peer peer = nodes.connect();
            Peer accepted = nodes.accepted();
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
            assertThat(nodes.far().peers()).containsExactly(accepted);
        }
    }

    /** The other side says nothing, and the node does not wait until its handshake is over. */
    @Test
    void aNodeThatClosesEndsTheConnectionsThatItIsMaking() throws Exception {
        try (ServerSocket silent = new ServerSocket()) {
            silent.bind(ControlPeers.loopback(0));
            TwoNodes nodes = TwoNodes.of(transport, 2);
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
        try (TwoNodes nodes = TwoNodes.of(transport, 1)) {
            nodes.near().onPeer(peer -> nodes.near().close());

            Peer peer = nodes.connect();

            assertThat(peer.isOpen()).isFalse();
            nodes.lostByNear();
        }
    }

    @Test
    void listenersOfPeersAreToldOfEachOnce() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(transport, 1)) {
            Queue<Peer> told = new ConcurrentLinkedQueue<>();
            Peer before = nodes.connect();
            nodes.near().onPeer(told::add);
            Peer after = nodes.connect();

            assertThat(told).containsExactly(before, after);
        }
    }

    @Test
    void connectingAndClosingManyTimesLeavesNothingBehind() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(transport, 2)) {
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
        try (TwoNodes nodes = TwoNodes.of(transport, 1)) {
            assertThatExceptionOfType(IOException.class)
                    .isThrownBy(() -> nodes.near().connect("127.0.0.1:" + port))
                    .withMessageContaining(Integer.toString(port));
        }
    }

    static void writeSome(TwoNodes nodes, Pool here) throws Exception {
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

    private static void awaitBytes(Transfer transfer) {
        while (transfer.bytesDone() == 0 && !transfer.isDone()) {
            Thread.onSpinWait();
        }
        assertThat(transfer.isDone()).as("there is a middle").isFalse();
    }

    static void awaitOpenCount(long count) throws InterruptedException {
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
