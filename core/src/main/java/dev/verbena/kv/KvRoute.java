package dev.verbena.kv;

import dev.verbena.transfer.TransferBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The way from one prefill rank's cache to one decode rank's: which category moves the KV, what is
 * moved beside it, and the batches for each chunk. Pure arithmetic, the same on both sides.
 *
 * <p>What does not fit is refused when the route is made, so that later only lists of slots can be
 * wrong.
 *
 * <p>Immutable.
 */
final class KvRoute {
    /** What moves the KV, in the order of the planners' categories. */
    enum Category {
        /** Pages, all layers in one batch (1). */
        PAGES,
        /** Pages, a batch a layer (2). */
        LAYERS,
        /** Pages to single tokens (3). */
        TOKENS,
        /** Heads, through staging areas (5). */
        STAGED,
        /** Heads, token by token, a batch a layer (9). */
        HEADS
    }

    private final KvCache prefill;
    private final KvCache decode;
    private final KvSenderOptions options;
    private final RankMap ranks;
    private final Category category;

    private KvRoute(
            KvCache prefill,
            KvCache decode,
            KvSenderOptions options,
            RankMap ranks,
            Category category) {
        this.prefill = prefill;
        this.decode = decode;
        this.options = options;
        this.ranks = ranks;
        this.category = category;
    }

    /**
     * Finds the way.
     *
     * @param staging whether both sides have staging areas
     * @throws IllegalArgumentException if the caches do not fit together; it names what
     */
    static KvRoute of(KvCache prefill, KvCache decode, KvSenderOptions options, boolean staging) {
        Category category = category(prefill, decode, options, staging);
        RankMap ranks = new RankMap(prefill.tensorParallel(), decode.tensorParallel());
        KvRoute route = new KvRoute(prefill, decode, options, ranks, category);
        route.checkFit();
        return route;
    }

    private static Category category(
            KvCache prefill, KvCache decode, KvSenderOptions options, boolean staging) {
        boolean latent = prefill.layout() instanceof KvLayout.Latent;
        if (latent != decode.layout() instanceof KvLayout.Latent) {
            throw new IllegalArgumentException(
                    "the prefill side's layout is %s, the decode side's %s"
                            .formatted(prefill.layout(), decode.layout()));
        }
        int prefillTokens = prefill.layout().pageTokens();
        int decodeTokens = decode.layout().pageTokens();
        boolean whole = latent || sameTpSize(prefill, decode);
        if (prefillTokens != decodeTokens) {
            if (decodeTokens != 1) {
                throw new IllegalArgumentException(
                        "pages of the prefill side hold %d tokens, those of the decode side %d"
                                .formatted(prefillTokens, decodeTokens));
            }
            if (!whole) {
                throw new IllegalArgumentException(
                        ("the decode side's pages hold one token: pages cannot be expanded to"
                                        + " tokens between TP sizes %d and %d")
                                .formatted(
                                        prefill.tensorParallel().size(),
                                        decode.tensorParallel().size()));
            }
            return Category.TOKENS;
        }
        if (whole) {
            return options.isLayerByLayer() ? Category.LAYERS : Category.PAGES;
        }
        return staging ? Category.STAGED : Category.HEADS;
    }

    Category category() {
        return category;
    }

    RankMap ranks() {
        return ranks;
    }

    KvCache decode() {
        return decode;
    }

    /** The heads that both ranks hold. */
    HeadSlice slice() {
        return ranks.slice(prefill.rank(), decode.rank());
    }

    /** Whether the prefill rank writes KV, and state in pages, to the decode rank. */
    boolean writesKv() {
        return ranks.writes(prefill.rank(), decode.rank());
    }

    /**
     * Whether the prefill rank writes anything at all. One that holds a replica of heads that
     * another writes has no KV to send, but may have a shard of Mamba state, which has no replicas.
     */
    boolean takesPart() {
        return writesKv() || (facesDecode() && prefill.states().stream().anyMatch(this::isSliced));
    }

    /**
     * Refuses slots of the decode side that its cache does not have, that occur twice, or that this
     * rank has nothing for.
     *
     * @throws IllegalArgumentException if they do not fit
     * @throws IndexOutOfBoundsException if a slot is outside its pool
     */
    void checkSlots(KvMessage.Announce announce) {
        if (!takesPart()) {
            throw new IllegalArgumentException(
                    "prefill rank %d has nothing to write to decode rank %d"
                            .formatted(prefill.rank(), decode.rank()));
        }
        if (announce.states().length != decode.states().size()) {
            throw new IllegalArgumentException(
                    "%d states were announced, and the cache has %d"
                            .formatted(announce.states().length, decode.states().size()));
        }
        checkSlots("decodePages", announce.pages(), decode.pools());
        for (int i = 0; i < announce.states().length; i++) {
            KvState state = decode.states().get(i);
            String list = "items of state '" + state.name() + "'";
            if (state instanceof KvState.Mamba) {
                MambaPlanner.checkOne(list, announce.states()[i]);
            }
            checkSlots(list, announce.states()[i], state.pools());
        }
        if (announce.auxSlot() >= 0) {
            aux(0, announce.auxSlot());
        }
    }

