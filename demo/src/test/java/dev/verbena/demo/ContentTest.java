package dev.verbena.demo;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Content is the same however a unit is cut, and nowhere the same as elsewhere. */
class ContentTest {
    private static final int UNIT = 96;

    private final Content content = new Content(7);

    @Test
    void aPartIsWhatTheWholeHasThere() {
        byte[] whole = part(3, 5, 0, UNIT);
        for (int first = 0; first < UNIT; first++) {
            for (int length = 1; first + length <= UNIT; length += 7) {
                byte[] cut = part(3, 5, first, length);
                for (int i = 0; i < length; i++) {
                    assertThat(cut[i])
                            .as("%d bytes from %d", length, first)
                            .isEqualTo(whole[first + i]);
                }
            }
        }
    }

    @Test
    void noWordComesTwice() {
        Set<String> words = new HashSet<>();
        for (int pool = 0; pool < 20; pool++) {
            for (int unit = 0; unit < 20; unit++) {
                for (int first = 0; first < UNIT; first += Long.BYTES) {
                    words.add(Arrays.toString(part(pool, unit, first, Long.BYTES)));
                }
            }
        }
        assertThat(words).hasSize(20 * 20 * UNIT / Long.BYTES);
    }

    @Test
    void anotherSeedIsOtherContent() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(UNIT);
            new Content(8).fill(memory, 0, 3, 5, 0, UNIT);
            byte[] other = memory.toArray(ValueLayout.JAVA_BYTE);
            assertThat(other).isNotEqualTo(part(3, 5, 0, UNIT));
        }
    }

    private byte[] part(int pool, int unit, int first, int length) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(length + 1);
            content.fill(memory, 1, pool, unit, first, length);
            return memory.asSlice(1).toArray(ValueLayout.JAVA_BYTE);
        }
    }
}
