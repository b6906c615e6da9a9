package dev.verbena.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.verbena.bindings.Errno;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.VerbsException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * A pool whose regions cannot all be deregistered is over for everybody, holds on to its name and
 * range, and can be closed again.
 */
class ClosingPoolTest {
    private static final int PAGE = 4096;

    private final RegionSourceDouble source = new RegionSourceDouble();
    private final MemoryRegistry registry =
            new MemoryRegistry(source, new RegistryOptions(PAGE, 1));
    private final Arena arena = Arena.ofShared();
    private final MemorySegment memory = arena.allocate(16 * PAGE, PAGE);
    private final MemorySegment segment = memory.asSlice(0, 4 * PAGE);

    @AfterEach
    void closesWithoutLeavingAnything() {
        source.stuck.clear();
        registry.close();
        arena.close();
        assertThat(registry.pools()).isEmpty();
        assertThat(registry.registeredBytes()).isZero();
        assertThat(source.open).isEmpty();
    }

    @Test
    void poolThatCannotBeClosedIsOutOfReach() {
        Pool pool = registry.register("kv", segment, Access.REMOTE_WRITE);
        Pool other = registry.register("other", memory.asSlice(8 * PAGE, PAGE));
        assertThat(registry.addressMap().size()).isEqualTo(5);
        AtomicInteger changes = new AtomicInteger();
        registry.onChange(changes::incrementAndGet);
        source.stuck.add(segment.address() + PAGE);

        assertThatExceptionOfType(VerbsException.class)
                .isThrownBy(pool::close)
                .satisfies(failure -> assertThat(failure.errno()).isEqualTo(Errno.EBUSY))
                .withMessageContaining("pool 'kv'")
                .withMessageContaining("close it again");

        assertThat(source.open).containsOnlyKeys(segment.address() + PAGE, other.address());
        assertThat(registry.addressMap().size()).isEqualTo(1);
        assertThat(registry.addressMap().owner(0)).isSameAs(other);
        assertThat(registry.descriptors()).isEmpty();
        assertThatIllegalStateException().isThrownBy(pool::hold).withMessageContaining("closed");
        assertThat(changes).hasValue(1);
    }

    @Test
    void poolThatCannotBeClosedKeepsItsNameAndRange() {
        Pool pool = registry.register("kv", segment, Access.REMOTE_WRITE);
        source.stuck.add(segment.address() + 3 * PAGE);
        assertThatExceptionOfType(VerbsException.class).isThrownBy(pool::close);

        for (String name : new String[] {"kv", "alias"}) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> registry.register(name, segment, Access.REMOTE_WRITE))
                    .withMessageContaining("close that pool again");
        }
        assertThatIllegalStateException()
                .isThrownBy(() -> registry.register("part", memory.asSlice(PAGE, PAGE)));
        assertThat(registry.find("kv")).containsSame(pool);
        assertThat(registry.pools()).containsExactly(pool);
        assertThat(registry.registeredBytes()).isEqualTo(4 * PAGE);
    }

    @Test
    void poolThatCouldNotBeClosedIsClosedTheNextTime() {
        Pool pool = registry.register("kv", segment, Access.REMOTE_WRITE);
        source.stuck.add(segment.address());
        assertThatExceptionOfType(VerbsException.class).isThrownBy(pool::close);
        assertThatExceptionOfType(VerbsException.class).isThrownBy(pool::close);
        source.stuck.clear();

        pool.close();

        assertThat(source.open).isEmpty();
        assertThat(registry.find("kv")).isEmpty();
        assertThat(registry.registeredBytes()).isZero();
        Pool next = registry.register("kv", segment, Access.REMOTE_WRITE);
        pool.close();
        assertThat(registry.find("kv")).containsSame(next);
    }

    @Test
    void closingTheRegistryAgainClosesWhatWasLeft() {
        Pool stuck = registry.register("stuck", segment);
        registry.register("stuck", segment);
        registry.register("free", memory.asSlice(8 * PAGE, PAGE));
        source.stuck.add(segment.address());

        for (int attempt = 0; attempt < 2; attempt++) {
            assertThatExceptionOfType(VerbsException.class)
                    .isThrownBy(registry::close)
                    .withMessageContaining("pool 'stuck'");
            assertThat(registry.pools()).containsExactly(stuck);
        }
        source.stuck.clear();
        registry.close();

        assertThat(registry.pools()).isEmpty();
    }

    /** Else a device would reach memory that the allocator gives to somebody else. */
    @Test
    void allocatedMemoryIsFreedOnceNoRegionIsLeft() {
        Pool pool = registry.allocate("staging", 2 * PAGE);
        MemorySegment own = pool.segment();
        source.stuck.add(own.address() + PAGE);

        assertThatExceptionOfType(VerbsException.class).isThrownBy(pool::close);
        assertThat(own.scope().isAlive()).isTrue();

        source.stuck.clear();
        pool.close();
        assertThat(own.scope().isAlive()).isFalse();
    }

    @Test
    void aliasKeepsTheRegionsOfItsRange() {
        Pool first = registry.register("first", segment, Access.REMOTE_WRITE);
        Pool second = registry.register("second", segment, Access.REMOTE_WRITE);
        source.stuck.add(segment.address());

        first.close();

        assertThat(source.open).hasSize(4);
        second.hold();
        second.release();
        assertThatExceptionOfType(VerbsException.class).isThrownBy(second::close);
    }
}
