package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.verbs.Access;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What listeners do, or fail to, is their own affair. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class NodeListenersTest {
    private static final TwoNodes.Transport TCP = TwoNodes.Transport.TCP;

    @Test
    void aListenerOfPeersThatThrowsCostsNothing() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(TCP, 1)) {
            Queue<String> told = new ConcurrentLinkedQueue<>();
            for (Node node : List.of(nodes.near(), nodes.far())) {
                node.onPeer(peer -> {
                    throw new IllegalStateException("a listener that fails, as meant");
                });
                node.onPeer(peer -> {
                    throw new AssertionError("an error in a listener, as meant");
                });
                node.onPeer(peer -> told.add(peer.name()));
            }

            Peer peer = nodes.connect();
            Peer back = nodes.accepted();
            while (told.size() < 2) {
                Thread.onSpinWait();
            }

            assertThat(told).containsExactlyInAnyOrder("near", "far");
            peer.write(new TransferBatch(), 5).await();
            assertThat(nodes.immediate()).isEqualTo(new TwoNodes.Immediate(back, 5));
            nodes.far()
                    .onPeer(late -> {
                        throw new IllegalStateException("a late listener that fails, as meant");
                    });
            assertThat(back.isOpen()).isTrue();
        }
    }

    /** More peers than there is room for handshakes. */
    @Test
    void aListenerOfPeersThatBlocksKeepsNobodyOut() throws Exception {
        int peers = ControlListener.MAX_HANDSHAKES + 6;
        CountDownLatch goOn = new CountDownLatch(1);
        try (TwoNodes nodes = TwoNodes.of(TCP, 1)) {
            nodes.far()
                    .onPeer(peer -> {
                        try {
                            goOn.await();
                        } catch (InterruptedException e) {
                            throw new AssertionError(e);
                        }
                    });
            List<Peer> connected = new ArrayList<>();
            for (int i = 0; i < peers; i++) {
                connected.add(nodes.connect());
                nodes.accepted();
            }

            assertThat(nodes.far().peers()).hasSize(peers);
            goOn.countDown();
            assertThat(connected).allMatch(Peer::isOpen);
        }
    }

    @Test
    void aTimeOutOfCenturiesIsForEver() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(TCP, 1)) {
            Peer peer = nodes.connect();
            CompletableFuture<String> found = new CompletableFuture<>();
            Thread.startVirtualThread(() -> {
                try {
                    Duration longest = Duration.ofSeconds(Long.MAX_VALUE);
                    found.complete(peer.awaitPool("late", longest).name());
                } catch (RuntimeException | InterruptedException failure) {
                    found.completeExceptionally(failure);
                }
            });

            nodes.far().registry().allocate("late", 64, Access.REMOTE_WRITE);

            assertThat(found.join()).isEqualTo("late");
        }
    }
}
