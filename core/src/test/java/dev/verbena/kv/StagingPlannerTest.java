package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

/** Category 5: gather, bulk write and scatter amount to the head slices, byte by byte. */
class StagingPlannerTest {
    private static final KvPools PREFILL =
            KvPools.of(new long[] {1000, 2000}, new long[] {16, 16}, new int[] {4, 4});
    private static final KvPools DECODE =
            KvPools.of(new long[] {5000, 6000}, new long[] {8, 8}, new int[] {4, 4});
    private static final HeadSlice SLICE = RankMap.of(1, 2, 4).slice(0, 1);
    private static final int[] PAGES = {2, 0};

    @Test
    void amountsToTheHeadSlices() {
        Seeds.forEach(
                2000,
                random -> {
                    RandomRanks ranks = new RandomRanks(random);
                    int decodeRank = random.nextInt(ranks.decodeSize);
                    int length = RandomLayouts.length(random, ranks.items);
                    int[] sources = RandomLayouts.sources(random, length, ranks.items);
                    int[] targets = RandomLayouts.distinct(random, length, ranks.items);

                    for (int prefillRank : ranks.map.prefillRanksOf(decodeRank)) {
                        ByteMap staged = staged(ranks, prefillRank, decodeRank, sources, targets);

                        ByteMap sliced =
                                ByteMap.of(
                                        HeadSlicePlanner.plan(
                                                ranks.prefill(prefillRank),
                                                ranks.decode(decodeRank),
                                                ranks.pageTokens,
                                                ranks.map.slice(prefillRank, decodeRank),
                                                sources,
                                                targets));
                        staged.assertSame(sliced);
                    }
                });
    }

    private static ByteMap staged(
            RandomRanks ranks, int prefillRank, int decodeRank, int[] sources, int[] targets) {
        HeadSlice slice = ranks.map.slice(prefillRank, decodeRank);
        KvPools prefill = ranks.prefill(prefillRank);
        KvPools decode = ranks.decode(decodeRank);
        int tokens = ranks.pageTokens;
        long bytes = StagingPlanner.bytesPerRank(prefill, tokens, slice, sources.length);
        long offset = StagingPlanner.rankOffset(ranks.map, prefillRank, bytes);
        int regions = ranks.map.prefillRanksPerDecodeRank();
        StagingArea near = new StagingArea(RandomLayouts.STAGING_SPACE, bytes);
        StagingArea far = new StagingArea(RandomLayouts.STAGING_SPACE << 1, bytes * regions);

        ByteMap gathered = ByteMap.of(StagingPlanner.gather(prefill, tokens, slice, sources, near));
        ByteMap written = ByteMap.of(StagingPlanner.bulk(near, far, offset, bytes));
        ByteMap scattered =
                ByteMap.of(StagingPlanner.scatter(decode, tokens, slice, targets, far, offset));

        assertThat(gathered.bytes()).isEqualTo(bytes);
        return gathered.then(written).then(scattered);
    }

    @Test
    void givesEveryRankThatFacesADecodeRankARegion() {
        RankMap ranks = RankMap.of(8, 2, 4);

        assertThat(StagingPlanner.rankOffset(ranks, 3, 100)).isEqualTo(300);
        assertThat(StagingPlanner.rankOffset(ranks, 4, 100)).isZero();
        assertThat(StagingPlanner.rankOffset(RankMap.of(2, 8, 4), 1, 100)).isZero();
    }

    @Test
    void refusesAStagingAreaThatIsTooSmall() {
        StagingArea small = new StagingArea(9000, 31);

        assertThat(StagingPlanner.bytesPerRank(PREFILL, 2, SLICE, 2)).isEqualTo(32);
        assertThatThrownBy(() -> StagingPlanner.gather(PREFILL, 2, SLICE, PAGES, small))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("the staging area holds 31 bytes: too small for 32 bytes at offset 0");
        assertThatThrownBy(() -> StagingPlanner.scatter(DECODE, 2, SLICE, PAGES, small, 8))
                .hasMessage("the staging area holds 31 bytes: too small for 32 bytes at offset 8");
        StagingArea ample = new StagingArea(12000, 32);
        assertThatThrownBy(() -> StagingPlanner.bulk(ample, small, 0, 32))
                .hasMessage("the staging area holds 31 bytes: too small for 32 bytes at offset 0");
        assertThatThrownBy(() -> StagingPlanner.bulk(ample, ample, 1, 32))
                .hasMessage("the staging area holds 32 bytes: too small for 32 bytes at offset 1");
        assertThatThrownBy(() -> StagingPlanner.bulk(ample, ample, Long.MAX_VALUE, 32))
                .hasMessageContaining("at offset 9223372036854775807");
    }

