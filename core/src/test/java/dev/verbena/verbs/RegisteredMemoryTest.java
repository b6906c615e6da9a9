package dev.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.verbena.bindings.Errno;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Memory that a device cannot reach safely is refused, with the reason; other memory gets keys. */
@DeviceTest
class RegisteredMemoryTest {
    private final Device device = TwoQueuePairs.openDevice();
    private final ProtectionDomain domain = device.allocateProtectionDomain();
    private final Arena arena = Arena.ofShared();
    private final MemorySegment memory = arena.allocate(3 * 4096 + 100, 4096);

    @AfterEach
    void close() {
        domain.close();
        device.close();
        arena.close();
    }

    @Test
    void coversExactlyTheSegment() {
        MemorySegment part = memory.asSlice(10, 5000);
        try (MemoryRegion region = domain.register(part, Set.of());
                MemoryRegion other = domain.register(memory, EnumSet.of(Access.REMOTE_WRITE))) {
            assertThat(region.address()).isEqualTo(part.address());
            assertThat(region.lengthBytes()).isEqualTo(5000);
            assertThat(region.localKey()).isNotEqualTo(other.localKey());
            assertThat(other.remoteKey()).isNotZero();
        }
    }

    @Test
    void refusesMemoryThatTheCollectorMoves() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> domain.register(MemorySegment.ofArray(new byte[64]), Set.of()))
                .withMessageContaining("on the heap");
    }

    @Test
    void refusesReadOnlyMemory() {
        for (Set<Access> access :
                List.of(
                        Set.<Access>of(),
                        Set.of(Access.LOCAL_WRITE),
                        Set.of(Access.REMOTE_READ),
                        Set.of(Access.REMOTE_WRITE))) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> domain.register(memory.asReadOnly(), access))
                    .withMessageContaining("read-only");
        }
    }

    @Test
    void refusesMemoryThatIsFreed() {
        Arena closed = Arena.ofShared();
        MemorySegment freed = closed.allocate(4096, 4096);
        closed.close();

        assertThatIllegalStateException()
                .isThrownBy(() -> domain.register(freed, Set.of()))
                .withMessageContaining("freed");
    }

    @Test
    void refusesRangesThatAreEmptyOrPassTheAddressSpace() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> domain.register(memory.asSlice(0, 0), Set.of()));
        long[][] bad = {{4096, 0}, {4096, -1}, {-4096, 8192}, {Long.MAX_VALUE, Long.MIN_VALUE}};
        for (long[] range : bad) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> domain.registerAddress(range[0], range[1], Set.of()))
                    .withMessageContaining("empty or passes the address space");
        }
    }

    @Test
    void saysThatARangeIsNotMapped() {
        assertThatExceptionOfType(VerbsException.class)
                .isThrownBy(() -> domain.registerAddress(1 << 12, 1 << 14, Set.of()))
                .satisfies(failure -> assertThat(failure.errno()).isEqualTo(Errno.EFAULT))
                .withMessageContaining("address=0x1000, length=16384")
                .withMessageContaining("not mapped");
    }

    @Test
    void registersByAddressWhatIsMapped() {
        try (MemoryRegion region =
                domain.registerAddress(
                        memory.address(), memory.byteSize(), Set.of(Access.REMOTE_WRITE))) {
            assertThat(region.lengthBytes()).isEqualTo(memory.byteSize());
        }
    }

    @Test
    void refusesDmaBufsThatAreNone() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> domain.registerDmaBuf(-1, 0, 4096, 4096, Set.of()));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> domain.registerDmaBuf(0, -1, 4096, 4096, Set.of()));
        assertThatExceptionOfType(VerbsException.class)
                .isThrownBy(
                        () -> domain.registerDmaBuf(0, 0, 4096, 4096, Set.of(Access.LOCAL_WRITE)))
                .withMessageContaining("ibv_reg_dmabuf_mr failed");
    }

    @Test
    void registersTheSameMemoryAsOftenAsWanted() {
        MemoryRegion[] regions = new MemoryRegion[20];
        for (int i = 0; i < regions.length; i++) {
            regions[i] = domain.register(memory, Set.of());
        }
        assertThatIllegalStateException()
                .isThrownBy(domain::close)
                .withMessageContaining("still has 20 open")
                .withMessageContaining(
                        "memory region 0x%x+%d".formatted(memory.address(), memory.byteSize()));
        for (MemoryRegion region : regions) {
            region.close();
            region.close();
        }
    }

    @Test
    void refusesToRegisterOnceTheDomainIsClosed() {
        long before = Lifetime.openCount();
        ProtectionDomain closed = device.allocateProtectionDomain();
        closed.close();

        assertThatIllegalStateException().isThrownBy(() -> closed.register(memory, Set.of()));
        assertThatIllegalStateException().isThrownBy(() -> closed.allocateMemoryWindow(2));
        assertThat(Lifetime.openCount()).isEqualTo(before);
    }

    @Test
    void windowsHaveKeysAndKeepTheirDomainOpen() {
        for (int type : new int[] {1, 2}) {
            MemoryWindow window = domain.allocateMemoryWindow(type);
            assertThat(window.remoteKey()).isNotZero();
            assertThatIllegalStateException()
                    .isThrownBy(domain::close)
                    .withMessageContaining("memory window of type " + type);

            window.close();
            window.close();

            assertThatIllegalStateException().isThrownBy(window::remoteKey);
        }
        for (int type : new int[] {0, 3, -1}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> domain.allocateMemoryWindow(type));
        }
    }
}
