package dev.verbena.bench;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Runs a program of perftest, server and client on a processor each, and reads its table. */
final class Perftest {
    private static final int PORT = 18515;

    /** Now and then a program divides by a time that it has measured as nothing. */
    private static final int ATTEMPTS = 3;

    private static final long SERVER_WAIT_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final List<String> common;

    Perftest(RdmaDevice device) {
        common =
                List.of(
                        "-d",
                        device.name(),
                        "-x",
                        Integer.toString(device.gidIndex()),
                        "-p",
                        Integer.toString(PORT),
                        "-F");
    }

    /**
     * Runs a program, and gives the figures of its one line, from the size on.
     *
     * @param program its name
     * @param bytes size of a message
     * @param options all but device, port and size
     */
    double[] run(String program, int bytes, String... options)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(program));
        command.addAll(common);
        command.addAll(List.of("-s", Integer.toString(bytes)));
        command.addAll(List.of(options));
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            double[] figures = run(command, bytes);
            if (Arrays.stream(figures).allMatch(Double::isFinite)) {
                return figures;
            }
        }
        throw new IOException(command + " printed figures that are no numbers");
    }

    private static double[] run(List<String> command, int bytes)
            throws IOException, InterruptedException {
        Process server =
                new ProcessBuilder(ChildProcess.pinned(0, command))
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .redirectError(ProcessBuilder.Redirect.DISCARD)
                        .start();
        try {
            awaitListening(server, command);
            List<String> clientCommand = new ArrayList<>(command);
            clientCommand.add("127.0.0.1");
            Process client =
                    new ProcessBuilder(ChildProcess.pinned(1, clientCommand))
                            .redirectErrorStream(true)
                            .start();
            String output =
                    new String(client.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (client.waitFor() != 0) {
                throw new IOException(clientCommand + " failed:\n" + output);
            }
            return figures(output, bytes);
        } finally {
            if (!server.waitFor(5, TimeUnit.SECONDS)) {
                server.destroy();
                server.waitFor();
            }
        }
    }

    /** The server says nothing that reaches a pipe in time; the kernel knows that it listens. */
    private static void awaitListening(Process server, List<String> command)
            throws IOException, InterruptedException {
        String listening = ":%04X 00000000:0000 0A".formatted(PORT);
        String listening6 = ":%04X 00000000000000000000000000000000:0000 0A".formatted(PORT);
        long deadline = System.nanoTime() + SERVER_WAIT_NANOS;
        while (!Files.readString(Path.of("/proc/net/tcp")).contains(listening)
                && !Files.readString(Path.of("/proc/net/tcp6")).contains(listening6)) {
            if (!server.isAlive() || System.nanoTime() - deadline > 0) {
                throw new IOException("no server listens: " + command);
            }
            Thread.sleep(20);
        }
    }

    private static double[] figures(String output, int bytes) throws IOException {
        return output.lines()
                .map(line -> line.strip().split("\\s+", -1))
                .filter(words -> words[0].equals(Integer.toString(bytes)) && words.length > 3)
                .map(words -> Arrays.stream(words).mapToDouble(Double::parseDouble).toArray())
                .findFirst()
                .orElseThrow(() -> new IOException("no figures in:\n" + output));
    }
}
