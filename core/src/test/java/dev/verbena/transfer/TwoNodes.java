package dev.verbena.transfer;

import dev.verbena.memory.Pool;
import dev.verbena.memory.RegistryOptions;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.Device;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;

/**
 * Two nodes of this process, on one device or without: "near" connects to "far", which listens.
 * Public, for the tests of the package above too.
 */
public final class TwoNodes implements AutoCloseable {
    /** What carries the transfers of both. */
    public enum Transport {
        /** The first RDMA device there is. */
        VERBS {
            @Override
            NodeOptions options() {
                return NodeOptions.device(Device.names().getFirst());
            }
        },
        /** TCP, which needs no device. */
        TCP {
            @Override
            NodeOptions options() {
                return NodeOptions.tcp();
            }
        };

        abstract NodeOptions options();
    }

    /** What a far node notes of each immediate. */
    record Immediate(Peer peer, int value) {}

    /** Long for any machine; what waits so long has failed. */
    private static final long PATIENCE_SECONDS = 60;

    private final Node far;
    private final Node near;
    private final BlockingQueue<Peer> farPeers = new LinkedBlockingQueue<>();
    private final BlockingQueue<String> farLost = new LinkedBlockingQueue<>();
    private final BlockingQueue<String> nearLost = new LinkedBlockingQueue<>();
    final BlockingQueue<Immediate> farImmediates = new LinkedBlockingQueue<>();

    /**
     * Opens the nodes on a device.
     *
     * @param change changes the options of both
     * @throws IOException if a port cannot be bound
     */
    public TwoNodes(UnaryOperator<NodeOptions> change) throws IOException {
        this(Transport.VERBS, change);
    }

    /**
     * Opens the nodes.
     *
     * @param transport what carries the transfers
     * @param change changes the options of both
     * @throws IOException if a port cannot be bound
     */
    public TwoNodes(Transport transport, UnaryOperator<NodeOptions> change) throws IOException {
        NodeOptions options =
                change.apply(transport.options().poster(posterOptions(Duration.ofSeconds(20))));
        far = Node.open(options.name("far").listen(0));
        far.onPeer(farPeers::add);
        far.onPeerLost((peer, reason) -> farLost.add(reason));
        far.onImmediate((peer, value) -> farImmediates.add(new Immediate(peer, value)));
        try {
            near = Node.open(options.name("near"));
        } catch (IOException | RuntimeException failure) {
            far.close();
            throw failure;
        }
        near.onPeerLost((peer, reason) -> nearLost.add(reason));
    }

    static TwoNodes of(int queuePairs) throws IOException {
        return new TwoNodes(options -> options.queuePairs(queuePairs));
    }

    static TwoNodes of(Transport transport, int queuePairs) throws IOException {
        return new TwoNodes(transport, options -> options.queuePairs(queuePairs));
    }

    /** With pools of many small regions. */
    static TwoNodes withRegions(Transport transport, int queuePairs, long regionBytes)
            throws IOException {
        return new TwoNodes(
                transport,
                options ->
                        options.queuePairs(queuePairs)
                                .registry(new RegistryOptions(regionBytes, 2)));
    }

    static PosterOptions posterOptions(Duration deadline) {
        return PosterOptions.defaults().withProgressDeadline(deadline);
    }

    /**
     * Gives the node that listens.
     *
     * @return the node
     */
    public Node far() {
        return far;
    }

    /**
     * Gives the node that connects.
     *
     * @return the node
     */
    public Node near() {
        return near;
    }

    /**
     * Connects near to far.
     *
     * @return far, as near sees it
     * @throws IOException if that fails
     */
    public Peer connect() throws IOException {
        return near.connect("127.0.0.1:" + far.listenPort());
    }

    /**
     * Waits for the next peer of far.
     *
     * @return near, as far sees it
     */
    public Peer accepted() {
        return take(farPeers);
    }

    /**
     * Waits until far has lost a peer.
     *
     * @return why
     */
    public String lostByFar() {
        return take(farLost);
    }

    /**
     * Waits until near has lost a peer.
     *
     * @return why
     */
    public String lostByNear() {
        return take(nearLost);
    }

    /** Whether near was told of the loss of a peer that {@link #lostByNear} has not given. */
    boolean nearHasLost() {
        return !nearLost.isEmpty();
    }

    Immediate immediate() {
        return take(farImmediates);
    }

    /** A pool of near, which nobody else may touch, with bytes of a seed. */
    Pool source(String name, long bytes, long seed) {
        return fill(near.registry().allocate(name, bytes, Access.LOCAL_WRITE), seed);
    }

    /** A pool of far, which peers may write and read. */
    Pool target(String name, long bytes) {
        return far.registry().allocate(name, bytes, Access.REMOTE_WRITE, Access.REMOTE_READ);
    }

    static Pool fill(Pool pool, long seed) {
        MemorySegment memory = pool.segment();
        Random random = new Random(seed);
        for (long i = 0; i + 8 <= memory.byteSize(); i += 8) {
            memory.set(ValueLayout.JAVA_LONG, i, random.nextLong());
        }
        return pool;
    }

    static void assertSame(TransferBatch batch, Pool here, Pool there) {
        for (int block = 0; block < batch.size(); block++) {
            long local = batch.localAddress(block) - here.address();
            long remote = batch.remoteAddress(block) - there.address();
            long length = batch.length(block);
            if (MemorySegment.mismatch(
                            here.segment(),
                            local,
                            local + length,
                            there.segment(),
                            remote,
                            remote + length)
                    >= 0) {
                throw new AssertionError(
                        "block %d of %d differs: %d to %d, %d bytes"
                                .formatted(block, batch.size(), local, remote, length));
            }
        }
    }

    private static <T> T take(BlockingQueue<T> queue) {
        try {
            T taken = queue.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
            if (taken == null) {
                throw new AssertionError("nothing came in " + PATIENCE_SECONDS + " s");
            }
            return taken;
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Override
    public void close() {
        near.close();
        far.close();
    }
}
