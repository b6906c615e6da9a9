package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.bindings.Errno;
import dev.verbena.memory.PoolDouble;
import dev.verbena.transfer.PosterRig.Shape;
import dev.verbena.verbs.CompletionStatus;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Any thread may post, wait, make progress, fail and close, from a callback too, and still each
 * transfer ends once and nobody waits for ever. The races are tried many times over, by seeds.
 */
@Timeout(120)
class PosterThreadsTest {
    private static final int THREADS = 8;
    private static final int BLOCKS = 20;

    @Test
    void eightThreadsPostAndWait() throws Exception {
        int rounds = 200;
        try (PosterRig rig = new PosterRig(Shape.of(2)).filled(7)) {
            rig.device.recordPosts(false);
            List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                long base = 8192L * i;
                threads.add(
                        Thread.ofPlatform()
                                .start(() -> {
                                    try {
                                        for (int r = 0; r < rounds; r++) {
                                            TransferBatch batch = batch(rig, base);
                                            rig.write(batch, r).await();
                                            assertThat(rig.moved(batch, r % BLOCKS)).isTrue();
                                        }
                                    } catch (Throwable failure) {
                                        failures.add(failure);
                                    }
                                }));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            assertThat(failures).isEmpty();
        }
    }

    @Test
    void aCallbackMayPostTheNextTransfer() throws Exception {
        int links = 200;
        try (PosterRig rig = new PosterRig(Shape.of(2)).filled(2)) {
            CountDownLatch done = new CountDownLatch(links);
            postNext(rig, done);
            while (done.getCount() > 0) {
                rig.poster.progress();
                assertThat(Thread.currentThread().isInterrupted()).isFalse();
            }
        }
    }

    private static void postNext(PosterRig rig, CountDownLatch links) {
        if (links.getCount() == 0) {
            return;
        }
        rig.write(rig.scattered(3, 16))
                .completion()
                .thenRun(() -> {
                    links.countDown();
                    postNext(rig, links);
                });
    }

