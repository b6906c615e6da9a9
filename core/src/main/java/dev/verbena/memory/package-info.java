/**
 * Registered memory: pools of memory segments, or of addresses on an accelerator, known to a device
 * under a name; and the pools of a peer, known by their descriptors.
 *
 * <p>A pool becomes one or several memory regions. Everything above this package speaks of
 * addresses; {@link dev.verbena.memory.AddressMap} turns an address into the region that holds it,
 * and a range that no region holds is refused before anything is posted. Regions come from a {@link
 * dev.verbena.memory.RegionSource}: a protection domain, or a backend without a device.
 *
 * <p>Safe for use by several threads. May import {@code dev.verbena.verbs}, and knows nothing of
 * work requests or transfers.
 */
package dev.verbena.memory;
