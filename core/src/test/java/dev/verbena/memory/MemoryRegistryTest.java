package dev.verbena.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.bindings.Errno;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.Device;
import dev.verbena.verbs.DeviceTest;
import dev.verbena.verbs.Lifetime;
import dev.verbena.verbs.ProtectionDomain;
import dev.verbena.verbs.TwoQueuePairs;
import dev.verbena.verbs.VerbsException;
import java.io.File;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * A name stands for one range, a range is registered once, memory stays registered for as long as a
 * pool or a transfer needs it and no longer, and a failure leaves everything as it was. Regions of
 * one page, as the guest has little memory.
 */
@DeviceTest
class MemoryRegistryTest {
    private static final int PAGE = 4096;
    private static final long SEED = 20260103;

    private final long openBefore = Lifetime.openCount();
    private final Device device = TwoQueuePairs.openDevice();
    private final ProtectionDomain domain = device.allocateProtectionDomain();
    private final MemoryRegistry registry =
            new MemoryRegistry(domain, new RegistryOptions(PAGE, 3));
    private final Arena arena = Arena.ofShared();
    private final MemorySegment memory = arena.allocate(64 * PAGE, PAGE);

    @AfterEach
    void closesWithoutLeavingAnything() {
        registry.close();
        domain.close();
        device.close();
        arena.close();
        assertThat(Lifetime.openCount()).isEqualTo(openBefore);
    }

    @Test
    void splitsLongPoolsIntoRegions() {
        MemorySegment segment = memory.asSlice(0, 3 * PAGE + 1000);

        Pool pool = registry.register("kv", segment, Access.REMOTE_WRITE);

        PoolDescriptor descriptor = pool.descriptor();
        assertThat(descriptor.regions())
                .extracting(PoolDescriptor.Region::lengthBytes)
                .containsExactly((long) PAGE, (long) PAGE, (long) PAGE, 1000L);
        assertThat(descriptor.regions())
                .extracting(PoolDescriptor.Region::remoteKey)
                .doesNotHaveDuplicates();
        AddressMap<Pool> map = registry.addressMap();
        assertThat(map.size()).isEqualTo(4);
        assertThat(map.covers(0, segment.address(), segment.byteSize())).isTrue();
        assertThat(map.covers(0, segment.address(), segment.byteSize() + 1)).isFalse();
        assertThat(map.owner(map.find(segment.address() + 2 * PAGE))).isSameAs(pool);
        assertThat(registry.registeredBytes()).isEqualTo(segment.byteSize());
    }

    @Test
    void tellsWhatAPoolIs() {
        MemorySegment segment = memory.asSlice(PAGE, 100);

        Pool pool = registry.register("aux", segment, Access.REMOTE_READ);

        assertThat(pool.name()).isEqualTo("aux");
        assertThat(pool.address()).isEqualTo(segment.address());
        assertThat(pool.lengthBytes()).isEqualTo(100);
        assertThat(pool.address(40, 60)).isEqualTo(segment.address() + 40);
        assertThatThrownBy(() -> pool.address(40, 61))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThat(pool.segment()).isSameAs(segment);
        assertThat(pool.access()).containsExactly(Access.REMOTE_READ);
        assertThat(registry.find("aux")).containsSame(pool);
        assertThat(registry.pools()).containsExactly(pool);
        assertThat(registry.find("other")).isEmpty();
    }

    @Test
    void offersPeersOnlyWhatGrantsRemoteAccess() {
        registry.register("local", memory.asSlice(0, PAGE));
        registry.register("staging", memory.asSlice(PAGE, PAGE), Access.LOCAL_WRITE);
        Pool kv = registry.register("kv", memory.asSlice(2 * PAGE, PAGE), Access.REMOTE_WRITE);

        assertThat(registry.descriptors()).containsExactly(kv.descriptor());
    }

    @Test
    void sameNameAndRangeIsTheSamePoolClosedAsOften() {
        MemorySegment segment = memory.asSlice(0, PAGE);
        Pool first = registry.register("kv", segment, Access.REMOTE_WRITE);

        assertThat(registry.register("kv", segment, Access.REMOTE_WRITE)).isSameAs(first);

        first.close();
        assertThat(registry.find("kv")).containsSame(first);
        assertThat(registry.registeredBytes()).isEqualTo(PAGE);
        first.close();
        assertThat(registry.find("kv")).isEmpty();
        assertThat(registry.registeredBytes()).isZero();
        first.close();
    }

