package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Pools and layouts: sizes, layer ids, and what they refuse. */
class KvPoolsTest {
    private static final KvPools FOUR =
            KvPools.of(
                    new long[] {1000, 2000, 3000, 4000},
                    new long[] {8, 16, 8, 16},
                    new int[] {10, 20, 10, 20});

    @Test
    void describesALlamaOf8BillionParameters() {
        KvLayout layout = new KvLayout.Heads(32, 8, 128, 2, 16);

        assertThat(layout.tokenBytes()).isEqualTo(2048);
        assertThat(layout.pageBytes()).isEqualTo(32768);
        assertThat(layout.poolCount()).isEqualTo(64);
        assertThat(layout.bytes(1)).isEqualTo(16 * 128 * 1024);
    }

    @Test
    void describesADeepSeekV3() {
        KvLayout layout = new KvLayout.Latent(61, 576, 2, 64);

        assertThat(layout.tokenBytes()).isEqualTo(1152);
        assertThat(layout.pageBytes()).isEqualTo(73728);
        assertThat(layout.poolCount()).isEqualTo(61);
        assertThat(layout.bytes(10)).isEqualTo(73728L * 61 * 10);
    }

    @Test
    void laysPoolsOutBackToBack() {
        KvPools pools = new KvLayout.Heads(2, 2, 4, 1, 3).pools(1000, 5);

        assertThat(pools.size()).isEqualTo(4);
        assertThat(IntStream.range(0, 4).mapToLong(pools::base))
                .containsExactly(1000L, 1120L, 1240L, 1360L);
        assertThat(IntStream.range(0, 4).map(pools::layer)).containsExactly(0, 1, 0, 1);
        assertThat(IntStream.range(0, 4).mapToLong(pools::bytes)).containsOnly(120L);
        assertThat(pools.hasLayers()).isTrue();
        assertThat(pools).hasToString("KvPools[4 pools, 480 bytes]");
    }

    @Test
    void keepsOnlyTheLayersAsked() {
        KvPools pools = FOUR.withLayerRange(7, 2).onlyLayers(8, 5);

        assertThat(pools.size()).isEqualTo(2);
        assertThat(pools.base(0)).isEqualTo(2000);
        assertThat(pools.base(1)).isEqualTo(4000);
        assertThat(pools.itemBytes(1)).isEqualTo(16);
        assertThat(pools.itemCount(1)).isEqualTo(20);
        assertThat(pools.layer(1)).isEqualTo(8);
    }

    @Test
    void leavesOutTheLayersBehindTheRange() {
        KvPools pools = FOUR.withLayers(3, 4, 5, 6).onlyLayers(4, 2);

        assertThat(IntStream.range(0, pools.size()).map(pools::layer)).containsExactly(4, 5);
    }

    @Test
    void numbersPoolsWithoutLayersByPosition() {
        assertThat(FOUR.hasLayers()).isFalse();
        assertThat(FOUR.layer(3)).isEqualTo(3);
    }

