package dev.verbena.transfer;

import dev.verbena.verbs.Access;
import dev.verbena.verbs.Device;
import java.io.IOException;
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
     * @param arguments length of the pool in bytes
     * @throws IOException if it cannot listen
     */
    public static void main(String... arguments) throws IOException {
        NodeOptions options = NodeOptions.device(Device.names().getFirst());
        try (Node node = Node.open(options.name("child").listen(0))) {
            node.registry().allocate("there", Long.parseLong(arguments[0]), Access.REMOTE_WRITE);
            System.out.println(node.listenPort());
            while (System.in.read() >= 0) {
                // The parent says nothing; it goes, or it kills.
            }
        }
    }

    /** Starts the child, on the class path of this process. */
    static Process start(long poolBytes) throws IOException {
        return new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "-Xmx64m",
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        PeerChild.class.getName(),
                        Long.toString(poolBytes))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }
}
