package dev.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A handle is destroyed once, when no call is under way and no child is open, and never touched
 * afterwards: whichever threads call, close, and close again.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LifetimeTest {
    private static final Runnable NOTHING = () -> {};

    private final Lifetime parent = Lifetime.root(() -> "device d");

    @Test
    void refusesToCloseBeforeItsChildrenAndNamesThem() {
        Lifetime first = parent.child(() -> "queue pair 7");
        Lifetime second = parent.child(() -> "memory region 0x10+5");

        assertThatIllegalStateException()
                .isThrownBy(() -> parent.close(NOTHING))
                .withMessageContaining("device d still has 2 open")
                .withMessageContaining("queue pair 7")
                .withMessageContaining("memory region 0x10+5");

        first.close(NOTHING);
        assertThatIllegalStateException()
                .isThrownBy(() -> parent.close(NOTHING))
                .withMessage("device d still has 1 open: memory region 0x10+5");
        second.close(NOTHING);
        AtomicInteger destroyed = new AtomicInteger();
        parent.close(destroyed::incrementAndGet);
        assertThat(destroyed).hasValue(1);
    }

    @Test
    void staysOpenAfterItRefused() {
        Lifetime child = parent.child(() -> "child");
        assertThatIllegalStateException().isThrownBy(() -> parent.close(NOTHING));

        assertThat(parent.isOpen()).isTrue();
        parent.enter();
        parent.exit();

        child.close(NOTHING);
        parent.close(NOTHING);
    }

    @Test
    void refusesUseAndChildrenOnceClosed() {
        parent.close(NOTHING);

        assertThat(parent.isOpen()).isFalse();
        for (int i = 0; i < 3; i++) {
            assertThatIllegalStateException()
                    .isThrownBy(parent::enter)
                    .withMessage("device d is closed");
        }
        assertThatIllegalStateException().isThrownBy(() -> parent.child(() -> "late"));
    }

    @Test
    void destroysOnceHoweverOftenItIsClosed() {
        AtomicInteger destroyed = new AtomicInteger();

        parent.close(destroyed::incrementAndGet);
        parent.close(destroyed::incrementAndGet);

        assertThat(destroyed).hasValue(1);
    }

    @Test
    void reopensWhenDestroyThrows() {
        AtomicInteger attempts = new AtomicInteger();
        Runnable fails =
                () -> {
                    attempts.incrementAndGet();
                    throw new VerbsException("ibv_destroy_qp", 16, "");
                };

        assertThatThrownBy(() -> parent.close(fails)).isInstanceOf(VerbsException.class);
        assertThat(parent.isOpen()).isTrue();
        parent.enter();
        parent.exit();

        parent.close(attempts::incrementAndGet);
        assertThat(attempts).hasValue(2);
        assertThat(parent.isOpen()).isFalse();
    }

    @Test
    void reopensWhenInterruptThrows() {
        Runnable fails =
                () -> {
                    throw new IllegalArgumentException("wake failed");
                };

        assertThatThrownBy(() -> parent.close(fails, NOTHING)).hasMessage("wake failed");

        assertThat(parent.isOpen()).isTrue();
        parent.close(NOTHING);
        assertThat(parent.isOpen()).isFalse();
    }

    @Test
    void waitsForCallsUnderWayBeforeItDestroys() throws InterruptedException {
        AtomicBoolean destroyed = new AtomicBoolean();
        CountDownLatch interrupted = new CountDownLatch(1);
        parent.enter();

        Thread closer =
                Thread.ofPlatform()
                        .start(() ->
                                parent.close(interrupted::countDown, () -> destroyed.set(true)));
        interrupted.await();

        assertThat(parent.isOpen()).isFalse();
        assertThatIllegalStateException().isThrownBy(parent::enter);
        assertThat(destroyed).isFalse();
        parent.exit();
        closer.join();
        assertThat(destroyed).isTrue();
    }

    /** For the first that uses a ring, whose calls are counted once, and for the others. */
    @Test
    void waitsForCallsThatUseItWhoeverMakesThem() throws InterruptedException {
        Lifetime ring = Lifetime.root(() -> "ring");
        Lifetime first = parent.child(() -> "first");
        Lifetime second = parent.child(() -> "second");
        first.enterUsing(ring);
        second.enterUsing(ring);
        CountDownLatch interrupted = new CountDownLatch(1);
        AtomicBoolean destroyed = new AtomicBoolean();
        Thread closer =
                Thread.ofPlatform()
                        .start(() -> ring.close(interrupted::countDown, () -> destroyed.set(true)));
        await(interrupted);

        for (Lifetime user : List.of(first, second)) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> user.enterUsing(ring))
                    .withMessage("ring is closed");
        }
        awaitParked(closer);
        first.exitUsing(ring);
        awaitParked(closer);
        assertThat(destroyed).isFalse();
        second.exitUsing(ring);
        closer.join();
        assertThat(destroyed).isTrue();

        // Nothing of those calls, nor of those that were refused, is left on the users.
        first.close(NOTHING);
        second.close(NOTHING);
        parent.close(NOTHING);
    }

    @Test
    void theFirstUserIsEnoughToKeepWhatItUses() throws InterruptedException {
        Lifetime ring = Lifetime.root(() -> "ring");
        AtomicBoolean destroyed = new AtomicBoolean();
        parent.enterUsing(ring);
        Thread closer = Thread.ofPlatform().start(() -> ring.close(() -> destroyed.set(true)));

        awaitParked(closer);

        assertThat(destroyed).isFalse();
        parent.exitUsing(ring);
        closer.join();
        assertThat(destroyed).isTrue();
    }

    @Test
    void aClosedUserRefusesAndLeavesNothingOnWhatItWouldUse() {
        Lifetime ring = Lifetime.root(() -> "ring");
        parent.close(NOTHING);

        assertThatIllegalStateException()
                .isThrownBy(() -> parent.enterUsing(ring))
                .withMessage("device d is closed");

        Lifetime other = Lifetime.root(() -> "other");
        other.enterUsing(ring);
        other.exitUsing(ring);
        ring.close(NOTHING);
        other.close(NOTHING);
    }

    @Test
    void secondCloserReturnsOnlyWhenTheHandleIsGone() throws InterruptedException {
        AtomicBoolean destroyed = new AtomicBoolean();
        CountDownLatch destroying = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        Thread first =
                Thread.ofPlatform()
                        .start(() ->
                                parent.close(() -> {
                                    destroying.countDown();
                                    await(mayEnd);
                                    destroyed.set(true);
                                }));
        destroying.await();

        AtomicBoolean sawDestroyed = new AtomicBoolean();
        Thread second =
                Thread.ofPlatform()
                        .start(() -> {
                            parent.close(NOTHING);
                            sawDestroyed.set(destroyed.get());
                        });
        awaitParked(second);
        mayEnd.countDown();
        first.join();
        second.join();

        assertThat(sawDestroyed).isTrue();
    }

    @Test
    void secondCloserTriesItselfWhenTheFirstFails() throws InterruptedException {
        CountDownLatch destroying = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        Thread first =
                Thread.ofPlatform()
                        .uncaughtExceptionHandler((thread, failure) -> {})
                        .start(() ->
                                parent.close(() -> {
                                    destroying.countDown();
                                    await(mayEnd);
                                    throw new IllegalArgumentException();
                                }));
        destroying.await();
        AtomicInteger destroyedBySecond = new AtomicInteger();
        Thread second =
                Thread.ofPlatform().start(() -> parent.close(destroyedBySecond::incrementAndGet));
        awaitParked(second);
        mayEnd.countDown();
        first.join();
        second.join();

        assertThat(destroyedBySecond).hasValue(1);
        assertThat(parent.isOpen()).isFalse();
    }

    @Test
    void closingWithinDestroyDoesNotWaitForItself() {
        parent.close(() -> parent.close(NOTHING));

        assertThat(parent.isOpen()).isFalse();
    }

    @Test
    void childOfCallUnderWayIsKeptThoughClosingHasBegun() throws InterruptedException {
        AtomicInteger destroyed = new AtomicInteger();
        CountDownLatch interrupted = new CountDownLatch(1);
        List<Throwable> refused = new ArrayList<>();
        parent.enter();
        Thread closer =
                Thread.ofPlatform()
                        .uncaughtExceptionHandler((thread, failure) -> refused.add(failure))
                        .start(() ->
                                parent.close(interrupted::countDown, destroyed::incrementAndGet));
        interrupted.await();

        Lifetime child = parent.childOfEntered(() -> "just made");
        parent.exit();
        closer.join();

        assertThat(refused)
                .singleElement()
                .satisfies(f -> assertThat(f).hasMessageContaining("just made"));
        assertThat(destroyed).hasValue(0);
        child.close(NOTHING);
        parent.close(destroyed::incrementAndGet);
        assertThat(destroyed).hasValue(1);
    }

    @Test
    void countsTheOpen() {
        long before = Lifetime.openCount();

        Lifetime child = parent.child(() -> "child");
        assertThat(Lifetime.openCount()).isEqualTo(before + 1);
        assertThatThrownBy(() -> parent.close(NOTHING)).isInstanceOf(IllegalStateException.class);
        assertThat(Lifetime.openCount()).isEqualTo(before + 1);
        child.close(NOTHING);
        child.close(NOTHING);
        assertThat(Lifetime.openCount()).isEqualTo(before);
    }

    /** Many rounds, as each has but one moment in which enter and close can meet. */
    @Test
    void noCallOverlapsDestroyHoweverTheyRace() throws InterruptedException {
        int rounds = 300;
        AtomicInteger overlaps = new AtomicInteger();
        AtomicInteger calls = new AtomicInteger();
        for (int round = 0; round < rounds; round++) {
            Lifetime lifetime = Lifetime.root(() -> "hammered");
            AtomicBoolean freed = new AtomicBoolean();
            AtomicInteger destroyed = new AtomicInteger();
            CountDownLatch start = new CountDownLatch(1);
            CountDownLatch someEntered = new CountDownLatch(1);
            List<Thread> threads = new ArrayList<>();
            Lifetime first = Lifetime.root(() -> "first");
            Lifetime second = Lifetime.root(() -> "second");
            for (Lifetime user : Arrays.asList(null, first, second, first)) {
                threads.add(
                        Thread.ofPlatform()
                                .start(() -> {
                                    await(start);
                                    while (callOnce(lifetime, user, freed, overlaps)) {
                                        calls.incrementAndGet();
                                        someEntered.countDown();
                                    }
                                }));
            }
            for (int i = 0; i < 2; i++) {
                threads.add(
                        Thread.ofPlatform()
                                .start(() -> {
                                    await(someEntered);
                                    lifetime.close(() -> {
                                        freed.set(true);
                                        destroyed.incrementAndGet();
                                    });
                                }));
            }
            start.countDown();
            for (Thread thread : threads) {
                thread.join();
            }
            assertThat(destroyed).hasValue(1);
            first.close(NOTHING);
            second.close(NOTHING);
        }
        assertThat(calls.get()).isGreaterThanOrEqualTo(rounds);
        assertThat(overlaps).hasValue(0);
    }

    /** A child that closes at the same moment is in the way, by its name, or it is not. */
    @Test
    void refusalsNameAChildHoweverItRacesToClose() throws InterruptedException {
        for (int round = 0; round < 2_000; round++) {
            Lifetime owner = Lifetime.root(() -> "owner");
            Lifetime child = owner.child(() -> "child");
            CountDownLatch start = new CountDownLatch(1);
            Thread closer =
                    Thread.ofPlatform()
                            .start(() -> {
                                await(start);
                                child.close(NOTHING);
                            });
            start.countDown();
            while (owner.isOpen()) {
                try {
                    owner.close(NOTHING);
                } catch (IllegalStateException refused) {
                    assertThat(refused).hasMessage("owner still has 1 open: child");
                }
            }
            closer.join();
        }
    }

    /** A call on a lifetime, by itself or by one that uses it. */
    private static boolean callOnce(
            Lifetime lifetime,
            @Nullable Lifetime user,
            AtomicBoolean freed,
            AtomicInteger overlaps) {
        try {
            if (user == null) {
                lifetime.enter();
            } else {
                user.enterUsing(lifetime);
            }
        } catch (IllegalStateException closed) {
            return false;
        }
        try {
            if (freed.get()) {
                overlaps.incrementAndGet();
            }
        } finally {
            if (user == null) {
                lifetime.exit();
            } else {
                user.exitUsing(lifetime);
            }
        }
        return true;
    }

    /** A thread that waits for a close has no other state to be seen by. */
    static void awaitParked(Thread thread) {
        while (thread.getState() != Thread.State.TIMED_WAITING) {
            assertThat(thread.getState()).isNotEqualTo(Thread.State.TERMINATED);
            Thread.onSpinWait();
        }
    }

    static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException interrupted) {
            throw new AssertionError(interrupted);
        }
    }
}
