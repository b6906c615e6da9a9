package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.transfer.PosterRig.Shape;
import dev.verbena.verbs.CompletionEvents;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * An event wakes the progress thread for those who need it: callers who sleep, and callbacks. A
 * caller who polls finds the completions by itself, and pays for no event.
 */
@Timeout(60)
class PosterEventsTest {
    /** A thread that looks in without an event does so this soon, and at least that often. */
    private static final Duration TICK = Duration.ofMillis(1);

    private static final Duration LONGEST_TICK = Duration.ofMillis(8);

    private final SteppedEvents channel = new SteppedEvents();
    private final ProgressThread thread = new ProgressThread("progress under test", channel);
    private final PosterRig rig = new PosterRig(Shape.of(1));

    @BeforeEach
    void watch() throws InterruptedException {
        channel.nextSleep();
        thread.add(rig.poster);
        channel.nextSleep();
    }

    @AfterEach
    void close() {
        thread.close();
        rig.close();
    }

    @Test
    void whileNobodyPollsTheNextCompletionGivesAnEvent() throws Exception {
        assertThat(rig.eventsAskedFor).hasValue(1);

        channel.wake();

        assertThat(channel.nextSleep()).isGreaterThan(TICK);
        assertThat(rig.eventsAskedFor).hasValue(2);
    }

    @Test
    void whoSpinsForOneTransferAfterAnotherPaysForNoEvents() throws Exception {
        List<Duration> ticks = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            ticks.add(sleepAfterSpin());
        }
        assertThat(rig.eventsAskedFor).hasValue(1);
        assertThat(ticks).startsWith(TICK).isSorted().endsWith(LONGEST_TICK, LONGEST_TICK);

        channel.wake();

        assertThat(channel.nextSleep()).isGreaterThan(LONGEST_TICK);
        assertThat(rig.eventsAskedFor).hasValue(2);
        assertThat(sleepAfterSpin()).isEqualTo(TICK);
    }

    private Duration sleepAfterSpin() throws InterruptedException {
        rig.write(rig.scattered(2, 16)).await();
        channel.wake();
        return channel.nextSleep();
    }

    @Test
    void whoPollsATransferPaysForNoEvents() throws Exception {
        rig.device.hold();
        Transfer transfer = rig.write(rig.scattered(2, 16));
        assertThat(transfer.poll()).isFalse();
        channel.wake();

        assertThat(channel.nextSleep()).isLessThanOrEqualTo(TICK);
        assertThat(rig.eventsAskedFor).hasValue(1);
        rig.device.release();
        transfer.await();
    }

    /** The thread sleeps without an event to come, since somebody has polled just before. */
    @Test
    void whoGoesToSleepAsksForAnEventFirst() throws Exception {
        rig.write(rig.scattered(2, 16)).await();
        channel.wake();
        channel.nextSleep();
        rig.device.hold();
        Transfer transfer = rig.write(rig.scattered(2, 16));
        Thread waiter = Thread.ofPlatform().start(() -> waitFor(transfer));
        while (rig.eventsAskedFor.get() == 1) {
            Thread.onSpinWait();
        }

        // And as long as it sleeps, whoever else polls, the thread asks as well.
        assertThat(transfer.poll()).isFalse();
        channel.wake();
        assertThat(channel.nextSleep()).isGreaterThan(TICK);
        assertThat(rig.eventsAskedFor.get()).isGreaterThan(2);
        rig.device.release();
        waiter.join();
        assertThat(transfer.isDone()).isTrue();
    }

    @Test
    void whoCannotAskForAnEventHearsThatTheDeviceFailed() {
        rig.device.hold();
        Transfer transfer = rig.write(rig.scattered(2, 16));
        rig.eventsRefused = true;

        assertThatThrownBy(transfer::await)
                .isInstanceOfSatisfying(
                        TransferException.class,
                        failed -> assertThat(failed.reason()).isEqualTo(FailureReason.DEVICE))
                .hasMessageContaining("ibv_req_notify_cq failed: EIO");
    }

    @Test
    void whoPollsForOnePeerKeepsNoEventsFromAnother() throws Exception {
        try (PosterRig other = new PosterRig(Shape.of(1))) {
            thread.add(other.poster);
            channel.nextSleep();
            rig.write(rig.scattered(2, 16)).await();
            int asked = rig.eventsAskedFor.get();
            int askedForOther = other.eventsAskedFor.get();
            channel.wake();
            channel.nextSleep();

            assertThat(rig.eventsAskedFor).hasValue(asked);
            assertThat(other.eventsAskedFor).hasValue(askedForOther + 1);
            thread.remove(other.poster);
        }
    }

    private static void waitFor(Transfer transfer) {
        try {
            transfer.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Where the thread sleeps until the test wakes it, however long it meant to. */
    private static final class SteppedEvents implements CompletionEvents {
        private final BlockingQueue<Duration> sleeps = new LinkedBlockingQueue<>();
        private final Semaphore steps = new Semaphore(0);

        /** Waits until the thread goes to sleep once more, and says for how long at most. */
        Duration nextSleep() throws InterruptedException {
            return sleeps.take();
        }

        @Override
        public boolean await(long timeoutNanos) {
            sleeps.add(Duration.ofNanos(timeoutNanos));
            steps.acquireUninterruptibly();
            return true;
        }

        @Override
        public void wake() {
            steps.release();
        }

        @Override
        public void close() {}
    }
}
