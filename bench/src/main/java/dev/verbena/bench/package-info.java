/**
 * Measurements of Verbena beside its peers, run by {@code scripts/bench}.
 *
 * <p>Reading order: {@link dev.verbena.bench.Bench} is the command line, {@code Rounds} the method,
 * {@code Result} what comes out; then one class a benchmark.
 */
@org.jspecify.annotations.NullMarked
package dev.verbena.bench;
