package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Regions of the ring that may be written at the same time never overlap, and none is lost. */
class StagingRingTest {
    @Test
    void regionsFollowOneAnother() {
        StagingRing ring = new StagingRing(100);

        StagingRing.Region first = ring.allocate(30);
        StagingRing.Region second = ring.allocate(70);

        assertThat(first.start()).isZero();
        assertThat(second.start()).isEqualTo(30);
        assertThat(second.end()).isEqualTo(100);
    }

    @Test
    void aRegionDoesNotWrapButSkipsTheRestOfTheRound() {
        StagingRing ring = new StagingRing(100);
        ring.allocate(60);

        StagingRing.Region region = ring.allocate(50);

        assertThat(region.start()).isEqualTo(100);
        assertThat(ring.offset(region.start())).isZero();
    }

    @Test
    void aRegionOfTheWholeRingFitsAndALargerOneIsRefused() {
        StagingRing ring = new StagingRing(100);
        ring.allocate(1);

        assertThat(ring.allocate(100).start()).isEqualTo(100);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ring.allocate(101))
                .withMessageContaining("101")
                .withMessageContaining("100");
        assertThatIllegalArgumentException().isThrownBy(() -> ring.allocate(-1));
    }

    @Test
    void theTailMovesInTheOrderOfGivingOut() {
        StagingRing ring = new StagingRing(100);
        StagingRing.Region first = ring.allocate(40);
        StagingRing.Region second = ring.allocate(40);

        assertThat(ring.release(second)).as("tail moved").isFalse();
        assertThat(ring.tail()).isZero();
        assertThat(ring.release(first)).as("tail moved").isTrue();
        assertThat(ring.tail()).isEqualTo(80);
        assertThat(ring.regionsInUse()).isZero();
    }

    @Test
    void releasingTwiceChangesNothing() {
        StagingRing ring = new StagingRing(100);
        StagingRing.Region first = ring.allocate(40);
        ring.release(first);
        StagingRing.Region second = ring.allocate(40);

        assertThat(ring.release(first)).isFalse();
        assertThat(ring.tail()).isEqualTo(second.start());
        assertThat(ring.regionsInUse()).isEqualTo(1);
    }

    @Test
    void aSkipNeverKeepsTheOldestRegionFromBeingWritten() {
        StagingRing ring = new StagingRing(100);
        ring.release(ring.allocate(1));

        StagingRing.Region whole = ring.allocate(100);

        assertThat(StagingRing.isFree(whole.end(), ring.tail(), ring.size())).isTrue();
        ring.release(whole);
        assertThat(ring.tail()).isEqualTo(200);
    }

    /**
     * Random lengths, released in random order: what may be written by the watermark's rule never
     * overlaps anything else in use, everything in use comes to be free to write, and in the end
     * nothing is left.
     */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void writableRegionsNeverOverlapAndAllBecomeWritable(long seed) {
        Random random = new Random(seed);
        int size = 1 + random.nextInt(1000);
        StagingRing ring = new StagingRing(size);
        List<StagingRing.Region> live = new ArrayList<>();
        for (int step = 0; step < 5000; step++) {
            if (random.nextBoolean() && live.size() < 20) {
                live.add(ring.allocate(random.nextInt(size + 1)));
            } else if (!live.isEmpty()) {
                List<StagingRing.Region> writable = writable(ring, live);
                assertThat(writable).as("step %d: the oldest may be written", step).isNotEmpty();
                StagingRing.Region region = writable.get(random.nextInt(writable.size()));
                live.remove(region);
                ring.release(region);
            }
            assertApart(ring, writable(ring, live), live, step);
        }
        live.forEach(ring::release);
        assertThat(ring.regionsInUse()).isZero();
    }

    /**
     * Every sequence of giving out and releasing, in a ring of each small size: with regions of any
     * length and released in any order, written before or not. After every step, regions that may
     * be written are apart, the oldest may be, and the tail is where a naive model says; at the end
     * of every sequence the rest is released and nothing is left.
     */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4})
    void everyShortSequenceKeepsTheRules(int size) {
        int checked = walk(size, new ArrayList<>(), size < 4 ? 7 : 6);

        assertThat(checked).as("sequences").isGreaterThan(1000);
    }

    /** A step is the length of a region to give out, or, if negative, which to release. */
    private static int walk(int size, List<Integer> steps, int left) {
        List<StagingRing.Region> live = replay(size, steps);
        if (left == 0) {
            return 1;
        }
        int checked = 0;
        for (int step = -live.size(); step <= size; step++) {
            steps.add(step);
            checked += walk(size, steps, left - 1);
            steps.removeLast();
        }
        return checked;
    }

    /** Plays a sequence, checks the rules, and gives what is in use before the rest is released. */
    private static List<StagingRing.Region> replay(int size, List<Integer> steps) {
        StagingRing ring = new StagingRing(size);
        List<StagingRing.Region> given = new ArrayList<>();
        List<StagingRing.Region> live = new ArrayList<>();
        for (int step : steps) {
            if (step < 0) {
                long before = ring.tail();
                boolean moved = ring.release(live.remove(-step - 1));
                assertThat(moved).as("%s: moved", steps).isEqualTo(ring.tail() > before);
            } else {
                given.add(ring.allocate(step));
                live.add(given.getLast());
            }
        }
        List<StagingRing.Region> writable = writable(ring, live);
        assertApart(ring, writable, live, steps.size());
        if (!live.isEmpty()) {
            assertThat(writable).as("%s: the oldest", steps).contains(live.getFirst());
        }
        long naiveTail =
                !live.isEmpty()
                        ? live.getFirst().start()
                        : given.isEmpty() ? 0 : given.getLast().end();
        assertThat(ring.tail()).as("%s: tail", steps).isEqualTo(naiveTail);

        List<StagingRing.Region> inUse = List.copyOf(live);
        live.reversed().forEach(ring::release);
        assertThat(ring.regionsInUse()).as("%s: left", steps).isZero();
        return inUse;
    }

    private static List<StagingRing.Region> writable(
            StagingRing ring, List<StagingRing.Region> live) {
        return live.stream()
                .filter(region -> StagingRing.isFree(region.end(), ring.tail(), ring.size()))
                .toList();
    }

    private static void assertApart(
            StagingRing ring,
            List<StagingRing.Region> writable,
            List<StagingRing.Region> live,
            int step) {
        for (StagingRing.Region region : writable) {
            long start = ring.offset(region.start());
            long end = start + region.end() - region.start();
            assertThat(end)
                    .as("step %d: region within the area", step)
                    .isLessThanOrEqualTo(ring.size());
            for (StagingRing.Region other : writable) {
                if (!other.equals(region) && live.contains(other)) {
                    long otherStart = ring.offset(other.start());
                    long otherEnd = otherStart + other.end() - other.start();
                    assertThat(start < otherEnd && otherStart < end)
                            .as(
                                    "step %d: %d..%d and %d..%d overlap",
                                    step, start, end, otherStart, otherEnd)
                            .isFalse();
                }
            }
        }
    }
}