    /**
     * The ends of both are found in one turn, and the callback of the first waits for the second,
     * which nobody else would tell.
     */
    @Test
    void aCallbackMayWaitForATransferThatEndedInTheSameTurn() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1))) {
            rig.device.hold();
            Transfer first = rig.write(rig.scattered(2, 16));
            Transfer second = rig.write(rig.scattered(2, 16));
            AtomicBoolean waited = new AtomicBoolean();
            first.completion()
                    .thenRun(() -> {
                        waitFor(second);
                        waited.set(second.isDone());
                    });
            rig.device.release();
            rig.poster.progress();

            assertThat(waited).isTrue();
        }
    }

    @Test
    void aCallbackMayCloseThePoster() {
        for (boolean failing : new boolean[] {false, true}) {
            try (PosterRig rig = new PosterRig(Shape.of(2))) {
                rig.device.hold();
                Transfer first = rig.write(rig.scattered(2, 16));
                Transfer second = rig.write(rig.scattered(2, 16));
                Transfer third = rig.write(rig.scattered(40, 16));
                AtomicBoolean closed = new AtomicBoolean();
                first.completion()
                        .whenComplete((done, failed) -> {
                            rig.poster.close();
                            closed.set(second.isDone() && third.isDone());
                        });
                if (failing) {
                    rig.device.failQueuePair(rig.pairs.get(0), CompletionStatus.REMOTE_ACCESS);
                } else {
                    rig.device.release(4);
                }
                rig.poster.progress();

                assertThat(closed).isTrue();
                assertThat(third.failure()).isNotNull();
            }
        }
    }

    @Test
    void aCallbackOfAFailureMayTryToPostAndIsTurnedAway() {
        try (PosterRig rig = new PosterRig(Shape.of(1))) {
            rig.device.failRequest(0, CompletionStatus.REMOTE_ACCESS);
            List<Throwable> refused = new ArrayList<>();
            Transfer transfer = rig.write(rig.scattered(2, 16));
            transfer.completion()
                    .whenComplete((done, failed) -> {
                        try {
                            rig.write(rig.scattered(1, 16));
                        } catch (IllegalStateException expected) {
                            refused.add(expected);
                        }
                    });
            PosterRig.finish(rig, transfer);

            assertThat(refused).hasSize(1);
        }
    }

    /** Whoever is told of the end may free the memory. */
    @Test
    void aCallbackMayCloseThePool() {
        PosterRig rig = new PosterRig(Shape.of(1));
        rig.device.hold();
        Transfer transfer = rig.write(rig.scattered(2, 16));
        AtomicBoolean closed = new AtomicBoolean();
        transfer.completion()
                .thenRun(() -> {
                    PoolDouble.close(rig.pool);
                    closed.set(true);
                });
        rig.device.release();
        rig.poster.progress();

        assertThat(closed).isTrue();
        assertThatThrownBy(() -> rig.write(rig.scattered(1, 16)))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
        assertThatThrownBy(rig::close).hasMessageContaining("in flight");
    }

    /** Of the thread that adds it, too, if there is nothing left to wait for. */
    @Test
    void aCallbackRunsOnWhicheverThreadFindsTheEndAndWithoutTheLock() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1))) {
            Thread here = Thread.currentThread();
            List<Thread> ran = Collections.synchronizedList(new ArrayList<>());
            Transfer first = rig.write(rig.scattered(2, 16));
            first.completion()
                    .thenRun(() -> {
                        ran.add(Thread.currentThread());
                        // Another thread gets in meanwhile.
                        Thread other = Thread.ofPlatform().start(() -> rig.poster.isOpen());
                        join(other);
                    });
            // Takes completions, and so finds the end.
            rig.write(rig.scattered(2, 16)).cancel("as meant");
            first.completion().thenRun(() -> ran.add(Thread.currentThread()));

            assertThat(ran).containsExactly(here, here);
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void anInterruptEndsTheWaitAndNotTheTransfer() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1))) {
            rig.device.hold();
            Transfer transfer = rig.write(rig.scattered(2, 16));
            CountDownLatch interrupted = new CountDownLatch(1);
            Thread waiter =
                    Thread.ofPlatform()
                            .start(() -> {
                                try {
                                    transfer.await();
                                } catch (InterruptedException e) {
                                    interrupted.countDown();
                                }
                            });
            waiter.interrupt();
            interrupted.await();

            assertThat(transfer.isDone()).isFalse();
            rig.device.release();
            transfer.await();
            waiter.join();
        }
    }

    /** One thread closes, one fails, others post and wait: whatever the order, all ends once. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void racesOfPostingFailingAndClosingEndEachTransferOnce(int queuePairs) throws Exception {
        for (long seed = 0; seed < 150; seed++) {
            Random random = new Random(seed);
            Shape shape =
                    Shape.of(queuePairs)
                            .withDeadlines(Duration.ofSeconds(30), Duration.ofSeconds(20));
            try (PosterRig rig = new PosterRig(shape)) {
                rig.device.recordPosts(false);
                if (random.nextBoolean()) {
                    rig.device.failRequest(
                            random.nextInt(60), CompletionStatus.of(1 + random.nextInt(20)));
                }
                if (random.nextBoolean()) {
                    rig.device.acceptOnly(random.nextInt(4), Errno.ENOMEM);
                }
                List<Ends> ends = Collections.synchronizedList(new ArrayList<>());
                List<Transfer> transfers = Collections.synchronizedList(new ArrayList<>());
                AtomicInteger wrong = new AtomicInteger();
                CountDownLatch start = new CountDownLatch(1);
                List<Thread> threads = new ArrayList<>();
                for (int i = 0; i < 3; i++) {
                    int blocks = 1 + random.nextInt(30);
                    threads.add(
                            Thread.ofVirtual()
                                    .start(() ->
                                            postMany(rig, start, blocks, ends, transfers, wrong)));
                }
                int spin = random.nextInt(20_000);
                boolean close = random.nextBoolean();
                threads.add(
                        Thread.ofPlatform()
                                .start(() -> {
                                    start.countDown();
                                    for (int i = 0; i < spin; i++) {
                                        Thread.onSpinWait();
                                    }
                                    if (close) {
                                        rig.poster.close();
                                    } else {
                                        rig.poster.fail(FailureReason.PEER_LOST, "cut", null);
                                    }
                                }));
                for (Thread thread : threads) {
                    thread.join();
                }
                rig.poster.close();
                assertThat(wrong).as("seed %d", seed).hasValue(0);
                assertThat(transfers).as("seed %d", seed).allMatch(Transfer::isDone);
                assertThat(ends).as("seed %d", seed).allMatch(end -> end.count() == 1);
            }
        }
    }

    private static void postMany(
            PosterRig rig,
            CountDownLatch start,
            int blocks,
            List<Ends> ends,
            List<Transfer> transfers,
            AtomicInteger wrong) {
        try {
            start.await();
            for (int i = 0; i < 10; i++) {
                Transfer transfer = rig.write(rig.scattered(blocks, 16), i);
                transfers.add(transfer);
                ends.add(new Ends(transfer));
                if (i % 3 == 0) {
                    waitFor(transfer);
                    if (!transfer.isDone()) {
                        wrong.incrementAndGet();
                    }
                }
            }
        } catch (IllegalStateException stopped) {
            // As it should be, once the poster has failed.
        } catch (InterruptedException e) {
            wrong.incrementAndGet();
        }
    }

    private static void waitFor(Transfer transfer) {
        try {
            transfer.await();
        } catch (TransferException failed) {
            // It has ended, which is all that is asked.
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static TransferBatch batch(PosterRig rig, long base) {
        TransferBatch batch = new TransferBatch();
        for (int i = 0; i < BLOCKS; i++) {
            rig.add(batch, base + 64L * i, base + 64L * (BLOCKS - 1 - i), 1 + i);
        }
        return batch;
    }
}
