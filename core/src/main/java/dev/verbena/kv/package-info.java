/**
 * Moves a KV cache from prefill ranks to decode ranks.
 *
 * <p>The planners are pure arithmetic, one class per kind of cache state. Each takes the {@link
 * dev.verbena.kv.KvPools pools} of both sides and lists of indices, and gives a {@link
 * dev.verbena.transfer.TransferBatch}: local addresses are the prefill side's, remote addresses the
 * decode side's. They check everything before they produce anything: an index outside its pool,
 * lists or item sizes that disagree, a slot named twice. The message of a refusal names the list,
 * the position, the value and the limit.
 *
 * <table>
 * <caption>Which planner plans what</caption>
 * <tr><th>category</th><th>planner</th><th>what moves</th></tr>
 * <tr><td>1</td><td>{@link PagePlanner}</td><td>pages, all layers in a batch</td></tr>
 * <tr><td>2</td><td>{@link LayerPlanner}</td><td>pages, a batch per layer</td></tr>
 * <tr><td>3</td><td>{@link HiSparsePlanner}</td><td>pages to single tokens</td></tr>
 * <tr><td>4</td><td>{@link StatePlanner}</td><td>sliding window and NSA state</td></tr>
 * <tr><td>5</td><td>{@link StagingPlanner}</td><td>heads, through staging areas</td></tr>
 * <tr><td>6</td><td>{@link AuxPlanner}</td><td>one item of each auxiliary buffer</td></tr>
 * <tr><td>7</td><td>{@link MambaPlanner}</td><td>Mamba state, whole</td></tr>
 * <tr><td>8</td><td>{@link MambaSlicePlanner}</td><td>Mamba state, sliced</td></tr>
 * <tr><td>9</td><td>{@link HeadSlicePlanner}</td><td>heads, token by token</td></tr>
 * </table>
 *
 * <p>{@link KvSender} and {@link KvReceiver} drive them: requests of chunks, between any numbers of
 * ranks, of which each ends exactly once on both sides. A {@link KvCache} describes one rank,
 * {@link KvSlots} where a request lives on it.
 *
 * <p>{@link RankMap} says which prefill rank writes which heads to which decode rank.
 *
 * <p>Imports: the planners know {@code dev.verbena.transfer.TransferBatch} and nothing else,
 * neither verbs nor foreign memory. Threads: values are immutable and planners hold no state, so
 * any thread may use them; a batch being filled belongs to the thread that fills it.
 */
package dev.verbena.kv;
