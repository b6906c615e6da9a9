package dev.verbena.transfer;

import dev.verbena.verbs.Access;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A node in a process of its own, to be killed: offers a pool, prints its port, and waits until its
 * standard input ends.
 */
public final class PeerChild {
    private PeerChild() {}

    /**
     * Runs the node.
     *
     * @param arguments the transport, and the length of the pool in bytes
     * @throws IOException if it cannot listen
     */
    public static void main(String... arguments) throws IOException {
        NodeOptions options = TwoNodes.Transport.valueOf(arguments[0]).options();
        try (Node node = Node.open(options.name("child").listen(0))) {
            node.registry().allocate("there", Long.parseLong(arguments[1]), Access.REMOTE_WRITE);
            System.out.println(node.listenPort());
            while (System.in.read() >= 0) {
                // The parent says nothing; it goes, or it kills.
            }
        }
    }

    /** A class path with all that the tests of this module need. */
    static String classPath() throws IOException {
        if (!PeerChild.class.getModule().isNamed()) {
            return System.getProperty("java.class.path");
        }
        // Maven runs them on the module path.
        Path build = Path.of(System.getProperty("basedir", ".")).resolve("target");
        return String.join(
                File.pathSeparator,
                build.resolve("test-classes").toString(),
                build.resolve("classes").toString(),
                Files.readString(build.resolve("test-classpath.txt")).strip());
    }

    /** Starts the child. */
    static Process start(TwoNodes.Transport transport, long poolBytes) throws IOException {
        return new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "-Xmx64m",
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        classPath(),
                        PeerChild.class.getName(),
                        transport.name(),
                        Long.toString(poolBytes))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }
}