    @Test
    void refusesAStagingAreaThatOverlapsAPool() {
        StagingArea inside = new StagingArea(2063, 32);

        assertThatThrownBy(() -> StagingPlanner.gather(PREFILL, 2, SLICE, PAGES, inside))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("overlaps prefill pool 1");
        assertThatThrownBy(() ->
                        StagingPlanner.scatter(
                                DECODE, 2, SLICE, PAGES, new StagingArea(4969, 32), 0))
                .hasMessageContaining("overlaps decode pool 0");
    }

    @Test
    void acceptsAStagingAreaThatTouchesAPool() {
        StagingArea below = new StagingArea(2000 - 32, 32);
        StagingArea above = new StagingArea(2064, 32);

        assertThat(StagingPlanner.gather(PREFILL, 2, SLICE, PAGES, below).bytes()).isEqualTo(32);
        assertThat(StagingPlanner.gather(PREFILL, 2, SLICE, PAGES, above).bytes()).isEqualTo(32);
    }

    @Test
    void refusesPagesOutsideTheirPool() {
        StagingArea ample = new StagingArea(9000, 100);
        int[] pages = {3, 4};

        assertThatThrownBy(() -> StagingPlanner.gather(PREFILL, 2, SLICE, pages, ample))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("prefillPages[1] = 4 is outside 0..3: prefill pool 0 holds 4 items");
        assertThatThrownBy(() -> StagingPlanner.scatter(DECODE, 2, SLICE, pages, ample, 0))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("decodePages[1] = 4 is outside 0..3: decode pool 0 holds 4 items");
    }

    @Test
    void refusesToScatterTwiceIntoAPage() {
        StagingArea ample = new StagingArea(9000, 100);
        int[] pages = {3, 1, 3};

        assertThatThrownBy(() -> StagingPlanner.scatter(DECODE, 2, SLICE, pages, ample, 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("decodePages[0] and decodePages[2] are both 3: destinations overlap");
    }

    @Test
    void refusesAnItemLengthThatIsNotTokensAndHeads() {
        StagingArea ample = new StagingArea(9000, 100);

        assertThatThrownBy(() -> StagingPlanner.gather(PREFILL, 3, SLICE, PAGES, ample))
                .hasMessageContaining("prefill pool 0 is 16 bytes, not divisible into 3 tokens");
        assertThatThrownBy(() -> StagingPlanner.scatter(DECODE, 3, SLICE, PAGES, ample, 0))
                .hasMessageContaining("decode pool 0 is 8 bytes, not divisible into 3 tokens");
    }

    @Test
    void refusesNumbersOutOfRange() {
        assertThatThrownBy(() -> new StagingArea(-1, 1))
                .hasMessage("base of the staging area is -1, must not be negative");
        assertThatThrownBy(() -> new StagingArea(1, -1))
                .hasMessage("length of the staging area is -1, must not be negative");
        assertThatThrownBy(() -> new StagingArea(Long.MAX_VALUE, 1))
                .hasMessageContaining("end of the staging area");
        assertThatThrownBy(() -> StagingPlanner.bytesPerRank(PREFILL, 2, SLICE, -1))
                .hasMessage("pages is -1, must not be negative");
        assertThatThrownBy(() -> StagingPlanner.rankOffset(RankMap.of(4, 1, 4), 3, 1L << 62))
                .hasMessageContaining("offset of rank 3");
        assertThatThrownBy(() -> StagingPlanner.rankOffset(RankMap.of(4, 1, 4), 4, 1))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("prefill rank 4 is outside 0..3: the TP size is 4");
        StagingArea ample = new StagingArea(9000, 100);
        assertThatThrownBy(() -> StagingPlanner.scatter(DECODE, 2, SLICE, PAGES, ample, -1))
                .hasMessage("offset of the region is -1, must not be negative");
    }

    @Test
    void refusesARegionThatExceeds64Bits() {
        KvPools large = KvPools.of(new long[] {0}, new long[] {1L << 40}, new int[] {1 << 20});
        HeadSlice whole = RankMap.of(1, 1, 1).slice(0, 0);

        assertThatThrownBy(() -> StagingPlanner.bytesPerRank(large, 1, whole, 1 << 30))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("staged bytes: 1099511627776 x 1073741824 exceeds 64 bits");
    }
}
