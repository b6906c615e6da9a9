/**
 * The C header {@code infiniband/verbs.h} as Java, generated and never edited: only this file is
 * written by hand.
 *
 * <table>
 * <caption>Origin</caption>
 * <tr><th>tool</th><td>jextract 23 (built for JDK 23 and later)</td></tr>
 * <tr><th>header</th><td>libibverbs 1.14.44.0, which is rdma-core 44.0, on Linux x86-64</td></tr>
 * <tr><th>command</th><td>{@code scripts/generate-bindings}, which runs {@code jextract} twice over
 *     {@code native-headers/ibverbs.h} with the symbols of {@code native-headers/ibverbs.includes}</td></tr>
 * </table>
 *
 * <ul>
 *   <li>{@code ibverbs_constants}: every enumerator and macro, as a static method. Loads no library.
 *   <li>one class per struct or union: its layout, offsets and accessors. Loads no library.
 *   <li>{@code ibverbs_h}: the exported functions. Its first use loads {@code libibverbs.so.1} and
 *       throws a raw {@link java.lang.LinkageError} where there is none, so callers of this class
 *       call {@link dev.verbena.bindings.VerbsLibrary#require()} first. jextract cannot capture
 *       {@code errno}: a call that fails through it does not say why, and
 *       {@link dev.verbena.bindings.VerbsCalls} does.
 * </ul>
 *
 * <p>The functions that C inlines, {@code ibv_post_send} and {@code ibv_poll_cq} among them, are not
 * here: see {@link dev.verbena.bindings.VerbsInline} and its neighbours.
 */
package dev.verbena.bindings.ibverbs;
