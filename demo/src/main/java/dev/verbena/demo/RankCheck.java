package dev.verbena.demo;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Judges what arrived at one decode rank: every item of the request byte by byte against the
 * pattern, and against the checksum that the prefill side made of it, where the ranks of both sides
 * have the same items; every other item against zero, for nobody was to write there.
 *
 * <p>One check, one thread.
 */
final class RankCheck {
    private final RankCache cache;
    private final MemorySegment memory;
    private final Content content;

    private long checked;
    private long wrong;
    private @Nullable WrongItem first;

    /** Told of progress, pool by pool. */
    @FunctionalInterface
    interface Listener {
        /** One more pool is checked. */
        void poolChecked() throws IOException;
    }

    RankCheck(RankCache cache, MemorySegment memory, Content content) {
        this.cache = cache;
        this.memory = memory;
        this.content = content;
    }

    /**
     * Checks every item of every pool.
     *
     * @param theirs checksums of the prefill rank with the same items, or null if there is none
     * @param listener told after each pool
     * @throws IOException if the listener throws it
     */
    DemoMessage.Verdict run(@Nullable Checksums theirs, Listener listener) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            for (int part = 0; part < cache.parts().size(); part++) {
                RankCache.PoolPart pool = cache.parts().get(part);
                MemorySegment expected = arena.allocate(pool.itemBytes(), Long.BYTES);
                MemorySegment zeros = arena.allocate(pool.itemBytes(), Long.BYTES);
                int[] requestItems = requestItemOfEach(pool);
                for (int item = 0; item < pool.itemCount(); item++) {
                    MemorySegment found = memory.asSlice(pool.itemOffset(item), pool.itemBytes());
                    int requestItem = requestItems[item];
                    if (requestItem < 0) {
                        checkUntouched(pool, item, found, zeros);
                    } else {
                        cache.fill(content, expected, 0, part, requestItem);
                        check(part, requestItem, found, expected);
                        if (theirs != null) {
                            checkSum(pool, requestItem, found, theirs.get(part, requestItem));
                        }
                    }
                }
                listener.poolChecked();
            }
        }
        return new DemoMessage.Verdict(checked, wrong, first);
    }

    /** Spoils one byte in the middle of the request, to prove that it is found. */
    void corruptOneByte() {
        RankCache.PoolPart pool = cache.parts().get(cache.parts().size() / 2);
        List<Integer> slots = pool.slots();
        long offset = pool.itemOffset(slots.get(slots.size() / 2)) + pool.itemBytes() / 2;
        byte value = memory.get(ValueLayout.JAVA_BYTE, offset);
        memory.set(ValueLayout.JAVA_BYTE, offset, (byte) (value ^ 1));
    }

    /** Of each item of a pool, its number in the request, or -1. */
    private static int[] requestItemOfEach(RankCache.PoolPart pool) {
        int[] requestItems = new int[pool.itemCount()];
        Arrays.fill(requestItems, -1);
        for (int i = 0; i < pool.slots().size(); i++) {
            requestItems[pool.slots().get(i)] = i;
        }
        return requestItems;
    }

    private void check(int part, int requestItem, MemorySegment found, MemorySegment expected) {
        checked++;
        long offset = found.mismatch(expected);
        if (offset >= 0) {
            String place = cache.place(part, requestItem, offset);
            note(
                    label(cache.parts().get(part), "item " + requestItem),
                    describe(place, found, expected, offset));
        }
    }

    private void checkSum(
            RankCache.PoolPart pool, int requestItem, MemorySegment found, int theirs) {
        int ours = Checksums.of(found);
        if (ours != theirs) {
            note(
                    label(pool, "item " + requestItem),
                    "CRC32C %08x at prefill, %08x at decode".formatted(theirs, ours));
        }
    }

    private void checkUntouched(
            RankCache.PoolPart pool, int item, MemorySegment found, MemorySegment zeros) {
        long offset = found.mismatch(zeros);
        if (offset >= 0) {
            note(
                    label(pool, "slot " + item + ", which is not the request's"),
                    describe("byte " + offset, found, zeros, offset));
        }
    }

    /** Counts a wrong item; the first is kept. */
    private void note(String label, String detail) {
        WrongItem found = new WrongItem(label, detail);
        if (first == null) {
            first = found;
        } else if (first.label().equals(label)) {
            // The bytes and the checksum of one item.
            first = new WrongItem(label, first.detail() + "; " + detail);
            return;
        }
        wrong++;
    }

    private String label(RankCache.PoolPart pool, String item) {
        return "rank %d, %s, %s".formatted(cache.rank(), pool.label(), item);
    }

    /** Says which byte is wrong, and how. */
    static String describe(String place, MemorySegment found, MemorySegment expected, long offset) {
        return "%s is 0x%02x, should be 0x%02x"
                .formatted(
                        place,
                        found.get(ValueLayout.JAVA_BYTE, offset),
                        expected.get(ValueLayout.JAVA_BYTE, offset));
    }
}
