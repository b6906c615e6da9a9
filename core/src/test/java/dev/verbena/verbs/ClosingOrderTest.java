package dev.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/**
 * Objects close in one order only, and say what is in the way. What cannot be made leaves nothing
 * behind, and closing while other threads use an object ends their use, not the process.
 */
@DeviceTest
class ClosingOrderTest {
    private static final QueuePairOptions SMALL = new QueuePairOptions(16, 1, 1, 1);

    @Test
    void everyParentNamesWhatKeepsItOpen() {
        long before = Lifetime.openCount();
        Device device = TwoQueuePairs.openDevice();
        ProtectionDomain domain = device.allocateProtectionDomain();
        CompletionChannel channel = device.createCompletionChannel();
        CompletionQueue queue = channel.createCompletionQueue(16);
        QueuePair pair = domain.createQueuePair(SMALL, queue, queue);

        assertThatIllegalStateException()
                .isThrownBy(device::close)
                .withMessageContaining("protection domain of " + device.name())
                .withMessageContaining("completion channel of " + device.name());
        assertThatIllegalStateException()
                .isThrownBy(domain::close)
                .withMessageContaining("queue pair " + pair.number());
        assertThatIllegalStateException()
                .isThrownBy(channel::close)
                .withMessageContaining("completion queue of " + device.name());
        assertThatIllegalStateException()
                .isThrownBy(queue::close)
                .withMessageContaining("queue pair (send)")
                .withMessageContaining("queue pair (receive)");

        pair.close();
        queue.close();
        channel.close();
        domain.close();
        device.close();
        assertThat(Lifetime.openCount()).isEqualTo(before);
    }

    @Test
    void refusedQueuePairsLeaveNothingBehind() {
        long before = Lifetime.openCount();
        try (Device device = TwoQueuePairs.openDevice();
                Device again = TwoQueuePairs.openDevice();
                ProtectionDomain domain = device.allocateProtectionDomain();
                CompletionQueue open = device.createCompletionQueue(16);
                CompletionQueue foreign = again.createCompletionQueue(16)) {
            CompletionQueue closed = device.createCompletionQueue(16);
            closed.close();
            ProtectionDomain closedDomain = device.allocateProtectionDomain();
            closedDomain.close();

            assertThatIllegalStateException()
                    .isThrownBy(() -> domain.createQueuePair(SMALL, open, closed));
            assertThatIllegalStateException()
                    .isThrownBy(() -> domain.createQueuePair(SMALL, closed, open));
            assertThatIllegalStateException()
                    .isThrownBy(() -> closedDomain.createQueuePair(SMALL, open, open));
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> domain.createQueuePair(SMALL, foreign, open))
                    .withMessageContaining("same open device");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> domain.createQueuePair(SMALL, open, foreign));
        }
        assertThat(Lifetime.openCount()).isEqualTo(before);
    }

    /** The native channel is freed by then: to reach for it would be to read freed memory. */
    @Test
    void closedChannelMakesNoQueues() {
        long before = Lifetime.openCount();
        try (Device device = TwoQueuePairs.openDevice()) {
            CompletionChannel channel = device.createCompletionChannel();
            channel.close();
            channel.close();

            assertThatIllegalStateException()
                    .isThrownBy(() -> channel.createCompletionQueue(4))
                    .withMessageContaining("closed");
            assertThatIllegalStateException().isThrownBy(channel::wake);
            assertThatIllegalStateException().isThrownBy(() -> channel.await(0));
        }
        assertThat(Lifetime.openCount()).isEqualTo(before);
    }

    @Test
    void closingAQueueEndsThePollingOfAnotherThread() throws InterruptedException {
        try (Device device = TwoQueuePairs.openDevice()) {
            CompletionQueue queue = device.createCompletionQueue(16);
            CountDownLatch polling = new CountDownLatch(3);
            Thread poller =
                    Thread.ofPlatform()
                            .start(() -> {
                                try (WorkCompletions room = new WorkCompletions(4)) {
                                    while (true) {
                                        queue.poll(room);
                                        polling.countDown();
                                    }
                                } catch (IllegalStateException closed) {
                                    // The end that is waited for.
                                }
                            });
            polling.await();

            queue.close();
            poller.join();
        }
    }

    @Test
    void closingAQueuePairEndsThePostingOfAnotherThread() throws InterruptedException {
        try (TwoQueuePairs pairs = TwoQueuePairs.open()) {
            CountDownLatch posting = new CountDownLatch(3);
            for (int slot = 0; slot < 4; slot++) {
                pairs.write(slot, 0, 0, 8, false);
            }
            Thread poster =
                    Thread.ofPlatform()
                            .start(() -> {
                                try {
                                    while (true) {
                                        pairs.near.post(pairs.ring, 0, 4);
                                        posting.countDown();
                                    }
                                } catch (IllegalStateException closed) {
                                    // The end that is waited for.
                                }
                            });
            posting.await();

            pairs.near.close();
            poster.join();
        }
    }

    /** A region made while its domain closes is either refused or keeps the domain open. */
    @Test
    void registeringAndClosingADomainRaceWithoutLosingARegion() throws InterruptedException {
        long before = Lifetime.openCount();
        try (Device device = TwoQueuePairs.openDevice();
                Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(4096, 4096);
            for (int round = 0; round < 40; round++) {
                ProtectionDomain domain = device.allocateProtectionDomain();
                List<MemoryRegion> regions = new ArrayList<>();
                CountDownLatch some = new CountDownLatch(1 + round % 3);
                Thread registrar =
                        Thread.ofPlatform()
                                .start(() -> {
                                    try {
                                        for (int i = 0; i < 20; i++) {
                                            MemoryRegion region = domain.register(memory, Set.of());
                                            region.close();
                                            some.countDown();
                                        }
                                        regions.add(domain.register(memory, Set.of()));
                                    } catch (IllegalStateException closed) {
                                        some.countDown();
                                    }
                                });
                some.await();
                boolean closed = false;
                try {
                    domain.close();
                    closed = true;
                } catch (IllegalStateException children) {
                    assertThat(children).hasMessageContaining("memory region");
                }
                registrar.join();
                regions.forEach(MemoryRegion::close);
                if (!closed) {
                    domain.close();
                }
            }
        }
        assertThat(Lifetime.openCount()).isEqualTo(before);
    }
}
