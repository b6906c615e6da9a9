package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.transfer.TransferBatch;
import java.util.Arrays;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Category 3, byte by byte: token t of page p goes where the request's token list says. */
class HiSparsePlannerTest {
    private static final KvPools PREFILL =
            KvPools.of(new long[] {1000}, new long[] {8}, new int[] {4});
    private static final KvPools DECODE =
            KvPools.of(new long[] {5000}, new long[] {2}, new int[] {20});

    @Test
    void movesEveryTokenThatExists() {
        Seeds.forEach(
                4000,
                random -> {
                    int pageTokens = 1 + random.nextInt(5);
                    int pools = 1 + random.nextInt(3);
                    int pages = RandomLayouts.length(random, 5);
                    int first = random.nextInt(4);
                    int limit = (first + pages) * pageTokens + 1;
                    int tokens = Math.max(0, limit - 1 - random.nextInt(pageTokens + 2));
                    long[] tokenBytes = RandomLayouts.itemBytes(random, pools, 4);
                    long[] pageBytes = LongStream.of(tokenBytes).map(b -> b * pageTokens).toArray();
                    KvPools prefill =
                            RandomLayouts.pools(random, RandomLayouts.PREFILL_SPACE, pageBytes, 6);
                    KvPools decode =
                            RandomLayouts.pools(
                                    random, RandomLayouts.DECODE_SPACE, tokenBytes, limit);
                    int[] sources = RandomLayouts.sources(random, pages, 6);
                    int[] slots = RandomLayouts.distinct(random, tokens, limit);

                    TransferBatch batch =
                            HiSparsePlanner.plan(
                                    prefill,
                                    decode,
                                    pageTokens,
                                    new PageSlice(first, first + pages),
                                    sources,
                                    slots);

                    ByteMap model = new ByteMap();
                    for (int page = first; page < first + pages; page++) {
                        for (int t = 0; t < pageTokens; t++) {
                            int token = page * pageTokens + t;
                            for (int pool = 0; pool < pools && token < tokens; pool++) {
                                long bytes = tokenBytes[pool];
                                long source = (long) sources[page - first] * pageTokens + t;
                                model.copy(
                                        prefill.base(pool) + source * bytes,
                                        decode.base(pool) + slots[token] * bytes,
                                        bytes);
                            }
                        }
                    }
                    ByteMap.of(batch).assertSame(model);
                });
    }

    @Test
    void joinsTokensAcrossPages() {
        TransferBatch batch = new TransferBatch();

        HiSparsePlanner.fill(
                batch,
                PREFILL,
                DECODE,
                4,
                new PageSlice(1, 3),
                new int[] {2, 3},
                new int[] {0, 1, 2, 3, 10, 11, 12, 13, 14, 15});

        assertThat(NormalForm.blocks(batch)).containsExactly(new NormalForm.Move(1016, 5020, 12));
    }

    @Test
    void refusesASliceOfAnotherLengthThanItsPages() {
        assertThatThrownBy(() -> plan(4, new PageSlice(1, 4), new int[] {0, 1}, new int[16]))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("prefillPages has 2 entries and the slice 1..4 has 3 pages");
    }

    @Test
    void refusesATokenOutsideItsPoolAndNamesItsPositionInTheRequest() {
        int[] tokens = {0, 1, 2, 3, 4, 20};

        assertThatThrownBy(() -> plan(4, new PageSlice(1, 2), new int[] {0}, tokens))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("decodeTokens[5] = 20 is outside 0..19: decode pool 0 holds 20 items");
    }

    @Test
    void refusesAPageOutsideItsPool() {
        assertThatThrownBy(() -> plan(4, new PageSlice(0, 1), new int[] {4}, new int[] {1}))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("prefillPages[0] = 4 is outside 0..3: prefill pool 0 holds 4 items");
    }

    @Test
    void refusesATokenSlotNamedTwice() {
        int[] tokens = {9, 9, 9, 9, 7, 3, 7};

        assertThatThrownBy(() -> plan(4, new PageSlice(1, 2), new int[] {0}, tokens))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("decodeTokens[4] and decodeTokens[6] are both 7: destinations overlap");
    }

    @Test
    void refusesPagesThatAreNotSoManyTokens() {
        assertThatThrownBy(() -> plan(3, new PageSlice(0, 0), new int[0], new int[0]))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("prefill pool 0 is 8 bytes, not 3 tokens of the 2 bytes");
        assertThatThrownBy(() -> plan(0, new PageSlice(0, 0), new int[0], new int[0]))
                .hasMessage("pageTokens is 0, must be at least 1");
    }

    @Test
    void refusesMoreTokensThanAnIndexCanCount() {
        KvPools pages = KvPools.of(new long[] {0}, new long[] {1 << 16}, new int[] {1 << 16});
        KvPools tokens = KvPools.of(new long[] {0}, new long[] {1}, new int[] {1});

        assertThatThrownBy(() ->
                        HiSparsePlanner.plan(
                                pages,
                                tokens,
                                1 << 16,
                                new PageSlice(0, 0),
                                new int[0],
                                new int[0]))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("prefill pool 0 holds 65536 pages of 65536 tokens");
    }

    @Test
    void refusesAnImpossibleSlice() {
        assertThatThrownBy(() -> new PageSlice(-1, 2))
                .hasMessage("first page of the slice is -1, must not be negative");
        assertThatThrownBy(() -> new PageSlice(3, 2))
                .hasMessage("page slice ends at 2, before its first page 3");
    }

    @Test
    void readsNoTokenOfOtherChunks() {
        int[] tokens = new int[8];
        Arrays.fill(tokens, -1);
        tokens[4] = 6;
        tokens[5] = 7;
        tokens[6] = 8;
        tokens[7] = 9;

        assertThat(NormalForm.of(plan(4, new PageSlice(1, 2), new int[] {1}, tokens)))
                .containsExactly(new NormalForm.Move(1008, 5012, 8));
    }

    private static TransferBatch plan(
            int pageTokens, PageSlice slice, int[] prefillPages, int[] decodeTokens) {
        return HiSparsePlanner.plan(PREFILL, DECODE, pageTokens, slice, prefillPages, decodeTokens);
    }
}
