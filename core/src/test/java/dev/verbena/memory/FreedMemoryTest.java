package dev.verbena.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.verbena.verbs.Access;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Regions of memory that was freed too early still lead to the old pages: they are neither used nor
 * shared with whatever is at the same addresses now.
 */
class FreedMemoryTest {
    private static final int PAGE = 4096;

    private final RegionSourceDouble source = new RegionSourceDouble();
    private final MemoryRegistry registry =
            new MemoryRegistry(source, new RegistryOptions(PAGE, 1));
    private final Arena arena = Arena.ofShared();
    private final MemorySegment memory = arena.allocate(4 * PAGE, PAGE);
    private final Arena early = Arena.ofShared();

    /** The same addresses, which the JVM takes for freed once that arena is closed. */
    @SuppressWarnings("restricted")
    private final MemorySegment freedEarly = memory.asSlice(0, 2 * PAGE).reinterpret(early, null);

    @AfterEach
    void closesWithoutLeavingAnything() {
        registry.close();
        arena.close();
        assertThat(source.open).isEmpty();
    }

    @Test
    void newMemoryDoesNotShareTheRegionsOfFreedMemory() {
        Pool old = registry.register("old", freedEarly, Access.REMOTE_WRITE);
        early.close();

        MemorySegment same = memory.asSlice(0, 2 * PAGE);
        for (String name : new String[] {"new", "old"}) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> registry.register(name, same, Access.REMOTE_WRITE))
                    .withMessageContaining("arena was closed before its pools");
        }
        assertThatIllegalStateException()
                .isThrownBy(() -> registry.register("part", memory.asSlice(PAGE, PAGE)))
                .withMessageContaining("arena was closed before its pools");
        assertThat(registry.pools()).containsExactly(old);

        old.close();
        Pool next = registry.register("new", same, Access.REMOTE_WRITE);
        assertThat(next.descriptor().regions())
                .extracting(PoolDescriptor.Region::remoteKey)
                .containsExactly(102, 103);
    }

    @Test
    void freedMemoryDoesNotShareTheRegionsOfLiveMemory() {
        Pool live = registry.register("live", memory.asSlice(0, 2 * PAGE));
        early.close();

        for (String name : new String[] {"freed", "live"}) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> registry.register(name, freedEarly))
                    .withMessageContaining("'" + name + "'")
                    .withMessageContaining("freed");
        }
        live.hold();
        live.release();
    }

    @Test
    void poolOfFreedMemoryIsNotHeld() {
        Pool pool = registry.register("kv", freedEarly);
        pool.hold();
        early.close();

        assertThatIllegalStateException()
                .isThrownBy(pool::hold)
                .withMessageContaining("pool 'kv'")
                .withMessageContaining("arena was closed before the pool");

        pool.release();
        pool.close();
        assertThatIllegalStateException().isThrownBy(pool::hold).withMessageContaining("is closed");
    }
}
