package dev.verbena.bindings;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Runs a main class in a JVM of its own, since a library is loaded once in the life of a process.
 */
final class ChildJvm {
    private ChildJvm() {}

    /**
     * Runs a class of this folder.
     *
     * @param main the class
     * @param options options of the JVM, system properties for instance
     * @return what it printed, errors included
     * @throws AssertionError if it did not exit with 0
     */
    static String run(Class<?> main, String... options) throws IOException, InterruptedException {
        Path build = Path.of(System.getProperty("basedir", ".")).resolve("target");
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("-XX:TieredStopAtLevel=1");
        command.addAll(List.of(options));
        command.add("-cp");
        command.add(build.resolve("classes") + ":" + build.resolve("test-classes"));
        command.add(main.getName());
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        int status = process.waitFor();
        if (status != 0) {
            throw new AssertionError(main + " exited with " + status + ":\n" + output);
        }
        return output;
    }
}
