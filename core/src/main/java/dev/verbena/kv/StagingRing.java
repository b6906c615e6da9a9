package dev.verbena.kv;

import java.util.ArrayDeque;

/**
 * Hands out regions of a decode rank's staging area, in order, round and round.
 *
 * <p>Positions are counted in bytes and only grow; the byte at position p lies at p modulo the
 * ring's size, so that position divided by size is the round. A region never wraps: where the rest
 * of a round is too short it is skipped.
 *
 * <pre>
 *            tail                      head
 *   ..free  |  a  |  b (released)  | c  |  not given out yet ..
 * </pre>
 *
 * <p>A region is given out at once, even where an older one still lies: it may be written when all
 * that overlaps it is free, which is when its end is at most {@link #tail} plus the size. So who
 * knows the tail, the watermark, knows what it may write. Regions are released in any order; the
 * tail moves in the order of giving out.
 *
 * <p>Not thread-safe: its owner's lock guards it.
 */
final class StagingRing {
    /** A region that is in use. */
    static final class Region {
        private final long start;
        private final long bytes;

        private boolean released;

        private Region(long start, long bytes) {
            this.start = start;
            this.bytes = bytes;
        }

        /** Position of its first byte. */
        long start() {
            return start;
        }

        /** Position behind its last byte. */
        long end() {
            return start + bytes;
        }
    }

    private final long size;
    private final ArrayDeque<Region> inUse = new ArrayDeque<>();
    private long head;

    /** Makes a ring of so many bytes. */
    StagingRing(long size) {
        Checks.positive("bytes of the staging ring", size);
        this.size = size;
    }

    long size() {
        return size;
    }

    /** Everything before this position is free, also what was skipped right before it. */
    long tail() {
        Region oldest = inUse.peek();
        return oldest == null ? head : oldest.start;
    }

    /** Regions given out and not released, or released and not yet passed by the tail. */
    int regionsInUse() {
        return inUse.size();
    }

    /** Offset of a position in the area. */
    long offset(long position) {
        return position % size;
    }

    /** Whether a region that ends at a position may be written while the tail is at another. */
    static boolean isFree(long end, long tail, long size) {
        return end - tail <= size;
    }

    /**
     * Gives out the next region.
     *
     * @param bytes its length, at most the ring's size
     * @throws IllegalArgumentException if the length is negative or above the size
     */
    Region allocate(long bytes) {
        Checks.notNegative("bytes of a staging region", bytes);
        if (bytes > size) {
            throw new IllegalArgumentException(
                    "%d bytes do not fit into a staging ring of %d".formatted(bytes, size));
        }
        long left = size - offset(head);
        long start = bytes > left ? head + left : head;
        Region region = new Region(start, bytes);
        head = start + bytes;
        inUse.add(region);
        return region;
    }

    /**
     * Takes a region back. Again, it does nothing.
     *
     * @return true if the tail moved
     */
    boolean release(Region region) {
        long before = tail();
        region.released = true;
        while (!inUse.isEmpty() && inUse.element().released) {
            inUse.remove();
        }
        return tail() != before;
    }
}
