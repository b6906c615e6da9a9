package dev.verbena.bindings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** The machine's C compiler and headers, for tests that hold the bindings against the truth. */
final class CCompiler {
    static final Path HEADER = Path.of("/usr/include/infiniband/verbs.h");

    private static final Path RECORD = Path.of("../native-headers/generated.properties");

    private CCompiler() {}

    /** Skips the test, with the reason, where there is no compiler. */
    static void assumeCompiler() {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/gcc")), "no /usr/bin/gcc on this machine");
    }

    /** Skips the test, with the reason, where the header is not installed. */
    static void assumeHeader() {
        assumeTrue(Files.exists(HEADER), "no " + HEADER + ": libibverbs-dev is not installed");
    }

    /** Skips the test, with the reason, where the header lacks what the bindings were made from. */
    static void assumeHeaderNotOlder() throws IOException, InterruptedException {
        assumeHeader();
        assumeTrue(
                Runtime.Version.parse(rdmaCore(installedVersion()))
                                .compareTo(Runtime.Version.parse(rdmaCore(boundVersion())))
                        >= 0,
                () -> "the installed header is older than that of the bindings, " + boundVersion());
    }

    /** Whether the installed header is of the version that the bindings were made from. */
    static boolean isHeaderOfTheBindings() throws IOException, InterruptedException {
        return installedVersion().equals(boundVersion());
    }

    /** {@code 1.14.44.0} belongs to rdma-core 44.0, and a version must not end in zeros. */
    private static String rdmaCore(String version) {
        return version.replaceFirst("^\\d+\\.\\d+\\.", "").replaceFirst("(\\.0)+$", "");
    }

    private static String installedVersion() throws IOException, InterruptedException {
        return run(List.of("pkg-config", "--modversion", "libibverbs")).strip();
    }

    private static String boundVersion() {
        Properties record = new Properties();
        try (Reader reader = Files.newBufferedReader(RECORD)) {
            record.load(reader);
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
        return record.getProperty("libibverbs.version", "unknown");
    }

    /** Compiles C source to a file, a program unless the options say otherwise. */
    static void compile(String source, Path target, String... options)
            throws IOException, InterruptedException {
        Path file = Path.of(target + ".c");
        Files.writeString(file, source);
        List<String> command = new ArrayList<>(List.of("/usr/bin/gcc", "-w", "-O0"));
        command.addAll(List.of(options));
        command.addAll(List.of("-o", target.toString(), file.toString()));
        run(command);
    }

    /** Runs a command and returns what it printed. */
    static String run(List<String> command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as("%s:%n%s", command, output).isZero();
        return output;
    }
}
