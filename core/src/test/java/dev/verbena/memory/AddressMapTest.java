package dev.verbena.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.verbena.bindings.testing.AllocationCounter;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/**
 * The table answers as a walk over the list of regions would, for any address and range, those in
 * the upper half of the address space included.
 */
class AddressMapTest {
    private static final long SEED = 20260101;

    private record Region(long address, long lengthBytes, int key, String owner) {
        boolean holds(long at) {
            return at - address >= 0 && at - address < lengthBytes;
        }
    }

    @Test
    void findsWhatAWalkOverTheRegionsFinds() {
        Random random = new Random(SEED);
        for (int round = 0; round < 200; round++) {
            List<Region> regions = regions(random, random.nextInt(40));
            AddressMap<String> map = map(regions, random);
            for (long address : interesting(regions, random)) {
                Region expected = holder(regions, address);
                int index = map.find(address);
                int hint = random.nextInt(-2, regions.size() + 2);
                assertThat(map.find(address, hint))
                        .as("seed %d, hint %d, address 0x%x", SEED, hint, address)
                        .isEqualTo(index);
                if (expected == null) {
                    assertThat(index).as("seed %d, 0x%x", SEED, address).isNegative();
                } else {
                    assertThat(map.key(index)).isEqualTo(expected.key);
                    assertThat(map.owner(index)).isSameAs(expected.owner);
                    assertThat(map.end(index)).isEqualTo(expected.address + expected.lengthBytes);
                }
            }
        }
    }

    @Test
    void coversWhatAWalkOverTheBytesCovers() {
        Random random = new Random(SEED);
        for (int round = 0; round < 300; round++) {
            List<Region> regions = regions(random, 1 + random.nextInt(12));
            AddressMap<String> map = map(regions, random);
            for (int probe = 0; probe < 50; probe++) {
                Region first = regions.get(random.nextInt(regions.size()));
                long address = first.address + random.nextLong(first.lengthBytes);
                long length = random.nextInt(100);

                assertThat(map.covers(map.find(address), address, length))
                        .as("seed %d, 0x%x+%d in %s", SEED, address, length, regions)
                        .isEqualTo(everyByteHeld(regions, first.owner, address, length));
            }
        }
    }

    @Test
    void coversReachesOverNeighboursOfOneOwnerOnly() {
        AddressMap<String> map =
                AddressMap.of(
                        List.of(
                                new AddressMap.Entry<>(100, 10, 1, "a"),
                                new AddressMap.Entry<>(110, 10, 2, "a"),
                                new AddressMap.Entry<>(120, 10, 3, "b"),
                                new AddressMap.Entry<>(140, 10, 4, "b")));

        assertThat(map.covers(0, 100, 20)).isTrue();
        assertThat(map.covers(0, 109, 11)).isTrue();
        assertThat(map.covers(0, 100, 21)).as("another owner's").isFalse();
        assertThat(map.covers(2, 120, 10)).isTrue();
        assertThat(map.covers(2, 120, 11)).as("a gap").isFalse();
        assertThat(map.covers(3, 149, 1)).isTrue();
        assertThat(map.covers(3, 149, 2)).as("the end").isFalse();
        assertThat(map.covers(0, 100, 0)).isTrue();
    }

    @Test
    void coversNothingOfLengthsThatAreNegativeOrWrapAround() {
        AddressMap<String> map =
                AddressMap.of(
                        List.of(
                                new AddressMap.Entry<>(100, 10, 1, "low"),
                                new AddressMap.Entry<>(-100, 50, 2, "high")));

        assertThat(map.covers(0, 105, -1)).isFalse();
        assertThat(map.covers(0, 105, Long.MIN_VALUE)).isFalse();
        assertThat(map.covers(0, 105, Long.MAX_VALUE)).isFalse();
        assertThat(map.covers(1, -90, 100)).isFalse();
        assertThat(map.covers(1, -90, Long.MAX_VALUE)).isFalse();
    }

    @Test
    void refusesRegionsThatOverlapAndNamesBoth() {
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        AddressMap.of(
                                List.of(
                                        new AddressMap.Entry<>(110, 10, 1, "second"),
                                        new AddressMap.Entry<>(100, 11, 2, "first"))))
                .withMessageContaining("first")
                .withMessageContaining("second");
    }

    @Test
    void refusesRegionsThatAreEmptyOrPassTheAddressSpace() {
        for (long length : new long[] {0, -1, Long.MAX_VALUE}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() ->
                            AddressMap.of(List.of(new AddressMap.Entry<>(-100, length, 1, "it"))))
                    .withMessageContaining("of it");
        }
    }

    @Test
    void emptyTableHoldsNothing() {
        AddressMap<String> map = AddressMap.of(List.of());

        assertThat(map.size()).isZero();
        assertThat(map.find(0)).isNegative();
        assertThat(map.find(-1, 0)).isNegative();
    }

    @Test
    void lookingUpAllocatesNothing() {
        Random random = new Random(SEED);
        List<Region> regions = regions(random, 60);
        AddressMap<String> map = map(regions, random);
        long[] addresses = interesting(regions, random);
        long[] sum = new long[1];

        long bytes =
                AllocationCounter.bytesOnceWarm(
                        500,
                        0,
                        () -> {
                            int hint = 0;
                            for (long address : addresses) {
                                int index = map.find(address, hint);
                                if (index >= 0 && map.covers(index, address, 64)) {
                                    sum[0] += map.key(index);
                                    hint = index;
                                }
                            }
                        });

        assertThat(bytes).isZero();
        assertThat(sum[0]).isNotZero();
    }

    /** Half of the rounds lie around the middle of the address space, where signs change. */
    private static List<Region> regions(Random random, int count) {
        List<Region> regions = new ArrayList<>();
        long at = random.nextBoolean() ? 1 + random.nextInt(1000) : Long.MAX_VALUE - 500;
        String owner = "pool 0";
        for (int i = 0; i < count; i++) {
            if (random.nextBoolean()) {
                at += 1 + random.nextInt(20);
            }
            if (random.nextInt(3) == 0) {
                owner = "pool " + i;
            }
            long length = 1 + random.nextInt(40);
            regions.add(new Region(at, length, random.nextInt(), owner));
            at += length;
        }
        return regions;
    }

    private static AddressMap<String> map(List<Region> regions, Random random) {
        List<AddressMap.Entry<String>> entries = new ArrayList<>();
        for (Region region : regions) {
            entries.add(
                    new AddressMap.Entry<>(
                            region.address, region.lengthBytes, region.key, region.owner));
        }
        Collections.shuffle(entries, random);
        return AddressMap.of(entries);
    }

    private static long[] interesting(List<Region> regions, Random random) {
        List<Long> addresses = new ArrayList<>(List.of(0L, 1L, -1L, Long.MIN_VALUE));
        for (Region region : regions) {
            long end = region.address + region.lengthBytes;
            addresses.addAll(List.of(region.address - 1, region.address, end - 1, end));
            addresses.add(region.address + random.nextLong(region.lengthBytes));
        }
        return addresses.stream().mapToLong(Long::longValue).toArray();
    }

    private static Region holder(List<Region> regions, long address) {
        return regions.stream().filter(r -> r.holds(address)).findFirst().orElse(null);
    }

    private static boolean everyByteHeld(
            List<Region> regions, String owner, long address, long lengthBytes) {
        for (long i = 0; i < lengthBytes; i++) {
            Region region = holder(regions, address + i);
            if (region == null || !region.owner.equals(owner)) {
                return false;
            }
        }
        return true;
    }
}