    private static void checkSlots(String list, int[] slots, KvPools pools) {
        PoolPairs.checkAll(list, slots, "decode", pools);
        int[] order = new int[slots.length];
        Arrays.setAll(order, i -> i);
        IndexRuns.of(order, slots, list, 0);
    }

    /** How many prefill pages fill that many decode slots. */
    int pages(int decodeSlots) {
        return category == Category.TOKENS
                ? Math.ceilDiv(decodeSlots, prefill.layout().pageTokens())
                : decodeSlots;
    }

    /**
     * Plans the KV of a chunk, unless it is staged.
     *
     * @param firstPage of the chunk, counted over the request
     * @param decodeSlots of the whole request
     * @return batches, to be posted one behind the other; none if there is nothing to write
     * @throws IllegalArgumentException if a list does not fit
     * @throws IndexOutOfBoundsException if a page is outside its pool
     */
    List<TransferBatch> chunk(int firstPage, int[] prefillPages, int[] decodeSlots) {
        if (!writesKv()) {
            return List.of();
        }
        KvPools from = prefill.pools();
        KvPools to = decode.pools();
        if (category == Category.TOKENS) {
            PageSlice slice = new PageSlice(firstPage, firstPage + prefillPages.length);
            int tokens = prefill.layout().pageTokens();
            return List.of(
                    HiSparsePlanner.plan(from, to, tokens, slice, prefillPages, decodeSlots));
        }
        int[] slots = new int[prefillPages.length];
        System.arraycopy(decodeSlots, firstPage, slots, 0, slots.length);
        return switch (category) {
            case PAGES -> planPages(prefillPages, slots);
            case LAYERS -> LayerPlanner.plan(from, to, prefillPages, slots);
            case HEADS ->
                    HeadSlicePlanner.planLayers(
                            from, to, decode.layout().pageTokens(), slice(), prefillPages, slots);
            case STAGED, TOKENS -> throw new IllegalStateException(category + " is not planned so");
        };
    }

    private List<TransferBatch> planPages(int[] prefillPages, int[] slots) {
        KvPools from = prefill.pools();
        KvPools to = decode.pools();
        return options.maxPagesPerBatch().isPresent()
                ? PagePlanner.planBounded(
                        from, to, prefillPages, slots, options.maxPagesPerBatch().getAsInt())
                : List.of(PagePlanner.plan(from, to, prefillPages, slots));
    }

    /**
     * Plans the state of a request.
     *
     * @param slots items of this side
     * @param decodeItems items of the decode side, in the order of its states
     * @return a batch for each state that the rank has something of
     * @throws IllegalArgumentException if items of a state are missing, or a list does not fit
     * @throws IndexOutOfBoundsException if an item is outside its pool
     */
    List<TransferBatch> states(KvSlots slots, int[][] decodeItems) {
        List<TransferBatch> batches = new ArrayList<>();
        for (KvState state : prefill.states()) {
            if (sends(state)) {
                int[] items = slots.requireItems(state.name());
                batches.add(
                        named(state, () -> plan(state, items, decodeItems[indexOf(state.name())])));
            }
        }
        return batches;
    }

    /**
     * Plans the auxiliary data.
     *
     * @throws IllegalArgumentException if this side has no buffers
     * @throws IndexOutOfBoundsException if a slot is outside the buffers
     */
    TransferBatch aux(int prefillSlot, int decodeSlot) {
        return AuxPlanner.plan(
                auxBuffers(prefill, "prefill"),
                auxBuffers(decode, "decode"),
                prefillSlot,
                decodeSlot);
    }

    private static KvPools auxBuffers(KvCache cache, String side) {
        return cache.auxBuffers()
                .orElseThrow(() ->
                        new IllegalArgumentException(
                                "the %s rank %d has no auxiliary buffers"
                                        .formatted(side, cache.rank())));
    }

    private boolean sends(KvState state) {
        return isSliced(state) ? facesDecode() : writesKv();
    }

    /** Whether the state comes in shards from every prefill rank that faces the decode rank. */
    private boolean isSliced(KvState state) {
        return state instanceof KvState.Mamba && !sameTpSize(prefill, decode);
    }

