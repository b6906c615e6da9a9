package dev.verbena.demo;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The decode side as a process of its own: the same JVM, module path and module as this one.
 *
 * <p>It never outlives this process: {@link #close} ends it, so does a shutdown hook, and it ends
 * by itself when its standard input does, which even a killed parent brings about.
 */
final class DecodeProcess implements AutoCloseable {
    /** What the decode command prints before the port, once it listens. */
    static final String LISTENING = "listening on port ";

    private static final Duration START_DEADLINE = Duration.ofMinutes(2);
    private static final Duration END_DEADLINE = Duration.ofSeconds(15);

    /** A failure here and the end of the process may show in either order. */
    private static final Duration REASON_DELAY = Duration.ofSeconds(2);

    /** What the operating system's word for a signal is added to. */
    private static final int SIGNALLED = 128;

    private final Process process;
    private final Thread hook;
    private final Thread errors;

    private DecodeProcess(Process process, Progress progress) {
        this.process = process;
        this.hook = new Thread(process::destroyForcibly, "end-decode");
        Runtime.getRuntime().addShutdownHook(hook);
        this.errors = Thread.ofVirtual().start(() -> copyErrors(progress));
    }

    /**
     * Starts the process.
     *
     * @param arguments of the decode command, beyond those that make it a child
     * @param progress where its standard error goes, line by line
     */
    static DecodeProcess start(List<String> arguments, Progress progress) throws IOException {
        List<String> command = new ArrayList<>(sameJvm());
        command.addAll(List.of("decode", "--with-parent", "--listen", "127.0.0.1:0"));
        command.addAll(arguments);
        DecodeProcess started = new DecodeProcess(new ProcessBuilder(command).start(), progress);
        progress.say("decode: process " + started.process.pid());
        return started;
    }

    /** The command line of this process, up to the main class. */
    private static List<String> sameJvm() {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        // The cache lies outside the heap.
        command.addAll(List.of("-Xmx128m", "-XX:+UseSerialGC"));
        String main = VerbenaDemo.class.getName();
        String module = VerbenaDemo.class.getModule().getName();
        String modulePath = System.getProperty("jdk.module.path");
        if (module != null && modulePath != null) {
            command.add("--enable-native-access=dev.verbena.bindings");
            command.addAll(List.of("-p", modulePath, "-m", module + "/" + main));
        } else {
            command.add("--enable-native-access=ALL-UNNAMED");
            command.addAll(List.of("-cp", System.getProperty("java.class.path"), main));
        }
        return command;
    }

    /**
     * Waits until the process listens.
     *
     * @throws DemoException if it ends before, or takes too long
     */
    InetSocketAddress awaitAddress() throws InterruptedException {
        try (var reader = Executors.newVirtualThreadPerTaskExecutor()) {
            var line = CompletableFuture.supplyAsync(this::readLine, reader);
            try {
                String said = line.get(START_DEADLINE.toSeconds(), TimeUnit.SECONDS);
                if (!said.startsWith(LISTENING)) {
                    throw new DemoException("it did not come to listen");
                }
                int port = Integer.parseInt(said.substring(LISTENING.length()));
                return new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
            } catch (TimeoutException | ExecutionException failure) {
                // Its end also ends the reading, for which the executor waits.
                process.destroyForcibly();
                throw new DemoException(
                        "the decode process did not listen within "
                                + START_DEADLINE.toSeconds()
                                + " s",
                        failure);
            }
        }
    }

    /** The first line of standard output; empty if the process ends without one. */
    private String readLine() {
        try {
            BufferedReader output = process.inputReader(StandardCharsets.UTF_8);
            String line = output.readLine();
            return line == null ? "" : line;
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** Adds to a failure that the process has ended, if that is so. */
    RuntimeException explain(Exception failure) throws InterruptedException {
        boolean ended = process.waitFor(REASON_DELAY.toMillis(), TimeUnit.MILLISECONDS);
        errors.join(REASON_DELAY);
        String reason = String.valueOf(failure.getMessage());
        return new DemoException(
                ended ? "the decode process " + describeEnd() + ": " + reason : reason, failure);
    }

    /**
     * Waits for the end that the process comes to by itself.
     *
     * @return its exit status
     * @throws DemoException if it takes too long
     */
    int awaitEnd() throws InterruptedException {
        if (!process.waitFor(END_DEADLINE.toSeconds(), TimeUnit.SECONDS)) {
            throw new DemoException(
                    "the decode process did not end within " + END_DEADLINE.toSeconds() + " s");
        }
        return process.exitValue();
    }

    private String describeEnd() {
        int status = process.exitValue();
        return status > SIGNALLED
                ? "was killed by signal " + (status - SIGNALLED)
                : "ended with status " + status;
    }

    /** Ends the process if it runs, and shows the rest of what it said. */
    @Override
    public void close() {
        process.destroyForcibly();
        try {
            process.waitFor();
            errors.join(END_DEADLINE);
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (InterruptedException hurry) {
            Thread.currentThread().interrupt();
        } catch (IllegalStateException shuttingDown) {
            // Then the hook has run, or will.
        }
    }

    private void copyErrors(Progress progress) {
        try (BufferedReader reader = process.errorReader(StandardCharsets.UTF_8)) {
            String line;
            while ((line = reader.readLine()) != null) {
                progress.say("decode: " + line);
            }
        } catch (IOException closed) {
            // The process has ended.
        }
    }
}
