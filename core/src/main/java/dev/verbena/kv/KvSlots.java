package dev.verbena.kv;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Where one request lives on one side: page slots, and where the cache has them, items of each
 * state and an auxiliary slot.
 *
 * <p>Immutable, safe to share. Nothing is checked against a cache here, but where it is used.
 */
public final class KvSlots {
    private static final int NO_AUX = -1;

    private final int[] pages;
    private final Map<String, int[]> states;
    private final int aux;

    private KvSlots(int[] pages, Map<String, int[]> states, int aux) {
        this.pages = pages;
        this.states = states;
        this.aux = aux;
    }

    /**
     * Names the pages.
     *
     * @param pages page slots in the order of the request's tokens; token slots where the pages of
     *     the cache hold one token. Copied
     * @return the slots, without state and auxiliary slot
     */
    public static KvSlots pages(int... pages) {
        return new KvSlots(pages.clone(), Map.of(), NO_AUX);
    }

    /**
     * Adds the items of a state.
     *
     * @param name of the state, as in {@link KvCache}
     * @param items state pages, in an order that is the same on both sides; or the one Mamba slot.
     *     Copied
     * @return the slots with these items
     * @throws IllegalArgumentException if the state has items already
     */
    public KvSlots state(String name, int... items) {
        if (states.containsKey(name)) {
            throw new IllegalArgumentException("state '" + name + "' has items already");
        }
        Map<String, int[]> more = new LinkedHashMap<>(states);
        more.put(name, items.clone());
        return new KvSlots(pages, more, aux);
    }

    /**
     * Sets the auxiliary slot.
     *
     * @param slot item of every auxiliary buffer, at least 0
     * @return the slots with this one
     * @throws IllegalArgumentException if it is negative
     */
    public KvSlots aux(int slot) {
        return new KvSlots(pages, states, Checks.notNegative("aux slot", slot));
    }

    @Override
    public String toString() {
        return "KvSlots[%d pages, states %s, %s]"
                .formatted(pages.length, states.keySet(), hasAux() ? "aux " + aux : "no aux");
    }

    /** The pages themselves. Not to be changed. */
    int[] pageSlots() {
        return pages;
    }

    /** The items of a state, not to be changed. */
    int[] requireItems(String name) {
        int[] items = states.get(name);
        if (items == null) {
            throw new IllegalArgumentException("items of state '" + name + "' are missing");
        }
        return items;
    }

    /** Refuses items of states that a cache does not have. */
    void checkNames(KvCache cache) {
        for (String name : states.keySet()) {
            if (!cache.stateNames().contains(name)) {
                throw new IllegalArgumentException(
                        "there are items of state '%s', and the cache has the states %s"
                                .formatted(name, cache.stateNames()));
            }
        }
    }

    boolean hasAux() {
        return aux != NO_AUX;
    }

    /** The auxiliary slot, or -1. */
    int auxSlot() {
        return aux;
    }
}
