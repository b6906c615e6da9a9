package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.verbena.memory.Pool;
import dev.verbena.memory.RemotePool;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.Lifetime;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Nodes and peers can be closed by anybody, from anywhere, twice at a time: nothing waits for
 * itself, and nothing stays. Over TCP, as what is closed in which order is the same for all.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class NodeClosingTest {
    private static final TwoNodes.Transport TCP = TwoNodes.Transport.TCP;
    private static final Duration SOON = Duration.ofSeconds(30);

    private long openBefore;

    @BeforeEach
    void count() {
        openBefore = Lifetime.openCount();
    }

    /** What closes on a thread of its own may take a moment. */
    @AfterEach
    void nothingStaysOpen() throws InterruptedException {
        PeerLosses.awaitOpenCount(openBefore);
    }

    @Test
    void aSecondCloserWaitsForTheFirst() throws Exception {
        TwoNodes nodes = TwoNodes.of(TCP, 1);
        nodes.connect();
        CountDownLatch closing = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        AtomicBoolean wentOn = new AtomicBoolean();
        nodes.near()
                .onPeerLost((peer, reason) -> {
                    closing.countDown();
                    join(goOn);
                });
        Thread first = Thread.ofPlatform().start(nodes.near()::close);
        closing.await();
        CompletableFuture<Boolean> second = new CompletableFuture<>();
        Thread waiting =
                Thread.ofPlatform()
                        .start(() -> {
                            nodes.near().close();
                            second.complete(wentOn.get());
                        });
        while (waiting.getState() != Thread.State.WAITING && waiting.isAlive()) {
            Thread.onSpinWait();
        }
        assertThat(second).isNotDone();

        wentOn.set(true);
        goOn.countDown();

        assertThat(second.join()).as("returned when the first was done").isTrue();
        first.join();
        nodes.close();
    }

    @Test
    void whatFailsToCloseKeepsNothingElseOpen() throws Exception {
        TwoNodes nodes = TwoNodes.of(TCP, 2);
        Pool held = nodes.target("held", 4096);
        nodes.target("free", 4096);
        nodes.connect();
        nodes.accepted();
        int port = nodes.far().listenPort();
        held.hold();

        assertThatIllegalStateException()
                .isThrownBy(nodes.far()::close)
                .withMessageContaining("pool 'held'");

        assertThat(nodes.far().registry().pools()).containsExactly(held);
        nodes.lostByFar();
        nodes.lostByNear();
        try (ServerSocket again = new ServerSocket()) {
            again.setReuseAddress(true);
            again.bind(ControlPeers.loopback(port));
        }
        nodes.near().close();
        assertThat(Lifetime.openCount()).as("the one region").isEqualTo(openBefore + 1);
        nodes.far().close();
        held.release();
        nodes.far().registry().close();
    }

    @Test
    void aTransferThatEndsMayCloseItsPeer() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(TCP, 2)) {
            Peer peer = nodes.connect();
            CompletableFuture<Void> closed =
                    write(nodes, peer).completion().toCompletableFuture().thenRun(peer::close);

            closed.join();

            assertThat(nodes.lostByNear()).contains("this side closed");
            assertThat(nodes.lostByFar()).isNotNull();
            assertThat(peer.isOpen()).isFalse();
        }
    }

    @Test
    void callbacksOfEveryKindMayCloseTheNode() throws Exception {
        for (String kind : List.of("completion", "immediate", "message", "lost", "peer")) {
            TwoNodes nodes = TwoNodes.of(TCP, 2);
            CountDownLatch returned = new CountDownLatch(1);
            Node closing = kind.equals("completion") ? nodes.near() : nodes.far();
            Runnable close =
                    () -> {
                        closing.close();
                        returned.countDown();
                    };
            nodes.far().onImmediate((peer, immediate) -> close.run());
            nodes.far().onMessage(1, (peer, message) -> close.run());
            if (kind.equals("lost")) {
                nodes.far().onPeerLost((peer, reason) -> close.run());
            }
            if (kind.equals("peer")) {
                nodes.far().onPeer(peer -> close.run());
            }
            Peer peer = nodes.connect();
            switch (kind) {
                case "completion" -> write(nodes, peer).completion().thenRun(close);
                case "immediate" -> peer.write(new TransferBatch(), 1);
                case "message" -> peer.send(1, new byte[1]);
                case "lost" -> peer.close();
                default -> {}
            }

            returned.await();

            nodes.lostByNear();
            nodes.lostByFar();
            nodes.close();
        }
    }

    /** Each of two threads closes one peer, and what ends by that closes the other's. */
    @Test
    void peersMayBeClosedCrosswise() throws Exception {
        for (int round = 0; round < 5; round++) {
            CountDownLatch stuck = new CountDownLatch(1);
            try (TwoNodes one = slow(stuck);
                    TwoNodes other = slow(stuck)) {
                List<Peer> peers =
                        List.of(
                                one.connect(),
                                one.near().connect("127.0.0.1:" + other.far().listenPort()));
                CyclicBarrier both = new CyclicBarrier(2);
                List<Transfer> transfers = new ArrayList<>();
                for (Peer peer : peers) {
                    Transfer last = peer.write(new TransferBatch(), 0);
                    for (int i = 0; i < 5; i++) {
                        last = peer.write(new TransferBatch(), i);
                    }
                    Peer others = peers.get(1 - transfers.size());
                    transfers.add(last);
                    last.completion()
                            .whenComplete((done, failure) -> {
                                await(both);
                                others.close();
                            });
                }

                Thread first = Thread.startVirtualThread(peers.getFirst()::close);
                Thread second = Thread.startVirtualThread(peers.getLast()::close);
                first.join();
                second.join();

                assertThat(transfers)
                        .extracting(transfer -> transfer.failure().reason())
                        .containsOnly(FailureReason.CLOSED);
                assertThat(one.lostByNear()).contains("closed");
                assertThat(one.lostByNear()).contains("closed");
                stuck.countDown();
            }
        }
    }

    /** A second closer in a callback of the first one's closing: it must not wait for that. */
    @Test
    void aListenerOfTheLossMayCloseWhatIsBeingClosed() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(TCP, 1)) {
            Peer peer = nodes.connect();
            CountDownLatch told = new CountDownLatch(1);
            nodes.near()
                    .onPeerLost((lost, reason) -> {
                        lost.close();
                        nodes.near().close();
                        told.countDown();
                    });

            peer.close();

            told.await();
        }
    }

    /** Nodes whose far side takes two immediates and then no more until it is let. */
    private static TwoNodes slow(CountDownLatch stuck) throws Exception {
        PosterOptions options = TwoNodes.posterOptions(SOON).withReceives(1);
        TwoNodes nodes = new TwoNodes(TCP, o -> o.queuePairs(1).poster(options));
        nodes.far().onImmediate((peer, immediate) -> join(stuck));
        return nodes;
    }

    private static Transfer write(TwoNodes nodes, Peer peer) throws Exception {
        Pool here = nodes.source("here", 4096, 1);
        nodes.far().registry().allocate("there", 4096, Access.REMOTE_WRITE);
        RemotePool there = peer.awaitPool("there", SOON);
        return peer.write(new TransferBatch().add(here.address(), there.address(), 4096));
    }

    private static void join(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static void await(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }
}