    @Test
    void secondNameSharesTheRegions() {
        MemorySegment segment = memory.asSlice(0, 2 * PAGE);
        Pool first = registry.register("first", segment, Access.REMOTE_WRITE);
        Pool second = registry.register("second", segment, Access.REMOTE_WRITE);

        assertThat(second).isNotSameAs(first);
        assertThat(second.descriptor().regions()).isEqualTo(first.descriptor().regions());
        assertThat(registry.registeredBytes()).isEqualTo(2 * PAGE);
        assertThat(registry.addressMap().size()).isEqualTo(2);

        first.close();
        assertThat(registry.addressMap().owner(0)).isSameAs(second);
        second.hold();
        second.release();
        second.close();
        assertThat(registry.addressMap().size()).isZero();
    }

    @Test
    void refusesWhatContradictsWhatIsRegistered() {
        registry.register("kv", memory.asSlice(PAGE, 2 * PAGE), Access.REMOTE_WRITE);
        long[][] overlaps = {
            {0, PAGE + 1},
            {PAGE, PAGE},
            {2 * PAGE, PAGE},
            {3 * PAGE - 1, PAGE},
            {0, 8 * PAGE},
            {PAGE + 8, 8}
        };
        for (long[] range : overlaps) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() ->
                            registry.register(
                                    "other",
                                    memory.asSlice(range[0], range[1]),
                                    Access.REMOTE_WRITE))
                    .withMessageContaining("overlaps");
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> registry.register("other", memory.asSlice(PAGE, 2 * PAGE)))
                .withMessageContaining("REMOTE_WRITE");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> registry.register("kv", memory.asSlice(PAGE, 2 * PAGE)))
                .withMessageContaining("'kv'");
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        registry.register(
                                "kv", memory.asSlice(8 * PAGE, PAGE), Access.REMOTE_WRITE))
                .withMessageContaining("'kv'");
        assertThat(registry.pools()).hasSize(1);
        registry.register("below", memory.asSlice(0, PAGE), Access.REMOTE_WRITE);
        registry.register("above", memory.asSlice(3 * PAGE, PAGE), Access.REMOTE_WRITE);
    }

    @Test
    void refusesMemoryThatCannotBeAPool() {
        Pool kv = registry.register("kv", memory.asSlice(0, PAGE), Access.REMOTE_WRITE);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> registry.register("empty", memory.asSlice(0, 0)))
                .withMessageContaining("'empty'");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> registry.registerAddress("empty", kv.address(), 0));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> registry.registerAddress("negative", kv.address(), -1));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> registry.registerAddress("wraps", -PAGE, 2 * PAGE));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> registry.register("heap", MemorySegment.ofArray(new byte[PAGE])))
                .withMessageContaining("on the heap");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> registry.register("", memory.asSlice(PAGE, PAGE)));
        Arena closed = Arena.ofShared();
        MemorySegment freed = closed.allocate(PAGE, PAGE);
        closed.close();
        assertThatIllegalStateException().isThrownBy(() -> registry.register("freed", freed));

        assertThat(registry.pools()).containsExactly(kv);
        assertThat(registry.registeredBytes()).isEqualTo(PAGE);
        assertThat(registry.addressMap().size()).isEqualTo(1);
    }

    @Test
    void failedRegistrationLeavesNothing() {
        for (int attempt = 0; attempt < 2; attempt++) {
            assertThatExceptionOfType(VerbsException.class)
                    .isThrownBy(() -> registry.registerAddress("gpu", PAGE, 4 * PAGE))
                    .satisfies(failure -> assertThat(failure.errno()).isEqualTo(Errno.EFAULT));
        }

        assertThat(registry.find("gpu")).isEmpty();
        assertThat(registry.registeredBytes()).isZero();
        registry.register("gpu", memory.asSlice(0, PAGE));
    }

    /** Both wait for one attempt, and both are to be told what it met, not how they were told. */
    @Test
    void allWhoShareAFailedRegistrationAreToldTheReason() throws InterruptedException {
        for (int round = 0; round < 20; round++) {
            List<Throwable> failures = new ArrayList<>();
            onThreads(
                    4,
                    thread -> {
                        try {
                            registry.registerAddress("gpu " + thread, PAGE, 4 * PAGE);
                        } catch (RuntimeException failure) {
                            synchronized (failures) {
                                failures.add(failure);
                            }
                        }
                    });
            assertThat(failures).hasSize(4).hasOnlyElementsOfType(VerbsException.class);
        }
        assertThat(registry.registeredBytes()).isZero();
    }

    @Test
    void registersByAddressWithoutASegment() {
        Pool pool = registry.registerAddress("gpu", memory.address(), PAGE, Access.REMOTE_WRITE);

        assertThat(pool.descriptor().address()).isEqualTo(memory.address());
        assertThatIllegalStateException()
                .isThrownBy(pool::segment)
                .withMessageContaining("by address");
    }

    @Test
    void generationGrowsWithEveryRegistration() {
        MemorySegment segment = memory.asSlice(0, PAGE);
        long last = -1;
        for (int i = 0; i < 5; i++) {
            Pool pool = registry.register("kv", segment, Access.REMOTE_WRITE);
            assertThat(pool.generation()).isGreaterThan(last);
            assertThat(pool.descriptor().generation()).isEqualTo(pool.generation());
            last = pool.generation();
            pool.close();
        }
    }

    @Test
    void allocatesZeroedMemoryAndFreesItWithTheLastPool() {
        Pool pool = registry.allocate("staging", 2 * PAGE + 5, Access.REMOTE_WRITE);
        MemorySegment segment = pool.segment();
        assertThat(segment.byteSize()).isEqualTo(2 * PAGE + 5);
        assertThat(segment.address() % PAGE).isZero();
        assertThat(segment.toArray(ValueLayout.JAVA_BYTE)).containsOnly((byte) 0);
        Pool alias = registry.register("alias", segment, Access.REMOTE_WRITE);

        pool.close();
        assertThat(segment.scope().isAlive()).isTrue();
        segment.set(ValueLayout.JAVA_BYTE, 0, (byte) 1);
        alias.close();
        assertThat(segment.scope().isAlive()).isFalse();

        assertThatIllegalArgumentException()
                .isThrownBy(() -> registry.allocate("nothing", 0))
                .withMessageContaining("'nothing'");
    }

    @Test
    void allocatingUnderATakenNameIsRefused() {
        registry.allocate("staging", PAGE, Access.REMOTE_WRITE);

        assertThatIllegalArgumentException()
                .isThrownBy(() -> registry.allocate("staging", PAGE, Access.REMOTE_WRITE));
        assertThat(registry.registeredBytes()).isEqualTo(PAGE);
    }

    @Test
    void heldPoolRefusesToClose() {
        Pool pool = registry.register("kv", memory.asSlice(0, PAGE), Access.REMOTE_WRITE);
        pool.hold();
        pool.hold();

        assertThatIllegalStateException()
                .isThrownBy(pool::close)
                .withMessageContaining("2 transfers in flight");
        pool.release();
        assertThatIllegalStateException().isThrownBy(pool::close);
        pool.release();
        pool.close();

        assertThatIllegalStateException()
                .isThrownBy(pool::hold)
                .withMessageContaining("'kv'")
                .withMessageContaining("closed");
    }

    /** Else a pool would be taken for closed, and its memory freed while registered. */
    @Test
    void refusesToReleaseWhatIsNotHeld() {
        Pool pool = registry.register("kv", memory.asSlice(0, PAGE), Access.REMOTE_WRITE);

        assertThatIllegalStateException().isThrownBy(pool::release);

        pool.close();
        assertThat(registry.registeredBytes()).isZero();
    }

    @Test
    void closingTheRegistryClosesAllButHeldPools() {
        Pool held = registry.register("held", memory.asSlice(0, PAGE), Access.REMOTE_WRITE);
        registry.register("free", memory.asSlice(PAGE, PAGE), Access.REMOTE_WRITE);
        Pool often = registry.register("often", memory.asSlice(2 * PAGE, PAGE));
        registry.register("often", often.segment());
        held.hold();

        assertThatIllegalStateException()
                .isThrownBy(registry::close)
                .withMessageContaining("'held'");

        assertThat(registry.pools()).containsExactly(held);
        assertThatIllegalStateException()
                .isThrownBy(() -> registry.register("late", memory.asSlice(8 * PAGE, PAGE)))
                .withMessageContaining("registry is closed");
        assertThatIllegalStateException().isThrownBy(() -> registry.allocate("late", PAGE));
        held.release();
        registry.close();
        assertThat(registry.pools()).isEmpty();
    }

    @Test
    void listenersAreToldOfEveryChange() {
        AtomicInteger changes = new AtomicInteger();
        registry.onChange(changes::incrementAndGet);

        Pool pool = registry.register("kv", memory.asSlice(0, PAGE));
        assertThat(changes).hasValue(1);
        pool.close();
        assertThat(changes).hasValue(2);
    }

    /** Else memory would be freed, or an exception seen, with the pool registered all the same. */
    @Test
    void listenerThatThrowsChangesNothing() {
        AtomicReference<Throwable> reported = new AtomicReference<>();
        Thread thread = Thread.currentThread();
        Thread.UncaughtExceptionHandler before = thread.getUncaughtExceptionHandler();
        thread.setUncaughtExceptionHandler((where, failure) -> reported.set(failure));
        try {
            registry.onChange(() -> {
                throw new IllegalArgumentException("listener");
            });

            Pool pool = registry.allocate("staging", PAGE, Access.REMOTE_WRITE);

            assertThat(pool.segment().scope().isAlive()).isTrue();
            assertThat(reported.get()).hasMessage("listener");
            pool.close();
            assertThat(registry.pools()).isEmpty();
        } finally {
            thread.setUncaughtExceptionHandler(before);
        }
    }

    @Test
    void registersABatchInOrderAndTellsHowItGoes() {
        List<PoolRequest> requests = requests(12);
        List<String> told = new ArrayList<>();

        List<Pool> pools =
                registry.registerAll(
                        requests,
                        (done, total, bytes, bytesTotal) ->
                                told.add(done + "/" + total + " " + bytes + "/" + bytesTotal));

        assertThat(pools).extracting(Pool::name).isEqualTo(names(requests));
        assertThat(told).hasSize(12);
        for (int i = 0; i < 12; i++) {
            assertThat(told.get(i)).isEqualTo((i + 1) + "/12 " + (i + 1) * PAGE + "/" + 12 * PAGE);
        }
        assertThat(registry.addressMap().size()).isEqualTo(12);
        assertThat(registry.registerAll(List.of(), (a, b, c, d) -> {})).isEmpty();
    }

    @Test
    void batchThatFailsLeavesNothingOfItself() {
        Pool old = registry.register("old", memory.asSlice(60 * PAGE, PAGE));
        for (int bad : new int[] {0, 5, 11}) {
            List<PoolRequest> requests = new ArrayList<>(requests(12));
            requests.set(
                    bad, new PoolRequest("bad", memory.asSlice(60 * PAGE, 2 * PAGE), Set.of()));

            assertThatIllegalArgumentException()
                    .isThrownBy(() -> registry.registerAll(requests, (a, b, c, d) -> {}))
                    .withMessageContaining("overlaps");

            assertThat(registry.pools()).containsExactly(old);
            assertThat(registry.registeredBytes()).isEqualTo(PAGE);
        }
    }

    @Test
    void batchWhoseProgressThrowsLeavesNothingOfItself() {
        for (Throwable thrown :
                new Throwable[] {
                    new IllegalArgumentException("told"), new AssertionError("told")
                }) {
            assertThatThrownBy(() ->
                            registry.registerAll(
                                    requests(8),
                                    (done, total, bytes, bytesTotal) -> {
                                        if (done == 3) {
                                            throwUnchecked(thrown);
                                        }
                                    }))
                    .isSameAs(thrown);
            assertThat(registry.pools()).isEmpty();
            assertThat(registry.registeredBytes()).isZero();
        }
    }

    @Test
    void batchThatFailsTwiceTellsBothReasons() {
        List<PoolRequest> requests = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            requests.add(
                    new PoolRequest("heap " + i, MemorySegment.ofArray(new byte[PAGE]), Set.of()));
        }

        assertThatIllegalArgumentException()
                .isThrownBy(() -> registry.registerAll(requests, (a, b, c, d) -> {}))
                .satisfies(failure ->
                        assertThat(failure.getSuppressed())
                                .allMatch(f -> f instanceof IllegalArgumentException));
    }

    @Test
    void oneNameRegisteredByManyThreadsIsOnePool() throws InterruptedException {
        MemorySegment segment = memory.asSlice(0, 8 * PAGE);
        for (int round = 0; round < 20; round++) {
            Pool[] pools = new Pool[4];
            onThreads(
                    4,
                    thread -> pools[thread] = registry.register("kv", segment, Access.REMOTE_READ));

            assertThat(pools).containsOnly(pools[0]);
            assertThat(registry.registeredBytes()).isEqualTo(8 * PAGE);
            for (Pool pool : pools) {
                assertThat(registry.pools()).containsExactly(pools[0]);
                pool.close();
            }
            assertThat(registry.pools()).isEmpty();
            assertThat(registry.registeredBytes()).isZero();
        }
    }

    @Test
    void oneNameForSeveralRangesIsGivenToOneOnly() throws InterruptedException {
        for (int round = 0; round < 20; round++) {
            AtomicInteger refused = new AtomicInteger();
            onThreads(
                    4,
                    thread -> {
                        try {
                            registry.register("kv", memory.asSlice(thread * PAGE, PAGE));
                        } catch (IllegalArgumentException taken) {
                            refused.incrementAndGet();
                        }
                    });

            assertThat(refused).hasValue(3);
            assertThat(registry.registeredBytes()).isEqualTo(PAGE);
            registry.pools().getFirst().close();
            assertThat(registry.registeredBytes()).isZero();
        }
    }

    /** Half of the names are aliases of the others' ranges. */
    @Test
    void registeringAndClosingFromManyThreadsEndsWithNothing() throws InterruptedException {
        onThreads(
                4,
                thread -> {
                    Random random = new Random(SEED + thread);
                    for (int i = 0; i < 150; i++) {
                        int number = random.nextInt(8);
                        MemorySegment segment = memory.asSlice(number / 2 * 2 * PAGE, 2 * PAGE);
                        Pool pool =
                                registry.register("pool " + number, segment, Access.REMOTE_READ);
                        AddressMap<Pool> map = registry.addressMap();
                        assertThat(map.find(segment.address())).isNotNegative();
                        pool.close();
                    }
                });

        assertThat(registry.pools()).isEmpty();
        assertThat(registry.registeredBytes()).isZero();
        assertThat(registry.addressMap().size()).isZero();
    }

    @Test
    void closingWhileOthersRegisterLeavesNothing() throws InterruptedException {
        for (int round = 0; round < 15; round++) {
            MemoryRegistry hurried = new MemoryRegistry(domain, new RegistryOptions(PAGE, 1));
            AtomicInteger registered = new AtomicInteger();
            onThreads(
                    3,
                    thread -> {
                        if (thread == 0) {
                            while (registered.get() < 3) {
                                Thread.onSpinWait();
                            }
                            hurried.close();
                            assertThat(hurried.pools()).isEmpty();
                            assertThat(hurried.registeredBytes()).isZero();
                            return;
                        }
                        try {
                            for (int i = 0; ; i++) {
                                int page = thread * 20 + i % 20;
                                hurried.register("p" + page, memory.asSlice(page * PAGE, PAGE));
                                registered.incrementAndGet();
                            }
                        } catch (IllegalStateException closed) {
                            assertThat(closed).hasMessageContaining("registry is closed");
                        }
                    });
        }
    }

    @Test
    void hundredsOfPoolsComeAndGoWithoutATrace() {
        int pools = 250;
        MemorySegment many = arena.allocate((long) pools * PAGE, PAGE);
        long files = -1;
        for (int round = 0; round < 3; round++) {
            long open = Lifetime.openCount();
            List<PoolRequest> requests = new ArrayList<>();
            for (int i = 0; i < pools; i++) {
                requests.add(
                        new PoolRequest(
                                "pool " + i,
                                many.asSlice((long) i * PAGE, PAGE),
                                Set.of(Access.REMOTE_WRITE)));
            }
            List<Pool> registered = registry.registerAll(requests, (a, b, c, d) -> {});
            assertThat(Lifetime.openCount()).isEqualTo(open + pools);
            assertThat(registry.addressMap().size()).isEqualTo(pools);

            registered.forEach(Pool::close);

            assertThat(Lifetime.openCount()).isEqualTo(open);
            assertThat(registry.registeredBytes()).isZero();
            // The first round may load classes; files are counted from its end on.
            long now = openFiles();
            assertThat(now).isEqualTo(files < 0 ? now : files);
            files = now;
        }
    }

    private static long openFiles() {
        String[] names = new File("/proc/self/fd").list();
        assertThat(names).isNotNull();
        return names.length;
    }

    private List<PoolRequest> requests(int count) {
        List<PoolRequest> requests = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            requests.add(
                    new PoolRequest(
                            "pool " + i,
                            memory.asSlice((long) i * PAGE, PAGE),
                            Set.of(Access.REMOTE_WRITE)));
        }
        return requests;
    }

    private static List<String> names(List<PoolRequest> requests) {
        return requests.stream().map(PoolRequest::name).toList();
    }

    private interface Work {
        void run(int thread);
    }

    /** Runs the work on several threads at once, and throws what one of them threw. */
    private static void onThreads(int count, Work work) throws InterruptedException {
        AtomicReference<Throwable> failure = new AtomicReference<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int number = i;
            threads.add(
                    Thread.ofPlatform()
                            .uncaughtExceptionHandler((thread, thrown) -> failure.set(thrown))
                            .start(() -> work.run(number)));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (failure.get() != null) {
            throw new AssertionError("a thread failed", failure.get());
        }
    }

    private static void throwUnchecked(Throwable thrown) {
        if (thrown instanceof Error error) {
            throw error;
        }
        throw (RuntimeException) thrown;
    }
}
