package dev.verbena.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.verbena.verbs.Access;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A registry needs no device: its pools have the regions and keys that its source gives. */
class RegionSourceTest {
    private static final int PAGE = 4096;

    private final RegionSourceDouble source = new RegionSourceDouble();
    private final MemoryRegistry registry =
            new MemoryRegistry(source, new RegistryOptions(PAGE, 1));
    private final Arena arena = Arena.ofShared();
    private final MemorySegment memory = arena.allocate(16 * PAGE, PAGE);

    @AfterEach
    void closesWithoutLeavingAnything() {
        registry.close();
        arena.close();
        assertThat(source.open).isEmpty();
    }

    @Test
    void poolsHaveTheRegionsOfTheSource() {
        MemorySegment segment = memory.asSlice(0, 2 * PAGE + 10);

        Pool pool = registry.register("kv", segment, Access.REMOTE_WRITE);

        assertThat(pool.descriptor().regions())
                .containsExactly(
                        new PoolDescriptor.Region(PAGE, 100),
                        new PoolDescriptor.Region(PAGE, 101),
                        new PoolDescriptor.Region(10, 102));
        assertThat(registry.addressMap().covers(0, segment.address(), segment.byteSize())).isTrue();
        assertThat(source.open.values()).containsExactly((long) PAGE, (long) PAGE, 10L);
        pool.close();
        assertThat(source.open).isEmpty();
        assertThat(registry.addressMap().size()).isZero();
    }

    @Test
    void whatTheSourceRefusesLeavesNothing() {
        assertThatExceptionOfType(UnsupportedOperationException.class)
                .isThrownBy(() -> registry.registerAddress("gpu", memory.address(), PAGE))
                .withMessage("no device that reaches addresses");
        assertThatExceptionOfType(UnsupportedOperationException.class)
                .isThrownBy(() -> registry.registerDmaBuf("gpu", 3, 0, PAGE, memory.address()))
                .withMessage("no device that reaches dma-bufs");

        assertThat(registry.pools()).isEmpty();
        assertThat(registry.registeredBytes()).isZero();
        registry.register("gpu", memory.asSlice(0, PAGE));
    }

    /** Peers could not be told of it, so that every description of pools would fail. */
    @Test
    @SuppressWarnings("restricted") // a segment of memory that nobody touches
    void refusesPoolsOfMoreRegionsThanADescriptorHolds() {
        long longest = (long) PoolDescriptor.MAX_REGIONS * PAGE;

        assertThatIllegalArgumentException()
                .isThrownBy(() -> registry.allocate("kv", longest + 1, Access.REMOTE_WRITE))
                .withMessageContaining("pool 'kv' of 268435457 bytes")
                .withMessageContaining("65537 regions of 4096 bytes, more than 65536")
                .withMessageContaining("RegistryOptions.maxRegionBytes is 4096");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> registry.registerAddress("gpu", PAGE, longest + 1))
                .withMessageContaining("pool 'gpu'");
        assertThat(source.asked).isZero();

        Pool pool = registry.register("kv", memory.reinterpret(longest), Access.REMOTE_WRITE);
        assertThat(registry.descriptors()).containsExactly(pool.descriptor());
        assertThat(pool.descriptor().regions()).hasSize(PoolDescriptor.MAX_REGIONS);
    }

    /** Whether or not the range is registered already, which spares the source a second look. */
    @Test
    void refusesReadOnlySegmentsAndThoseOfTheHeap() {
        MemorySegment segment = memory.asSlice(0, PAGE);
        MemorySegment readOnly = segment.asReadOnly();
        for (int round = 0; round < 2; round++) {
            for (Access[] access :
                    new Access[][] {{}, {Access.REMOTE_READ}, {Access.LOCAL_WRITE}}) {
                assertThatIllegalArgumentException()
                        .isThrownBy(() -> registry.register("kv", readOnly, access))
                        .withMessageContaining("'kv' is read-only");
            }
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> registry.register("kv", MemorySegment.ofArray(new long[8])))
                    .withMessageContaining("'kv' is on the heap");
            registry.register("kv", segment);
        }
        assertThat(source.asked).isEqualTo(1);
    }

    /** Before a batch has begun, and with the name of what is missing. */
    @Test
    @SuppressWarnings("NullAway")
    void requestsHaveAllTheirParts() {
        assertThatNullPointerException()
                .isThrownBy(() -> new PoolRequest(null, memory, Set.of()))
                .withMessage("name");
        assertThatNullPointerException()
                .isThrownBy(() -> new PoolRequest("kv", null, Set.of()))
                .withMessage("segment");
    }
}
