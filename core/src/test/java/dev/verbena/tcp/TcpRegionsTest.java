package dev.verbena.tcp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.verbena.memory.MemoryRegistry;
import dev.verbena.memory.RegistryOptions;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.Lifetime;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Regions without a device: keys that nobody guesses, and closing that waits for a copy. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class TcpRegionsTest {
    private final TcpRegions regions = new TcpRegions();

    @Test
    void givesEveryRegistrationAKeyOfItsOwn() {
        Set<Integer> keys = new HashSet<>();
        try (Arena arena = Arena.ofShared()) {
            MemorySegment segment = arena.allocate(64);
            for (int i = 0; i < 1000; i++) {
                try (var region = regions.register(segment, Set.of(Access.REMOTE_READ))) {
                    keys.add(region.remoteKey());
                    assertThat(region.localKey()).isEqualTo(region.remoteKey());
                    assertThat(regions.find(region.remoteKey())).isNotNull();
                }
            }
        }

        assertThat(keys).hasSizeGreaterThan(990);
        assertThat(keys).allSatisfy(key -> assertThat(regions.find(key)).isNull());
    }

    @Test
    void grantsWhatIsInsideAndAllowed() {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment segment = arena.allocate(64);
            long address = segment.address();
            try (var registered = regions.register(segment, Set.of(Access.REMOTE_WRITE))) {
                TcpRegion region = regions.find(registered.remoteKey());

                assertThat(region.grants(Access.REMOTE_WRITE, address, 64)).isTrue();
                assertThat(region.grants(Access.LOCAL_WRITE, address, 64)).as("implied").isTrue();
                assertThat(region.grants(Access.REMOTE_READ, address, 64)).isFalse();
                assertThat(region.covers(address + 63, 1)).isTrue();
                assertThat(region.covers(address + 64, 0)).isTrue();
                assertThat(region.covers(address + 64, 1)).isFalse();
                assertThat(region.covers(address - 1, 1)).isFalse();
                assertThat(region.covers(address, 65)).isFalse();
                assertThat(region.covers(address, -1)).isFalse();
                assertThat(region.covers(address + Long.MIN_VALUE, 1)).isFalse();
            }
        }
    }

    @Test
    void closingTurnsAwayAndWaitsForWhatIsUnderWay() throws Exception {
        long open = Lifetime.openCount();
        try (Arena arena = Arena.ofShared()) {
            var registered = regions.register(arena.allocate(64), Set.of(Access.REMOTE_WRITE));
            TcpRegion region = regions.find(registered.remoteKey());
            AtomicBoolean closed = new AtomicBoolean();
            assertThat(region.enter()).isTrue();
            Thread closing =
                    Thread.startVirtualThread(() -> {
                        registered.close();
                        closed.set(true);
                    });
            while (region.enter()) {
                region.exit();
            }

            assertThat(closed).isFalse();
            region.exit();
            closing.join();

            assertThat(closed).isTrue();
            registered.close();
            assertThat(Lifetime.openCount()).isEqualTo(open);
        }
    }

    @Test
    void memoryThatIsFreedIsNotEntered() {
        Arena arena = Arena.ofShared();
        try (var registered = regions.register(arena.allocate(64), Set.of(Access.REMOTE_WRITE))) {
            arena.close();

            assertThat(regions.find(registered.remoteKey()).enter()).isFalse();
        }
    }

    @Test
    void refusesMemoryThatItsThreadsCannotReach() {
        try (MemoryRegistry registry =
                        new MemoryRegistry(new TcpRegions(), RegistryOptions.defaults());
                Arena confined = Arena.ofConfined()) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> registry.register("kv", confined.allocate(64)))
                    .withMessageContaining("confined")
                    .withMessageContaining("Arena.ofShared");
            assertThatExceptionOfType(UnsupportedOperationException.class)
                    .isThrownBy(() -> registry.registerAddress("gpu", 0x1000, 64))
                    .withMessageContaining("0x1000")
                    .withMessageContaining("RDMA");
            assertThatExceptionOfType(UnsupportedOperationException.class)
                    .isThrownBy(() -> registry.registerDmaBuf("gpu", 3, 0, 64, 0x1000))
                    .withMessageContaining("dma-buf")
                    .withMessageContaining("RDMA");
            assertThat(registry.pools()).isEmpty();
            assertThat(registry.registeredBytes()).isZero();
        }
        Arena gone = Arena.ofShared();
        MemorySegment freed = gone.allocate(64);
        gone.close();
        assertThatIllegalStateException()
                .isThrownBy(() -> regions.register(freed, Set.of()))
                .withMessageContaining("closed");
    }

    /** A file that is mapped, without its pages: two regions of the longest kind, and a rest. */
    @Test
    void splitsPoolsThatAreLongerThanABuffer() throws Exception {
        long bytes = 2 * regions.maxRegionBytes() + 4096;
        Path file = Files.createTempFile("verbena", ".pool");
        try (var channel =
                        FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE);
                Arena arena = Arena.ofShared();
                MemoryRegistry registry = new MemoryRegistry(regions, RegistryOptions.defaults())) {
            MemorySegment mapped = channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);

            var pool = registry.register("long", mapped, Access.REMOTE_READ);

            assertThat(pool.descriptor().regions()).hasSize(3);
            pool.close();
        } finally {
            Files.delete(file);
        }
    }
}
