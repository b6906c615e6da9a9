package dev.verbena.bench;

import dev.verbena.bench.Rounds.Better;
import dev.verbena.transfer.Node;
import dev.verbena.verbs.Access;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * From the start of a process to its first completed write, against {@code ibv_rc_pingpong} with
 * one round: a C program that opens a device, connects over TCP and sends. The other side is
 * running already, for both.
 */
final class StartupBench implements Benchmark {
    private static final int PAGE_BYTES = 4096;
    private static final int PEER_PORT = 18599;

    /** Time for the other side's program to listen; not measured. */
    private static final long PEER_SETTLES_MILLIS = 1500;

    @Override
    public void run(Setting setting) throws Exception {
        RdmaDevice device = RdmaDevice.first();
        Path cache = setting.programs().resolve("first-write.aot");
        try (Node server = Node.open(device.options().name("server").queuePairs(1).listen(0))) {
            server.registry().allocate("pages", PAGE_BYTES, Access.REMOTE_WRITE);
            String address = "127.0.0.1:" + server.listenPort();
            Program plain = new Program(device, address, List.of());
            Program cached = new Program(device, address, List.of("-XX:AOTCache=" + cache));
            // The run that makes the cache.
            new Program(device, address, List.of("-XX:AOTCacheOutput=" + cache)).millis();
            Program interpreted = new Program(device, address, List.of("-Xint"));
            measure(setting, device, "startup/plain", plain, classes(setting, device, address));
            measure(setting, device, "startup/aot-cache", cached);
            measure(setting, device, "startup/interpreted", interpreted);
        }
    }

    /** How many classes a start loads, and from where, as names and values in turn. */
    private static Object[] classes(Setting setting, RdmaDevice device, String address)
            throws Exception {
        Path log = setting.programs().resolve("first-write.classes");
        new Program(device, address, List.of("-Xlog:class+load:file=" + log)).millis();
        return LoadedClasses.count(Files.readAllLines(log)).entrySet().stream()
                .flatMap(count -> Stream.of("classes_" + count.getKey(), count.getValue()))
                .toArray();
    }

    private static void measure(
            Setting setting, RdmaDevice device, String name, Program ours, Object... more)
            throws Exception {
        Rounds.Comparison comparison =
                setting.rounds().compare(Better.LOWER, ours::millis, () -> pingPong(device));
        List<Object> settings = new ArrayList<>(List.of("options", ours.javaOptions));
        ours.medians().forEach((step, millis) -> settings.addAll(List.of(step + "_ms", millis)));
        settings.addAll(List.of(more));
        settings.addAll(List.of("peer", "ibv_rc_pingpong, one round"));
        setting.report().accept(Result.of(name, "ms", comparison, settings.toArray()));
    }

    /** Our program, and what its runs said of their steps. */
    private static final class Program {
        private final List<String> javaOptions;
        private final List<String> command = new ArrayList<>();
        private final Map<String, List<Double>> steps = new LinkedHashMap<>();

        Program(RdmaDevice device, String address, List<String> javaOptions) {
            this.javaOptions = javaOptions;
            command.add(System.getProperty("java.home") + "/bin/java");
            command.addAll(javaOptions);
            command.addAll(
                    List.of(
                            "-Xmx64m",
                            "-XX:+UseSerialGC",
                            "-XX:TieredStopAtLevel=1",
                            "--enable-native-access=ALL-UNNAMED",
                            "-cp",
                            System.getProperty("java.class.path"),
                            "dev.verbena.bench.FirstWrite",
                            device.name(),
                            Integer.toString(device.gidIndex()),
                            address));
        }

        /** Runs it, and gives the time until it has said that the write is done. */
        double millis() throws IOException, InterruptedException {
            long start = System.nanoTime();
            Process process =
                    new ProcessBuilder(command)
                            .redirectError(ProcessBuilder.Redirect.INHERIT)
                            .start();
            try (BufferedReader output =
                    new BufferedReader(
                            new InputStreamReader(
                                    process.getInputStream(), StandardCharsets.UTF_8))) {
                String line = output.readLine();
                double millis = (System.nanoTime() - start) / 1e6;
                while (output.readLine() != null) {}
                if (process.waitFor() != 0 || line == null) {
                    throw new IOException(command + " failed");
                }
                note(line.split(" ", -1), millis);
                return millis;
            }
        }

        private void note(String[] words, double millis) {
            double inMain = 0;
            for (int i = 0; i < words.length; i += 2) {
                double step = Double.parseDouble(words[i + 1]);
                inMain += step;
                steps.computeIfAbsent(words[i], name -> new ArrayList<>()).add(step);
            }
            steps.computeIfAbsent("jvm", name -> new ArrayList<>()).add(millis - inMain);
        }

        Map<String, Long> medians() {
            Map<String, Long> medians = new LinkedHashMap<>();
            steps.forEach((step, values) ->
                    medians.put(
                            step,
                            Math.round(
                                    Rounds.quantile(
                                            values.stream().mapToDouble(v -> v).toArray(), 0.5))));
            return medians;
        }
    }

    private static double pingPong(RdmaDevice device) throws IOException, InterruptedException {
        List<String> command =
                new ArrayList<>(
                        List.of(
                                "ibv_rc_pingpong",
                                "-d",
                                device.name(),
                                "-g",
                                Integer.toString(device.gidIndex()),
                                "-p",
                                Integer.toString(PEER_PORT),
                                "-s",
                                Integer.toString(PAGE_BYTES),
                                "-n",
                                "1"));
        Process server =
                new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        try {
            Thread.sleep(PEER_SETTLES_MILLIS);
            command.add("127.0.0.1");
            long start = System.nanoTime();
            Process client =
                    new ProcessBuilder(command)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .redirectError(ProcessBuilder.Redirect.INHERIT)
                            .start();
            if (client.waitFor() != 0) {
                throw new IOException(command + " failed");
            }
            return (System.nanoTime() - start) / 1e6;
        } finally {
            if (!server.waitFor(5, TimeUnit.SECONDS)) {
                server.destroy();
            }
        }
    }
}
