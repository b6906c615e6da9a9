package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.verbena.kv.KvRoute.Category;
import dev.verbena.transfer.TransferBatch;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The category of a pair of ranks, its batches for each chunk and for what is moved once. */
class KvRouteTest {
    private static final KvSenderOptions DEFAULTS = KvSenderOptions.defaults();
    private static final ModelOfBytes HEADS = ModelOfBytes.heads(4);
    private static final ModelOfBytes LATENTS = ModelOfBytes.latents();
    private static final long DECODE = 1 << 20;

    @Test
    void theCategoryFollowsFromTheCachesAndTheOptions() {
        KvSenderOptions layers = DEFAULTS.layerByLayer(true);

        assertThat(category(HEADS, 2, 2, HEADS, DEFAULTS, true)).isEqualTo(Category.PAGES);
        assertThat(category(HEADS, 2, 2, HEADS, layers, false)).isEqualTo(Category.LAYERS);
        assertThat(category(LATENTS, 4, 2, LATENTS, DEFAULTS, true)).isEqualTo(Category.PAGES);
        assertThat(category(LATENTS, 2, 4, LATENTS, layers, true)).isEqualTo(Category.LAYERS);
        assertThat(category(HEADS, 4, 2, HEADS, layers, true)).isEqualTo(Category.STAGED);
        assertThat(category(HEADS, 2, 4, HEADS, DEFAULTS, true)).isEqualTo(Category.STAGED);
        assertThat(category(HEADS, 4, 2, HEADS, DEFAULTS, false)).isEqualTo(Category.HEADS);

        ModelOfBytes tokens = HEADS.withPageTokens(1);
        assertThat(category(HEADS, 2, 2, tokens, layers, true)).isEqualTo(Category.TOKENS);
        assertThat(category(tokens, 2, 2, tokens, DEFAULTS, true)).isEqualTo(Category.PAGES);
        assertThat(category(LATENTS, 4, 2, LATENTS.withPageTokens(1), DEFAULTS, true))
                .isEqualTo(Category.TOKENS);
    }

