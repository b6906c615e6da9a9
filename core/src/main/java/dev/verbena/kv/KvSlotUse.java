package dev.verbena.kv;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/**
 * Which slots of a decode rank's cache are in use by requests that have not been closed: pages,
 * items of each state, auxiliary slots.
 *
 * <p>Safe for use by several threads.
 */
final class KvSlotUse {
    private final KvCache cache;

    // Guarded by this.
    private final BitSet pages = new BitSet();
    private final List<BitSet> states = new ArrayList<>();
    private final BitSet aux = new BitSet();

    KvSlotUse(KvCache cache) {
        this.cache = cache;
        cache.states().forEach(state -> states.add(new BitSet()));
    }

    /**
     * Takes the slots of a request, all or none.
     *
     * @throws IllegalArgumentException if there are too many; those of a state, or the auxiliary
     *     slot, are missing or not of this cache; or one is outside its pools, named twice, or in
     *     use
     */
    synchronized void take(KvSlots slots) {
        checkComplete(slots);
        Taking taking = new Taking();
        try {
            taking.all("pages", slots.pageSlots(), pages, cache.pools());
            for (int i = 0; i < states.size(); i++) {
                KvState state = cache.states().get(i);
                taking.all(
                        "items of state '" + state.name() + "'",
                        slots.requireItems(state.name()),
                        states.get(i),
                        state.pools());
            }
            if (slots.hasAux()) {
                taking.all(
                        "aux", new int[] {slots.auxSlot()}, aux, cache.auxBuffers().orElseThrow());
            }
        } catch (IllegalArgumentException refused) {
            taking.undo();
            throw refused;
        }
    }

    /** Gives back what {@link #take} took. */
    synchronized void release(KvSlots slots) {
        for (int page : slots.pageSlots()) {
            pages.clear(page);
        }
        for (int i = 0; i < states.size(); i++) {
            for (int item : slots.requireItems(cache.states().get(i).name())) {
                states.get(i).clear(item);
            }
        }
        if (slots.hasAux()) {
            aux.clear(slots.auxSlot());
        }
    }

    /** How many slots are in use, of whatever kind. */
    synchronized int count() {
        return pages.cardinality()
                + states.stream().mapToInt(BitSet::cardinality).sum()
                + aux.cardinality();
    }

    private void checkComplete(KvSlots slots) {
        slots.checkNames(cache);
        long total = slots.pageSlots().length;
        for (KvState state : cache.states()) {
            int[] items = slots.requireItems(state.name());
            if (state instanceof KvState.Mamba) {
                MambaPlanner.checkOne("items of state '" + state.name() + "'", items);
            }
            total += items.length;
        }
        if (total > KvMessage.MAX_SLOTS) {
            throw new IllegalArgumentException(
                    "%d pages and items of states; a request has at most %d"
                            .formatted(total, KvMessage.MAX_SLOTS));
        }
        if (slots.hasAux() != cache.auxBuffers().isPresent()) {
            throw new IllegalArgumentException(
                    slots.hasAux()
                            ? "there is an aux slot, and the cache has no auxiliary buffers"
                            : "the cache has auxiliary buffers, and there is no aux slot");
        }
    }

    /** What has been taken so far. */
    private static final class Taking {
        private record Taken(BitSet used, int slot) {}

        private final List<Taken> taken = new ArrayList<>();

        void all(String list, int[] slots, BitSet used, KvPools pools) {
            int limit = pools.itemCount(pools.smallestPool());
            for (int i = 0; i < slots.length; i++) {
                String refusal = null;
                if (slots[i] < 0 || slots[i] >= limit) {
                    refusal = "outside 0.." + (limit - 1);
                } else if (used.get(slots[i])) {
                    refusal = "in the list before, or part of a request that is not closed";
                }
                if (refusal != null) {
                    throw new IllegalArgumentException(
                            "%s[%d] is %d, %s".formatted(list, i, slots[i], refusal));
                }
                used.set(slots[i]);
                taken.add(new Taken(used, slots[i]));
            }
        }

        void undo() {
            taken.forEach(one -> one.used.clear(one.slot));
        }
    }
}
