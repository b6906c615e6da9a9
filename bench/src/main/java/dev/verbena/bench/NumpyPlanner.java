package dev.verbena.bench;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** The peer of planning: {@code plan_peer.py}, a process that plans when it is asked to. */
final class NumpyPlanner implements AutoCloseable {
    /**
     * What a plan came to.
     *
     * @param nanos how long it took
     * @param blocks how many blocks it has
     * @param checksum of all of them, whatever their order
     */
    record Planned(long nanos, int blocks, long checksum) {}

    private final ChildProcess process;

    NumpyPlanner(Path sources) throws IOException {
        // The distribution's Python, which has the distribution's numpy.
        process =
                new ChildProcess(
                        Map.of(),
                        List.of(
                                "/usr/bin/python3",
                                sources.resolve("python/plan_peer.py").toString()));
    }

    /** Sets up the case that the next plans are of. */
    void prepare(PlanBench.Case planned) throws IOException {
        process.ask(
                "case %d %d %d %d %d %d %d"
                        .formatted(
                                planned.pools(),
                                PlanBench.PAGE_BYTES,
                                planned.poolBytes(),
                                PlanBench.PREFILL_BASE,
                                PlanBench.DECODE_BASE,
                                planned.pages(),
                                planned.runPages()));
    }

    Planned plan(String way) throws IOException {
        String[] words = process.ask(way).split(" ", -1);
        return new Planned(
                Long.parseLong(words[0]),
                Integer.parseInt(words[1]),
                Long.parseUnsignedLong(words[2]));
    }

    @Override
    public void close() {
        process.close();
    }
}