    @Test
    void cachesThatDoNotFitAreRefused() {
        refused(HEADS, 1, 1, LATENTS, "layout");
        refused(HEADS.withPageTokens(2), 1, 1, HEADS, "hold 2 tokens, those of the decode side 4");
        refused(HEADS, 1, 2, HEADS.withPageTokens(1), "between TP sizes 1 and 2");
        refused(HEADS, 4, 4, ModelOfBytes.heads(8), "4 KV heads and the decode side 8");
        refused(HEADS.withSwa(), 1, 1, HEADS, "state 'swa': the decode side has no such state");
        refused(HEADS.withMamba(), 1, 2, HEADS, "state 'mamba': the decode side has no such state");

        KvCache prefill = cache(HEADS, 2, 0, 0).mambaState("mamba", pools(0, 64));
        KvCache same = cache(HEADS, 2, 0, DECODE).mambaState("mamba", pools(DECODE * 2, 64));
        KvCache fewer = cache(HEADS, 1, 0, DECODE).mambaState("mamba", pools(DECODE * 2, 64));
        KvCache other = cache(HEADS, 2, 0, DECODE).mambaState("mamba", pools(DECODE * 2, 32));
        assertThat(KvRoute.of(prefill, same, DEFAULTS, false).takesPart()).isTrue();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KvRoute.of(prefill, fewer, DEFAULTS, false))
                .withMessageContaining("state 'mamba'")
                .withMessageContaining("its tensors must be described");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KvRoute.of(prefill, other, DEFAULTS, false))
                .withMessageContaining("state 'mamba': items of prefill pool 0 are 64 bytes");
        KvLayout paged = new KvLayout.Latent(1, 64, 1, 1);
        KvCache otherKind = cache(HEADS, 2, 0, DECODE).pageState("mamba", paged, pools(0, 64));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KvRoute.of(prefill, otherKind, DEFAULTS, false))
                .withMessageContaining("different kinds of state");
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        KvRoute.of(
                                prefill.aux(pools(0, 8)), same.aux(pools(0, 9)), DEFAULTS, false))
                .withMessageContaining("auxiliary buffers: items of prefill pool 0 are 8 bytes");
    }

    @Test
    void aChunkIsPlannedByThePlannerOfItsCategory() {
        int[] pages = {5, 3};
        int[] slots = {9, 8, 2, 7};
        KvPools from = cache(HEADS, 2, 1, 0).pools();
        KvPools to = cache(HEADS, 2, 1, DECODE).pools();
        int[] part = {2, 7};

        same(
                route(HEADS, 2, 1, HEADS, 2, 1, DEFAULTS).chunk(2, pages, slots),
                List.of(PagePlanner.plan(from, to, pages, part)));
        same(
                route(HEADS, 2, 1, HEADS, 2, 1, DEFAULTS.layerByLayer(true)).chunk(2, pages, slots),
                LayerPlanner.plan(from, to, pages, part));
        same(
                route(HEADS, 2, 1, HEADS, 2, 1, DEFAULTS.maxPagesPerBatch(1))
                        .chunk(2, pages, slots),
                PagePlanner.planBounded(from, to, pages, part, 1));

        KvPools whole = cache(HEADS, 1, 0, DECODE).pools();
        same(
                route(HEADS, 2, 1, HEADS, 1, 0, DEFAULTS).chunk(2, pages, slots),
                HeadSlicePlanner.planLayers(
                        from, whole, 4, RankMap.of(2, 1, 4).slice(1, 0), pages, part));

        ModelOfBytes tokens = HEADS.withPageTokens(1);
        int[] nine = {0, 1, 2, 3, 4, 5, 6, 7, 8};
        KvRoute toTokens = route(HEADS, 2, 1, tokens, 2, 1, DEFAULTS);
        assertThat(toTokens.pages(9)).isEqualTo(3);
        same(
                toTokens.chunk(1, pages, nine),
                List.of(
                        HiSparsePlanner.plan(
                                from,
                                cache(tokens, 2, 1, DECODE).pools(),
                                4,
                                new PageSlice(1, 3),
                                pages,
                                nine)));
    }

    /** Ranks that hold the same head: the first writes the KV, both send their Mamba state. */
    @Test
    void aReplicaSendsOnlyWhatHasNoReplicas() {
        ModelOfBytes model = ModelOfBytes.heads(1).withSwa().withMamba();
        KvRoute first = route(model, 2, 0, model, 1, 0, DEFAULTS);
        KvRoute second = route(model, 2, 1, model, 1, 0, DEFAULTS);
        KvSlots slots = KvSlots.pages(1).state("swa", 1).state("mamba", 1);
        int[][] decodeItems = {{0}, {0}};

        assertThat(first.chunk(0, new int[] {1}, new int[] {0})).isNotEmpty();
        assertThat(second.chunk(0, new int[] {1}, new int[] {0})).isEmpty();
        assertThat(first.states(slots, decodeItems)).hasSize(2);
        assertThat(second.states(slots, decodeItems)).hasSize(1);
        assertThat(second.takesPart()).isTrue();
        assertThat(
                        route(ModelOfBytes.heads(1), 2, 1, ModelOfBytes.heads(1), 1, 0, DEFAULTS)
                                .takesPart())
                .isFalse();
    }

    @Test
    void slotsOfThisSideAreRefusedByName() {
        ModelOfBytes model = HEADS.withSwa().withMamba().withAux();
        KvRoute route = route(model, 2, 0, model, 2, 0, DEFAULTS);
        int[][] theirs = {{1, 2}, {0}};

        assertThatIllegalArgumentException()
                .isThrownBy(() -> route.states(KvSlots.pages().state("swa", 1, 2), theirs))
                .withMessageContaining("state 'mamba' are missing");
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        route.states(KvSlots.pages().state("swa", 1).state("mamba", 0), theirs))
                .withMessageContaining("state 'swa': prefillStatePages has 1 entries");
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() ->
                        route.states(KvSlots.pages().state("swa", 1, 2).state("mamba", 6), theirs))
                .withMessageContaining("state 'mamba': prefillStates[0] = 6");
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> route.aux(9, 0));
    }

    @Test
    void slotsOfTheDecodeSideAreRefusedByName() {
        ModelOfBytes model = HEADS.withSwa().withMamba().withAux();
        KvRoute route = route(model, 2, 0, model, 2, 0, DEFAULTS);

        route.checkSlots(announcement(new int[] {1, 0}, new int[][] {{1, 2}, {0}}, 8));
        slotsRefused(route, new int[] {32}, new int[][] {{}, {0}}, 0, "decodePages[0] = 32");
        slotsRefused(route, new int[] {3, 3}, new int[][] {{}, {0}}, 0, "are both 3");
        slotsRefused(route, new int[] {3}, new int[][] {{12}, {0}}, 0, "state 'swa'[0] = 12");
        slotsRefused(route, new int[] {3}, new int[][] {{1}, {}}, 0, "exactly one Mamba state");
        slotsRefused(route, new int[] {3}, new int[][] {{1}}, 0, "1 states were announced");
        slotsRefused(route, new int[] {3}, new int[][] {{1}, {1}}, 9, "decodeIndex = 9");
        slotsRefused(
                route(HEADS, 2, 0, HEADS, 2, 1, DEFAULTS),
                new int[] {3},
                new int[][] {},
                -1,
                "prefill rank 0 has nothing to write to decode rank 1");
    }

    private static void slotsRefused(
            KvRoute route, int[] pages, int[][] states, int aux, String message) {
        assertThatExceptionOfType(RuntimeException.class)
                .isThrownBy(() -> route.checkSlots(announcement(pages, states, aux)))
                .matches(refused ->
                        refused instanceof IllegalArgumentException
                                || refused instanceof IndexOutOfBoundsException)
                .withMessageContaining(message);
    }

    private static KvMessage.Announce announcement(int[] pages, int[][] states, int aux) {
        return new KvMessage.Announce(1, 2, true, pages, states, aux);
    }

    private static void refused(
            ModelOfBytes prefill, int prefillTp, int decodeTp, ModelOfBytes decode, String what) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> category(prefill, prefillTp, decodeTp, decode, DEFAULTS, false))
                .withMessageContaining(what);
    }

    private static Category category(
            ModelOfBytes prefill,
            int prefillTp,
            int decodeTp,
            ModelOfBytes decode,
            KvSenderOptions options,
            boolean staging) {
        return KvRoute.of(
                        cache(prefill, prefillTp, 0, 0),
                        cache(decode, decodeTp, 0, DECODE),
                        options,
                        staging)
                .category();
    }

    private static KvRoute route(
            ModelOfBytes prefill,
            int prefillTp,
            int prefillRank,
            ModelOfBytes decode,
            int decodeTp,
            int decodeRank,
            KvSenderOptions options) {
        return KvRoute.of(
                cache(prefill, prefillTp, prefillRank, 0),
                cache(decode, decodeTp, decodeRank, DECODE),
                options,
                false);
    }

    private static KvCache cache(ModelOfBytes model, int tpSize, int rank, long base) {
        return model.rank(tpSize, rank, 0, 1, base).cache;
    }

    private static KvPools pools(long base, int itemBytes) {
        return KvPools.of(new long[] {base}, new long[] {itemBytes}, new int[] {4});
    }

    private static void same(List<TransferBatch> batches, List<TransferBatch> expected) {
        assertThat(batches.stream().map(KvRouteTest::blocks))
                .containsExactlyElementsOf(expected.stream().map(KvRouteTest::blocks).toList());
    }

    private static List<String> blocks(TransferBatch batch) {
        return IntStream.range(0, batch.size())
                .mapToObj(i ->
                        "%d %d %d"
                                .formatted(
                                        batch.localAddress(i),
                                        batch.remoteAddress(i),
                                        batch.length(i)))
                .toList();
    }
}
