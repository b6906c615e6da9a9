package dev.verbena.bench;

import java.nio.file.Path;
import java.util.function.Consumer;

/** One benchmark of the command line. */
@FunctionalInterface
interface Benchmark {
    /**
     * What a benchmark is given.
     *
     * @param rounds how to measure
     * @param programs folder with the compiled peers
     * @param sources folder with the sources of the peers that are not compiled
     * @param report takes each result as it is found
     */
    record Setting(Rounds rounds, Path programs, Path sources, Consumer<Result> report) {}

    /**
     * Measures.
     *
     * @throws Exception if anything fails: then the benchmark has no result
     */
    void run(Setting setting) throws Exception;
}
