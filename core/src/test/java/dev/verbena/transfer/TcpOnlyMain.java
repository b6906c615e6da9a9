package dev.verbena.transfer;

import dev.verbena.memory.Pool;
import dev.verbena.verbs.Access;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** Moves bytes between two nodes over TCP, in a process that does nothing else. */
public final class TcpOnlyMain {
    private TcpOnlyMain() {}

    /**
     * Runs it.
     *
     * @param arguments none
     * @throws Exception if it fails
     */
    public static void main(String... arguments) throws Exception {
        try (TwoNodes nodes = TwoNodes.of(TwoNodes.Transport.TCP, 2)) {
            Pool here = nodes.source("here", 1 << 20, 1);
            Pool there = nodes.far().registry().allocate("there", 1 << 20, Access.REMOTE_WRITE);
            Peer peer = nodes.connect();
            TransferBatch batch =
                    new TransferBatch()
                            .add(here.address(), peer.pool("there").address(), here.lengthBytes());
            peer.write(batch, 7).await();
            TwoNodes.assertSame(batch, here, there);
            System.out.println("moved " + batch.bytes() + " by " + nodes.near().transport());
            try (Stream<String> mapped = Files.lines(Path.of("/proc/self/maps"))) {
                System.out.println(
                        "libraries of RDMA: "
                                + mapped.filter(line -> line.contains("ibverbs")).toList());
            }
        }
    }
}
