/**
 * Raw verbs for Java, one method for each C function and under its C name.
 *
 * <ul>
 *   <li>{@link dev.verbena.bindings.VerbsLibrary}: is libibverbs there, which version is it.
 *   <li>{@link dev.verbena.bindings.VerbsCalls}: the functions that the library exports.
 *   <li>{@link dev.verbena.bindings.VerbsInline}: the data path and whatever else C inlines over
 *       the classic context: post, poll, notify, memory windows.
 *   <li>{@link dev.verbena.bindings.ExtendedVerbs}: what C inlines over the extended context.
 *   <li>{@link dev.verbena.bindings.WorkRequestVerbs}, {@link
 *       dev.verbena.bindings.ExtendedPolling}: the function tables of {@code ibv_qp_ex} and {@code
 *       ibv_cq_ex}.
 *   <li>{@link dev.verbena.bindings.Posix}, {@link dev.verbena.bindings.Errno}: the few things of
 *       the C library that a user of verbs cannot do without.
 * </ul>
 *
 * <p>One contract holds for all of them. A call that returns a pointer returns a segment of the
 * struct's size, or {@link java.lang.foreign.MemorySegment#NULL} and leaves the reason in {@link
 * dev.verbena.bindings.VerbsCalls#errno()}. A call that returns a status returns 0 or a positive
 * {@code errno} value, whichever of its three conventions the C function follows. A call that
 * returns a count or a number returns that, or a negative {@code errno} value.
 *
 * <p>Nothing here owns memory or tracks lifetimes: as in C, a struct must not be used after the
 * call that destroys it, and memory must stay allocated until the device is done with it. A stale
 * pointer ends the process.
 */
package dev.verbena.bindings;
