package dev.verbena.bench;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A process that takes its turn when it is asked to: one line in, one line out. Closing it ends its
 * input, at which it should end by itself.
 */
final class ChildProcess implements AutoCloseable {
    private final List<String> command;
    private final Process process;
    private final PrintStream requests;
    private final BufferedReader answers;

    ChildProcess(Map<String, String> environment, List<String> command) throws IOException {
        this.command = command;
        ProcessBuilder builder =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().putAll(environment);
        process = builder.start();
        requests = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
        answers =
                new BufferedReader(
                        new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    /** The command that runs a main class of this program, with the class path of this JVM. */
    static List<String> java(String mainClass, String... arguments) {
        List<String> command =
                new ArrayList<>(
                        List.of(
                                System.getProperty("java.home") + "/bin/java",
                                "-Xmx256m",
                                "-XX:+UseSerialGC",
                                "--enable-native-access=ALL-UNNAMED",
                                "-cp",
                                System.getProperty("java.class.path"),
                                mainClass));
        command.addAll(List.of(arguments));
        return command;
    }

    /** A command that runs on one processor only, where there are several. */
    static List<String> pinned(int processor, List<String> command) {
        if (!new File("/sys/devices/system/cpu/cpu" + processor).exists()) {
            return command;
        }
        List<String> pinned =
                new ArrayList<>(List.of("taskset", "-c", Integer.toString(processor)));
        pinned.addAll(command);
        return pinned;
    }

    /** Sends a line without waiting for an answer. */
    void tell(String request) {
        requests.println(request);
    }

    /** The next line that the process writes. */
    String answer() throws IOException {
        String answer = answers.readLine();
        if (answer == null) {
            throw new IOException("the process ended, without an answer: " + command);
        }
        return answer;
    }

    String ask(String request) throws IOException {
        tell(request);
        return answer();
    }

    @Override
    public void close() {
        requests.close();
        try {
            process.waitFor();
        } catch (InterruptedException interrupted) {
            process.destroy();
            Thread.currentThread().interrupt();
        }
    }
}
