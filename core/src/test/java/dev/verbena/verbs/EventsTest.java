package dev.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/**
 * A thread that waits for completions or for events of the device is woken by them, by {@code wake}
 * and by closing. Waits are an hour long, so that only what is tested can end them.
 */
@DeviceTest
class EventsTest {
    private static final long LONG = TimeUnit.HOURS.toNanos(1);

    @Test
    void completionWakesTheWaitingThread() throws InterruptedException {
        try (TwoQueuePairs pairs = TwoQueuePairs.open();
                CompletionChannel channel = pairs.device.createCompletionChannel();
                CompletionQueue queue = channel.createCompletionQueue(16);
                QueuePair far =
                        pairs.domain.createQueuePair(
                                new QueuePairOptions(4, 1, 4, 1), queue, queue)) {
            queue.requestNotify();
            Thread flusher =
                    Thread.ofPlatform()
                            .start(() -> {
                                try (ReceiveRequests receives = new ReceiveRequests(1, 1)) {
                                    far.initialize(1, Set.of());
                                    receives.fill(0, 42, 0);
                                    far.postReceives(receives, 1);
                                    far.stop();
                                }
                            });

            while (!channel.await(LONG)) {
                // Woken by nothing, which is allowed.
            }

            flusher.join();
            assertThat(queue.poll(pairs.completions)).isEqualTo(1);
            assertThat(pairs.completions.workRequestId(0)).isEqualTo(42);
            assertThat(pairs.completions.status(0)).isEqualTo(CompletionStatus.FLUSHED);
            assertThat(channel.await(0)).as("one event was asked for").isFalse();
        }
    }

    @Test
    void nothingWakesWithoutBeingAskedTo() {
        try (TwoQueuePairs pairs = TwoQueuePairs.open();
                CompletionChannel channel = pairs.device.createCompletionChannel();
                CompletionQueue queue = channel.createCompletionQueue(16)) {
            assertThat(channel.await(0)).isFalse();
            assertThat(queue.poll(pairs.completions)).isZero();
            assertThat(channel.await(-5)).isFalse();
        }
    }

    @Test
    void wakeEndsTheNextWaitWithoutAnEvent() {
        try (Device device = TwoQueuePairs.openDevice();
                CompletionChannel channel = device.createCompletionChannel()) {
            channel.wake();
            channel.wake();

            assertThat(channel.await(LONG)).isFalse();
            channel.wake();
            assertThat(channel.await(LONG)).isFalse();
        }
    }

    @Test
    void closingAChannelEndsTheWaitOfAnotherThread() throws InterruptedException {
        try (Device device = TwoQueuePairs.openDevice()) {
            CompletionChannel channel = device.createCompletionChannel();
            Thread waiter = Thread.ofPlatform().start(() -> awaitUntilClosed(channel));
            awaitWaiting(channel);

            channel.close();
            waiter.join();
        }
    }

    /** Two would take each other's wake-up, and close would wait an hour for the second. */
    @Test
    void onlyOneThreadWaits() throws InterruptedException {
        try (Device device = TwoQueuePairs.openDevice()) {
            CompletionChannel channel = device.createCompletionChannel();
            Thread waiter = Thread.ofPlatform().start(() -> awaitUntilClosed(channel));
            awaitWaiting(channel);

            assertThatIllegalStateException()
                    .isThrownBy(() -> channel.await(LONG))
                    .withMessageContaining("another thread waits");

            channel.close();
            waiter.join();
        }
    }

    @Test
    void queueThatOverflowsIsReported() {
        try (TwoQueuePairs pairs = TwoQueuePairs.open();
                AsyncEvents events = pairs.device.asyncEvents();
                CompletionQueue small = pairs.device.createCompletionQueue(1);
                QueuePair pair =
                        pairs.domain.createQueuePair(
                                new QueuePairOptions(64, 1, 1, 1), small, small)) {
            pair.initialize(1, Set.of());
            pair.stop();
            for (int slot = 0; slot < 64; slot++) {
                pairs.write(slot, 0, 0, 8, true);
            }
            pair.post(pairs.ring, 0, 64);

            AsyncEvent event = events.await(LONG);
            while (event == null || event.subject() != AsyncEvent.Subject.COMPLETION_QUEUE) {
                event = events.await(LONG);
            }

            assertThat(event.name()).isNotBlank();
            assertThat(event.isFailure()).isTrue();
        }
    }

    @Test
    void closingEventsEndsTheWaitOfAnotherThread() throws InterruptedException {
        try (Device device = TwoQueuePairs.openDevice()) {
            AsyncEvents events = device.asyncEvents();
            CountDownLatch begun = new CountDownLatch(1);
            AtomicReference<Throwable> end = new AtomicReference<>();
            Thread waiter =
                    Thread.ofPlatform()
                            .start(() -> {
                                begun.countDown();
                                try {
                                    while (true) {
                                        events.await(LONG);
                                    }
                                } catch (IllegalStateException closed) {
                                    end.set(closed);
                                }
                            });
            begun.await();

            events.close();
            events.close();
            waiter.join();

            assertThat(end.get()).hasMessageContaining("is closed");
            assertThatIllegalStateException().isThrownBy(() -> events.await(0));
        }
    }

    private static void awaitUntilClosed(CompletionChannel channel) {
        while (true) {
            try {
                channel.await(LONG);
            } catch (IllegalStateException refused) {
                if (String.valueOf(refused.getMessage()).endsWith("is closed")) {
                    return;
                }
                // The other thread looked in; it is gone at once.
                Thread.yield();
            }
        }
    }

    /** Until the waiting thread is in, a wait of no length is taken and brings nothing. */
    private static void awaitWaiting(CompletionChannel channel) {
        while (true) {
            try {
                channel.await(0);
                Thread.yield();
            } catch (IllegalStateException another) {
                return;
            }
        }
    }
}
