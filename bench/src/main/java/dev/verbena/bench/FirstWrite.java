package dev.verbena.bench;

import dev.verbena.memory.Pool;
import dev.verbena.transfer.Node;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.transfer.Peer;
import dev.verbena.transfer.TransferBatch;

/**
 * The shortest program that writes: opens a node, connects, writes a page, and says how long each
 * step took since its main began, in milliseconds.
 */
public final class FirstWrite {
    private static final int PAGE_BYTES = 4096;

    private FirstWrite() {}

    /**
     * Writes once.
     *
     * @param arguments the device, its GID's index, and the address of a node that offers "pages"
     * @throws Exception if that fails
     */
    public static void main(String[] arguments) throws Exception {
        long start = System.nanoTime();
        NodeOptions options =
                RdmaDevice.options(arguments[0], Integer.parseInt(arguments[1]))
                        .queuePairs(1)
                        .name("first");
        try (Node node = Node.open(options)) {
            long opened = System.nanoTime();
            Pool pool = node.registry().allocate("page", PAGE_BYTES);
            Peer peer = node.connect(arguments[2]);
            long connected = System.nanoTime();
            peer.write(
                            new TransferBatch(1)
                                    .add(pool.address(), peer.pool("pages").address(), PAGE_BYTES))
                    .await();
            long written = System.nanoTime();
            System.out.println(
                    "open "
                            + (opened - start) / 1_000_000
                            + " connect "
                            + (connected - opened) / 1_000_000
                            + " write "
                            + (written - connected) / 1_000_000);
            System.out.flush();
        }
    }
}
