package dev.verbena.bench;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;

/**
 * The command line, as scripts/bench calls it: {@code Bench WARM_UPS RUNS TARGET SOURCES NAME...},
 * or {@code Bench plot TARGET}.
 *
 * <p>For each benchmark it writes {@code TARGET/NAME.json}, and a table to standard output, result
 * by result: what was measured stays if the rest fails or takes too long. Status 0 if all were
 * measured, 1 if one failed, 2 if a name is unknown.
 */
public final class Bench {
    private static final Map<String, Supplier<Benchmark>> BENCHMARKS =
            Map.ofEntries(
                    Map.entry("post", PostBench::new),
                    Map.entry("floor", FloorBench::new),
                    Map.entry("plan", PlanBench::new),
                    Map.entry("lookup", LookupBench::new),
                    Map.entry("staging", StagingBench::new),
                    Map.entry("register", RegisterBench::new),
                    Map.entry("startup", StartupBench::new),
                    Map.entry("rxe-bw", BandwidthBench::new),
                    Map.entry("rxe-lat", LatencyBench::new),
                    Map.entry("rxe-scatter", ScatterBench::new),
                    Map.entry("sweep", SweepBench::new));

    private Bench() {}

    /**
     * Runs benchmarks.
     *
     * @param arguments as above
     * @throws IOException if a result cannot be written
     */
    public static void main(String[] arguments) throws IOException {
        if (arguments[0].equals("plot")) {
            Plot.drawAll(Path.of(arguments[1])).forEach(System.out::println);
            return;
        }
        Rounds rounds = new Rounds(Integer.parseInt(arguments[0]), Integer.parseInt(arguments[1]));
        Path target = Path.of(arguments[2]).toAbsolutePath();
        Path sources = Path.of(arguments[3]).toAbsolutePath();
        List<String> names = List.of(arguments).subList(4, arguments.length);
        if (!BENCHMARKS.keySet().containsAll(names)) {
            System.err.println("There are " + BENCHMARKS.keySet() + ", not all of " + names);
            System.exit(2);
        }
        PrintStream out = System.out;
        int status = 0;
        out.println(Result.heading());
        for (String name : names) {
            List<Result> results = new ArrayList<>();
            Path file = target.resolve(name + ".json");
            Benchmark.Setting setting =
                    new Benchmark.Setting(
                            rounds,
                            target.resolve("native"),
                            sources,
                            result -> {
                                results.add(result);
                                out.println(result.line());
                                write(file, results);
                            });
            try {
                Objects.requireNonNull(BENCHMARKS.get(name)).get().run(setting);
            } catch (Exception | AssertionError failure) {
                System.err.println(name + " failed:");
                failure.printStackTrace();
                status = 1;
            }
        }
        System.exit(status);
    }

    private static void write(Path file, List<Result> results) {
        try {
            Files.createDirectories(file.getParent());
            new ObjectMapper().writerWithDefaultPrettyPrinter().writeValue(file.toFile(), results);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
