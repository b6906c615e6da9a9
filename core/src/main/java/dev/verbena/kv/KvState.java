package dev.verbena.kv;

import java.util.List;

/**
 * State of a cache beside its KV: pools with an index list of their own, moved with the last chunk.
 */
sealed interface KvState {
    /** Names the state, the same on both sides. */
    String name();

    /** Its pools. */
    KvPools pools();

    /** State in pages: sliding window (SWA) or native sparse attention (NSA). */
    record Pages(String name, KvLayout layout, KvPools pools) implements KvState {}

    /** Mamba state: one slot a request. Without tensors it can only be moved whole. */
    record Mamba(String name, KvPools pools, List<MambaTensor> tensors) implements KvState {}
}
