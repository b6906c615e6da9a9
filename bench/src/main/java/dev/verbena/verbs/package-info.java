/** One door into core's package of this name, for the driver of the benchmarks. */
@org.jspecify.annotations.NullMarked
package dev.verbena.verbs;
