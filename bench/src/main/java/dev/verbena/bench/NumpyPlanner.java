package dev.verbena.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

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

    private final Process process;
    private final PrintStream requests;
    private final BufferedReader answers;

    NumpyPlanner(Path sources) throws IOException {
        process =
                new ProcessBuilder(
                                "/usr/bin/python3",
                                sources.resolve("python/plan_peer.py").toString())
                        .redirectError(ProcessBuilder.Redirect.INHERIT)
                        .start();
        requests = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
        answers =
                new BufferedReader(
                        new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    /** Sets up the case that the next plans are of. */
    void prepare(PlanBench.Case planned) throws IOException {
        ask(
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
        String[] words = ask(way).split(" ", -1);
        return new Planned(
                Long.parseLong(words[0]),
                Integer.parseInt(words[1]),
                Long.parseUnsignedLong(words[2]));
    }

    private String ask(String request) throws IOException {
        requests.println(request);
        String answer = answers.readLine();
        if (answer == null) {
            throw new IOException("the numpy planner died at: " + request);
        }
        return answer;
    }

    @Override
    public void close() {
        requests.close();
        process.destroy();
    }
}