    private boolean facesDecode() {
        for (int rank : ranks.prefillRanksOf(decode.rank())) {
            if (rank == prefill.rank()) {
                return true;
            }
        }
        return false;
    }

    private TransferBatch plan(KvState state, int[] items, int[] decodeItems) {
        return switch (state) {
            case KvState.Pages pages -> planPages(pages, items, decodeItems);
            case KvState.Mamba mamba -> planMamba(mamba, items, decodeItems);
        };
    }

    private TransferBatch planPages(KvState.Pages state, int[] items, int[] decodeItems) {
        KvState.Pages there = counterpart(state, KvState.Pages.class);
        if (sameTpSize(prefill, decode) || state.layout() instanceof KvLayout.Latent) {
            return StatePlanner.plan(state.pools(), there.pools(), items, decodeItems);
        }
        return HeadSlicePlanner.plan(
                state.pools(),
                there.pools(),
                state.layout().pageTokens(),
                slice(),
                items,
                decodeItems);
    }

    private TransferBatch planMamba(KvState.Mamba state, int[] items, int[] decodeItems) {
        KvState.Mamba there = counterpart(state, KvState.Mamba.class);
        if (!isSliced(state)) {
            return MambaPlanner.plan(state.pools(), there.pools(), items, decodeItems);
        }
        if (state.tensors().isEmpty()) {
            throw new IllegalArgumentException(
                    "the TP sizes differ, so its tensors must be described on the prefill side");
        }
        return MambaSlicePlanner.plan(
                state.pools(),
                there.pools(),
                state.tensors(),
                ranks.pair(prefill.rank(), decode.rank()),
                items,
                decodeItems);
    }

    /** The decode side's state of the same name. */
    private <T extends KvState> T counterpart(T state, Class<T> kind) {
        int index = indexOf(state.name());
        if (index < 0) {
            throw new IllegalArgumentException("the decode side has no such state");
        }
        KvState there = decode.states().get(index);
        if (!kind.isInstance(there)) {
            throw new IllegalArgumentException("the sides describe it as different kinds of state");
        }
        return kind.cast(there);
    }

    private int indexOf(String stateName) {
        return decode.stateNames().indexOf(stateName);
    }

    /** Plans with lists that fit anything, for the sake of the other checks. */
    private void checkFit() {
        int[] none = {};
        int[] first = {0};
        switch (category) {
            case PAGES, LAYERS -> PagePlanner.plan(prefill.pools(), decode.pools(), none, none);
            case TOKENS ->
                    HiSparsePlanner.plan(
                            prefill.pools(),
                            decode.pools(),
                            prefill.layout().pageTokens(),
                            new PageSlice(0, 0),
                            none,
                            none);
            case HEADS, STAGED ->
                    HeadSlicePlanner.plan(
                            prefill.pools(),
                            decode.pools(),
                            decode.layout().pageTokens(),
                            slice(),
                            none,
                            none);
        }
        for (KvState state : prefill.states()) {
            int[] items = state instanceof KvState.Mamba ? first : none;
            named(
                    state,
                    () -> {
                        checkLayouts(state);
                        return plan(state, items, items);
                    });
        }
        if (prefill.auxBuffers().isPresent() && decode.auxBuffers().isPresent()) {
            try {
                aux(0, 0);
            } catch (IllegalArgumentException refused) {
                throw new IllegalArgumentException(
                        "auxiliary buffers: " + refused.getMessage(), refused);
            }
        }
    }

    private void checkLayouts(KvState state) {
        if (state instanceof KvState.Pages here) {
            KvLayout there = counterpart(here, KvState.Pages.class).layout();
            if (here.layout().pageTokens() != there.pageTokens()
                    || here.layout().poolsPerLayer() != there.poolsPerLayer()) {
                throw new IllegalArgumentException(
                        "the prefill side's layout is %s, the decode side's %s"
                                .formatted(here.layout(), there));
            }
        }
    }

    private static boolean sameTpSize(KvCache prefill, KvCache decode) {
        return prefill.tensorParallel().size() == decode.tensorParallel().size();
    }

    /** Adds the name of the state to a refusal. */
    private static TransferBatch named(KvState state, Plan plan) {
        try {
            return plan.run();
        } catch (IllegalArgumentException refused) {
            throw new IllegalArgumentException(
                    "state '%s': %s".formatted(state.name(), refused.getMessage()), refused);
        } catch (IndexOutOfBoundsException outside) {
            IndexOutOfBoundsException named =
                    new IndexOutOfBoundsException(
                            "state '%s': %s".formatted(state.name(), outside.getMessage()));
            named.initCause(outside);
            throw named;
        }
    }

    @FunctionalInterface
    private interface Plan {
        TransferBatch run();
    }
}
