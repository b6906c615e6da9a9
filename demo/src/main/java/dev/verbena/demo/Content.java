package dev.verbena.demo;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * What stands in for computed state: a pattern by seed, pool of the whole model, unit (a token, or
 * one slot's state) and place within the unit as the whole model has it. So every rank knows what
 * its part should be, however the parts are cut; no two units are alike, nor a unit and itself
 * moved by some bytes, so whatever lands in the wrong place shows.
 *
 * <p>Immutable, safe to share.
 */
final class Content {
    private static final ValueLayout.OfLong WORD =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** Between words of a unit: 2^64 by the golden ratio, odd, so no word comes twice. */
    private static final long STEP = 0x9e3779b97f4a7c15L;

    private final long seed;

    /** Makes the content of a request. */
    Content(long seed) {
        this.seed = seed;
    }

    /**
     * Fills a part of one unit.
     *
     * @param target memory
     * @param offset where in it the part begins
     * @param pool number of the pool in the whole model
     * @param unit number of the token, or 0 for the state of a slot
     * @param first where in the unit of the whole model the part begins, in bytes
     * @param length of the part in bytes
     */
    void fill(MemorySegment target, long offset, long pool, long unit, long first, long length) {
        long start = mix(mix(seed ^ mix(pool + 1)) ^ unit);
        long done = 0;
        if (first % Long.BYTES == 0) {
            long word = start + STEP * (first / Long.BYTES);
            for (; done + Long.BYTES <= length; done += Long.BYTES) {
                target.set(WORD, offset + done, word);
                word += STEP;
            }
        }
        for (; done < length; done++) {
            long at = first + done;
            long word = start + STEP * (at / Long.BYTES);
            byte value = (byte) (word >>> (Byte.SIZE * (at % Long.BYTES)));
            target.set(ValueLayout.JAVA_BYTE, offset + done, value);
        }
    }

    /** The finishing steps of SplitMix64: every bit of the input matters to every bit given. */
    private static long mix(long value) {
        long z = value + STEP;
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }
}
