package dev.verbena.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.verbs.Access;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** A peer's pools give addresses inside them only, and a table with one entry per region. */
class RemotePoolTest {
    private static final RemotePool KV =
            pool("kv", 0x10000, new PoolDescriptor.Region(0x2000, 11), region(0x1000, 12));

    @Test
    void givesAddressesInsideThePool() {
        assertThat(KV.address(0, 0x3000)).isEqualTo(0x10000);
        assertThat(KV.address(0x2fff, 1)).isEqualTo(0x12fff);
        assertThat(KV.address(0x3000, 0)).isEqualTo(0x13000);
    }

    @Test
    void refusesRangesThatLeaveThePool() {
        long[][] bad = {
            {0, 0x3001}, {0x3000, 1}, {-1, 1}, {0, -1}, {1, Long.MAX_VALUE}, {Long.MAX_VALUE, 1}
        };
        for (long[] range : bad) {
            assertThatThrownBy(() -> KV.address(range[0], range[1]))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    @Test
    void mapsEachRegionToItsKey() {
        RemotePool aux = pool("aux", 0x20000, region(0x1000, 21));

        AddressMap<RemotePool> map = RemotePool.map(List.of(aux, KV));

        assertThat(map.size()).isEqualTo(3);
        assertThat(map.key(map.find(0x10000))).isEqualTo(11);
        assertThat(map.key(map.find(0x12000))).isEqualTo(12);
        assertThat(map.owner(map.find(0x12fff))).isSameAs(KV);
        assertThat(map.key(map.find(0x20000))).isEqualTo(21);
        assertThat(map.find(0x13000)).isNegative();
        assertThat(map.covers(map.find(0x10000), 0x10000, 0x3000)).isTrue();
    }

    @Test
    void mapsARangeOfTwoNamesOnce() {
        RemotePool alias = pool("alias", 0x10000, region(0x2000, 11), region(0x1000, 12));

        AddressMap<RemotePool> map = RemotePool.map(List.of(KV, alias));

        assertThat(map.size()).isEqualTo(2);
        assertThat(map.owner(0)).isSameAs(KV);
    }

    @Test
    void refusesPoolsThatOverlapInPart() {
        RemotePool other = pool("other", 0x12000, region(0x2000, 31));

        assertThatIllegalArgumentException()
                .isThrownBy(() -> RemotePool.map(List.of(KV, other)))
                .withMessageContaining("'kv'")
                .withMessageContaining("'other'");
    }

    private static RemotePool pool(String name, long address, PoolDescriptor.Region... regions) {
        long length = 0;
        for (PoolDescriptor.Region region : regions) {
            length += region.lengthBytes();
        }
        return new RemotePool(
                new PoolDescriptor(
                        name, 1, address, length, Set.of(Access.REMOTE_WRITE), List.of(regions)));
    }

    private static PoolDescriptor.Region region(long lengthBytes, int key) {
        return new PoolDescriptor.Region(lengthBytes, key);
    }
}
