package dev.verbena.kv;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * One rank's cache: its KV pools, its place among the ranks of its side, and what is moved beside
 * the KV. Both sides describe theirs in the same way and tell each other, so that each can see
 * which category of transfer joins them, and refuse what does not fit before anything is moved.
 *
 * <p>A pipeline stage is a cache whose pools are numbered as its layers ({@link
 * KvPools#withLayerRange}).
 *
 * <p>Immutable, safe to share. Addresses are numbers: nothing here touches memory.
 */
public final class KvCache {
    /** Most pools of a cache, with those of its states and its auxiliary buffers. */
    public static final int MAX_POOLS = 1 << 16;

    /** Most states of a cache. */
    public static final int MAX_STATES = 64;

    /** Longest name of a state, in bytes of UTF-8. */
    public static final int MAX_NAME_BYTES = 255;

    private final KvLayout layout;
    private final KvPools pools;
    private final TensorParallel tensorParallel;
    private final int rank;
    private final List<KvState> states;
    private final Optional<KvPools> aux;

    private KvCache(
            KvLayout layout,
            KvPools pools,
            TensorParallel tensorParallel,
            int rank,
            List<KvState> states,
            Optional<KvPools> aux) {
        this.layout = layout;
        this.pools = pools;
        this.tensorParallel = tensorParallel;
        this.rank = rank;
        this.states = states;
        this.aux = aux;
        long total = (long) pools.size() + aux.map(KvPools::size).orElse(0);
        for (KvState state : states) {
            total += state.pools().size();
        }
        if (total > MAX_POOLS) {
            throw new IllegalArgumentException(
                    "the cache has %d pools in all; at most %d are possible"
                            .formatted(total, MAX_POOLS));
        }
    }

    /**
     * Describes the cache of a side that has one rank only.
     *
     * @param layout shape of the cache on this rank
     * @param pools its pools, with layer ids if it is a pipeline stage; as many as the layout has,
     *     items of whole tokens (and heads)
     * @return the cache, without state and auxiliary buffers
     * @throws IllegalArgumentException if there is another number of pools, an item cannot be
     *     divided into the layout's tokens and heads, or there are more than {@link #MAX_POOLS}
     */
    public static KvCache of(KvLayout layout, KvPools pools) {
        checkShape("KV", layout, pools);
        TensorParallel alone = new TensorParallel(1, headsPerRank(layout));
        return new KvCache(layout, pools, alone, 0, List.of(), Optional.empty());
    }

    /**
     * Says which rank of its side the cache belongs to.
     *
     * @param newTensorParallel ranks and KV heads of the side; one KV head for latent attention
     * @param newRank rank of this cache; ranks of several pipeline stages each count from 0
     * @return the cache of that rank
     * @throws IllegalArgumentException if the layout of the KV, or of a state in pages, has another
     *     number of heads than each rank of the side
     * @throws IndexOutOfBoundsException if there is no such rank
     */
    public KvCache rank(TensorParallel newTensorParallel, int newRank) {
        Checks.rank("rank", newRank, newTensorParallel.size());
        checkHeads("KV", layout, newTensorParallel);
        for (KvState state : states) {
            if (state instanceof KvState.Pages paged) {
                checkHeads("state '" + paged.name() + "'", paged.layout(), newTensorParallel);
            }
        }
        return new KvCache(layout, pools, newTensorParallel, newRank, states, aux);
    }

    /**
     * Adds state in pages (category 4): sliding window or native sparse attention, with page lists
     * of their own.
     *
     * @param name of the state, the same on both sides
     * @param stateLayout its shape on this rank; heads, if it has any, are shared out among the
     *     ranks as those of the KV
     * @param statePools its pools, with layer ids if those of the KV have them
     * @return the cache with the state
     * @throws IllegalArgumentException if the name is empty, too long or taken, there are {@link
     *     #MAX_STATES} already, or the layout does not fit the pools or the ranks
     */
    public KvCache pageState(String name, KvLayout stateLayout, KvPools statePools) {
        checkShape("state '" + name + "'", stateLayout, statePools);
        checkHeads("state '" + name + "'", stateLayout, tensorParallel);
        return withState(new KvState.Pages(name, stateLayout, statePools));
    }

    /**
     * Adds Mamba state: one slot of every tensor a request, moved whole between sides of the same
     * TP size (category 7) and sliced between others (category 8).
     *
     * @param name of the state, the same on both sides
     * @param statePools its tensors, items are state slots
     * @param tensors how each pool is sharded over the ranks, in the order of the pools; needed
     *     only if the TP sizes of the sides differ, and may be left out otherwise
     * @return the cache with the state
     * @throws IllegalArgumentException if the name is empty, too long or taken, there are {@link
     *     #MAX_STATES} already, or tensors are given but not one a pool
     */
    public KvCache mambaState(String name, KvPools statePools, MambaTensor... tensors) {
        if (tensors.length != 0 && tensors.length != statePools.size()) {
            throw new IllegalArgumentException(
                    "state '%s' has %d pools and %d tensors: one a pool is needed, or none"
                            .formatted(name, statePools.size(), tensors.length));
        }
        return withState(new KvState.Mamba(name, statePools, List.of(tensors)));
    }

    /**
     * Sets the auxiliary buffers (category 6): one item of each is moved, once a request.
     *
     * @param buffers items are the records of a request
     * @return the cache with these buffers
     * @throws IllegalArgumentException if there are more than {@link #MAX_POOLS} pools in all
     */
    public KvCache aux(KvPools buffers) {
        return new KvCache(layout, pools, tensorParallel, rank, states, Optional.of(buffers));
    }

    /**
     * Gives the shape of the KV on this rank.
     *
     * @return the layout
     */
    public KvLayout layout() {
        return layout;
    }

    /**
     * Gives the KV pools.
     *
     * @return the pools
     */
    public KvPools pools() {
        return pools;
    }

    /**
     * Gives the ranks of the side.
     *
     * @return their number, and the KV heads that they share
     */
    public TensorParallel tensorParallel() {
        return tensorParallel;
    }

    /**
     * Says which rank of the side this is.
     *
     * @return the rank, below the TP size
     */
    public int rank() {
        return rank;
    }

    /**
     * Lists the states by name.
     *
     * @return the names, in the order of adding
     */
    public List<String> stateNames() {
        return states.stream().map(KvState::name).toList();
    }

    /**
     * Gives the auxiliary buffers.
     *
     * @return the buffers, or nothing if there are none
     */
    public Optional<KvPools> auxBuffers() {
        return aux;
    }

    @Override
    public String toString() {
        return "KvCache[rank %d of %d, %s, states %s]"
                .formatted(rank, tensorParallel.size(), pools, stateNames());
    }

    List<KvState> states() {
        return states;
    }

    private KvCache withState(KvState state) {
        int nameBytes = state.name().getBytes(StandardCharsets.UTF_8).length;
        if (nameBytes == 0 || nameBytes > MAX_NAME_BYTES) {
            throw new IllegalArgumentException(
                    "the name of a state has %d bytes, must have 1 to %d"
                            .formatted(nameBytes, MAX_NAME_BYTES));
        }
        if (stateNames().contains(state.name())) {
            throw new IllegalArgumentException("there is a state '" + state.name() + "' already");
        }
        if (states.size() == MAX_STATES) {
            throw new IllegalArgumentException("a cache has at most " + MAX_STATES + " states");
        }
        List<KvState> more = new ArrayList<>(states);
        more.add(state);
        return new KvCache(layout, pools, tensorParallel, rank, List.copyOf(more), aux);
    }

    /** Heads of one rank; a latent counts as one that every rank holds. */
    private static int headsPerRank(KvLayout layout) {
        return layout instanceof KvLayout.Heads heads ? heads.kvHeads() : 1;
    }

    private static void checkHeads(String what, KvLayout layout, TensorParallel tensorParallel) {
        if (layout instanceof KvLayout.Heads heads
                && heads.kvHeads() != tensorParallel.headsPerRank()) {
            throw new IllegalArgumentException(
                    "the layout of the %s has %d heads, and each rank has %d: %s"
                            .formatted(
                                    what,
                                    heads.kvHeads(),
                                    tensorParallel.headsPerRank(),
                                    tensorParallel));
        }
    }

    private static void checkShape(String what, KvLayout layout, KvPools pools) {
        if (pools.size() != layout.poolCount()) {
            throw new IllegalArgumentException(
                    "%s has %d pools, and its layout %d: %d layers x %d"
                            .formatted(
                                    what,
                                    pools.size(),
                                    layout.poolCount(),
                                    layout.layers(),
                                    layout.poolsPerLayer()));
        }
        for (int pool = 0; pool < pools.size(); pool++) {
            HeadSlice.headBytes(what, pools, pool, layout.pageTokens(), headsPerRank(layout));
        }
    }
}
