/**
 * Batch transfers between nodes: blocks of registered memory written to, or read from, a peer.
 *
 * <p>The way of one transfer, in the order in which to read the code:
 *
 * <ol>
 *   <li>{@link dev.verbena.transfer.TransferBatch}: blocks, as a planner lists them;
 *   <li>{@code BatchCheck}: every range is looked up on both sides, or the batch is refused whole;
 *   <li>{@code WorkRequestCursor}: neighbours merged, gathered and split into work requests;
 *   <li>{@link dev.verbena.transfer.BatchPoster}, with the lock, and {@code PosterQueues}: work
 *       requests handed to send queues with room;
 *   <li>{@code SendQueue}: slots of the ring filled, the doorbell rung, completions retired;
 *   <li>{@link dev.verbena.transfer.Transfer}: done, or failed with the first cause, once.
 * </ol>
 *
 * <p>Around it: {@link dev.verbena.transfer.Node} owns a device, its registered memory and the
 * thread that makes progress; {@link dev.verbena.transfer.Peer} is the connection to another node,
 * set up over TCP.
 *
 * <p>Safe for use by several threads, but for batches, which one thread fills. May import {@code
 * dev.verbena.memory} and {@code dev.verbena.verbs}, and knows nothing of KV caches.
 */
package dev.verbena.transfer;