    @Test
    void refusesArraysOfDifferentLength() {
        assertThatThrownBy(() -> KvPools.of(new long[2], new long[3], new int[2]))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "bases has 2 entries, itemBytes 3 and itemCounts 2: one per pool is"
                                + " needed");
        assertThatThrownBy(() -> KvPools.of(new long[0], new long[0], new int[0]))
                .hasMessage("number of pools is 0, must be at least 1");
    }

    @Test
    void refusesValuesOutOfRange() {
        assertThatThrownBy(() -> one(-1, 1, 1))
                .hasMessage("base of pool 0 is -1, must not be negative");
        assertThatThrownBy(() -> one(1, 0, 1))
                .hasMessage("itemBytes of pool 0 is 0, must be at least 1");
        assertThatThrownBy(() -> one(1, 1, -2))
                .hasMessage("itemCount of pool 0 is -2, must be at least 1");
    }

    @Test
    void refusesPoolsThatPassTheEndOfTheAddressSpace() {
        assertThatThrownBy(() -> one(0, 1L << 62, 4))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("bytes of pool 0: 4611686018427387904 x 4 exceeds 64 bits");
        assertThatThrownBy(() -> one(Long.MAX_VALUE - 3, 2, 2))
                .hasMessage("end of pool 0: 9223372036854775804 + 4 exceeds 64 bits");
    }

    @Test
    void refusesPoolsThatOverlap() {
        assertThatThrownBy(() ->
                        KvPools.of(
                                new long[] {2000, 500, 1000},
                                new long[] {1, 1, 10},
                                new int[] {5, 5, 101}))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "pools 0 and 2 overlap: pool 2 is 1010 bytes from 0x3e8,"
                                + " pool 0 begins at 0x7d0");
    }

    @Test
    void refusesLayerIdsThatDoNotFit() {
        assertThatThrownBy(() -> FOUR.withLayers(1, 2))
                .hasMessage("layerIds has 2 entries for 4 pools");
        assertThatThrownBy(() -> FOUR.withLayers(1, 2, -3, 4))
                .hasMessage("layerIds[2] is -3, must not be negative");
        assertThatThrownBy(() -> FOUR.withLayerRange(0, 3))
                .hasMessage("4 pools cannot be divided into 3 layers");
        assertThatThrownBy(() -> FOUR.withLayerRange(Integer.MAX_VALUE, 2))
                .hasMessage("firstLayer 2147483647 leaves no ids for 2 layers");
        assertThatThrownBy(() -> FOUR.withLayerRange(0, 2).onlyLayers(2, 2))
                .hasMessage("no pool is of layer 2..3");
        assertThatThrownBy(() -> FOUR.onlyLayers(0, 1))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("these pools have no layer ids to choose by");
    }

    @Test
    void refusesAPoolThatIsNotThere() {
        assertThatThrownBy(() -> FOUR.base(4)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> FOUR.bytes(-1)).isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    void refusesAnImpossibleLayout() {
        assertThatThrownBy(() -> new KvLayout.Heads(0, 8, 128, 2, 16))
                .hasMessage("layers is 0, must be at least 1");
        assertThatThrownBy(() -> new KvLayout.Heads(1, 8, 128, 2, -1))
                .hasMessage("pageTokens is -1, must be at least 1");
        assertThatThrownBy(() -> new KvLayout.Latent(1, 0, 2, 16))
                .hasMessage("latentValues is 0, must be at least 1");
        int most = Integer.MAX_VALUE;
        assertThatThrownBy(() -> new KvLayout.Heads(1, most, most, most, 1))
                .hasMessageContaining("bytes of a token");
        assertThatThrownBy(() -> new KvLayout.Latent(1, most, most, 4))
                .hasMessageContaining("bytes of a page");
        assertThatThrownBy(() -> new KvLayout.Heads(most, 1, 1, 1, 1).poolCount())
                .hasMessageContaining("layers is 2147483647");
    }

    @Test
    void refusesToLayOutWhatDoesNotFit() {
        KvLayout layout = new KvLayout.Latent(2, 1 << 30, 1 << 20, 1);

        assertThatThrownBy(() -> layout.bytes(1 << 13)).hasMessageContaining("exceeds 64 bits");
        assertThatThrownBy(() -> layout.bytes(-1)).hasMessageContaining("pages is -1");
        assertThatThrownBy(() -> layout.pools(0, 0)).hasMessageContaining("pages is 0");
        assertThatThrownBy(() -> layout.pools(-4, 1)).hasMessageContaining("base is -4");
        assertThatThrownBy(() -> layout.pools(Long.MAX_VALUE, 1))
                .hasMessageContaining("end of the pools");
    }

    private static KvPools one(long base, long itemBytes, int itemCount) {
        return KvPools.of(new long[] {base}, new long[] {itemBytes}, new int[] {itemCount});
    }
}
