package dev.verbena.transfer;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.PoolDescriptor;
import dev.verbena.memory.RemotePool;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Another node, connected: its pools, and the way to write to them or read from them.
 *
 * <p>Life: by {@link Node#connect}, or given to a listener of {@link Node#onPeer}; transfers;
 * {@link #close}. When the other side goes away, or a work request fails, all transfers to it fail
 * at once and the peer is lost for good: it comes back as a new peer, with new pools.
 *
 * <p>Safe for use by several threads.
 */
public final class Peer implements AutoCloseable {
    /** Longest message in bytes. */
    public static final int MAX_MESSAGE_BYTES = 8 << 20;

    private final Node node;
    private final Hello hello;
    private final ControlConnection connection;
    private final Link link;
    private final int queuePairs;
    private final BatchPoster poster;
    private final AtomicReference<@Nullable Thread> tearingDown = new AtomicReference<>();
    private final CountDownLatch gone = new CountDownLatch(1);

    private final Object poolsLock = new Object();
    private List<RemotePool> pools = List.of();
    private volatile AddressMap<RemotePool> remoteMap = AddressMap.of(List.of());
    private volatile @Nullable String lostReason;

    /** Set once the node has admitted the peer: before that nobody knows it. */
    private volatile boolean started;

    Peer(Node node, Hello hello, ControlConnection connection, Link link) throws IOException {
        this.node = node;
        this.hello = hello;
        this.connection = connection;
        this.link = link;
        try {
            pools(hello.pools());
        } catch (IllegalArgumentException overlapping) {
            throw new ControlProtocolException(
                    "the peer's pools make no sense: " + overlapping.getMessage(), overlapping);
        }
        this.poster =
                link.connect(hello, connection.remoteAddress().getAddress(), new PosterListener());
        this.queuePairs = link.queuePairs();
    }

    /**
     * Names the peer.
     *
     * @return the name its node was given
     */
    public String name() {
        return hello.nodeName();
    }

    /**
     * Gives the other end of the control connection.
     *
     * @return its TCP address
     */
    public InetSocketAddress address() {
        return connection.remoteAddress();
    }

    /**
     * Tells one run of the peer's process from another.
     *
     * @return a number drawn when its node was opened
     */
    public long incarnation() {
        return hello.incarnation();
    }

    /**
     * Counts the queue pairs that join the two nodes: a transfer with an immediate brings it to the
     * peer once on each.
     *
     * @return their number, the smaller of what both sides asked for
     */
    public int queuePairs() {
        return queuePairs;
    }

    /**
     * Says whether transfers can be posted.
     *
     * @return false once the peer is lost or closed
     */
    public boolean isOpen() {
        return lostReason == null && poster.isOpen();
    }

    /**
     * Says why the peer was lost.
     *
     * @return the reason, or nothing while it is there
     */
    public Optional<String> lostReason() {
        return Optional.ofNullable(lostReason);
    }

    /**
     * Lists the pools that the peer offers now.
     *
     * @return those that grant remote access
     */
    public List<RemotePool> pools() {
        synchronized (poolsLock) {
            return pools;
        }
    }

    /**
     * Finds a pool of the peer.
     *
     * @param poolName its name there
     * @return the pool
     * @throws IllegalArgumentException if the peer offers none of that name; the message lists
     *     those it does
     */
    public RemotePool pool(String poolName) {
        return find(poolName)
                .orElseThrow(() ->
                        new IllegalArgumentException(
                                "peer "
                                        + name()
                                        + " offers no pool '"
                                        + poolName
                                        + "'; it offers "
                                        + pools().stream().map(RemotePool::name).toList()));
    }

    /**
     * Waits until the peer offers a pool, as one that it registers after connecting.
     *
     * @param poolName its name there
     * @param timeout longest wait; centuries, which nanoseconds cannot count, are for ever
     * @return the pool
     * @throws IllegalArgumentException if the time is up, with what the peer does offer
     * @throws IllegalStateException if the peer is lost meanwhile
     * @throws InterruptedException if this thread is interrupted
     */
    public RemotePool awaitPool(String poolName, Duration timeout) throws InterruptedException {
        // Wraps around where the time-out is for ever; the difference below still holds.
        long deadline = System.nanoTime() + PosterOptions.nanos(timeout);
        synchronized (poolsLock) {
            while (find(poolName).isEmpty()) {
                requireOpen();
                long millis = (deadline - System.nanoTime()) / 1_000_000;
                if (millis <= 0) {
                    break;
                }
                poolsLock.wait(millis);
            }
            return pool(poolName);
        }
    }

    /**
     * Writes a batch into the peer's memory.
     *
     * @param batch blocks in local pools and in pools of the peer that grant remote write;
     *     unchanged until the transfer has ended
     * @return the transfer, under way
     * @throws IllegalArgumentException if a block is refused; the message names it, and nothing was
     *     posted
     * @throws IllegalStateException if the peer is lost, or a pool was closed. Verb:
     *     ibv_post_send(3), IBV_WR_RDMA_WRITE
     */
    public Transfer write(TransferBatch batch) {
        return post(Direction.WRITE, batch, OptionalInt.empty());
    }

    /**
     * Writes a batch, and behind it an immediate on every queue pair: when the peer has received it
     * on all of them, everything that was written to it before, by this and earlier transfers, is
     * in its memory.
     *
     * @param batch as {@link #write(TransferBatch)}; may be empty
     * @param immediate 32 bits for the peer's listener; those with the top bit set belong to a
     *     KvReceiver, if the peer has one
     * @return the transfer, under way
     * @throws IllegalArgumentException as {@link #write(TransferBatch)}
     * @throws IllegalStateException as {@link #write(TransferBatch)}. Verb: ibv_post_send(3),
     *     IBV_WR_RDMA_WRITE_WITH_IMM
     */
    public Transfer write(TransferBatch batch, int immediate) {
        return post(Direction.WRITE, batch, OptionalInt.of(immediate));
    }

    /**
     * Reads a batch from the peer's memory.
     *
     * @param batch blocks in local pools that the device may write, and in pools of the peer that
     *     grant remote read
     * @return the transfer, under way
     * @throws IllegalArgumentException as {@link #write(TransferBatch)}
     * @throws IllegalStateException as {@link #write(TransferBatch)}. Verb: ibv_post_send(3),
     *     IBV_WR_RDMA_READ
     */
    public Transfer read(TransferBatch batch) {
        return post(Direction.READ, batch, OptionalInt.empty());
    }

    /**
     * Says what writing a batch would do; nothing is posted.
     *
     * @param batch the blocks
     * @return runs, work requests, doorbells, bytes, and blocks that would be refused
     */
    public TransferPlan plan(TransferBatch batch) {
        return plan(Direction.WRITE, batch);
    }

    /**
     * Says what posting a batch would do; nothing is posted.
     *
     * @param direction which way
     * @param batch the blocks
     * @return runs, work requests, doorbells, bytes, and blocks that would be refused
     */
    public TransferPlan plan(Direction direction, TransferBatch batch) {
        return poster.plan(direction, batch, node.registry().addressMap(), remoteMap);
    }

    /**
     * Sends a message to the peer's listener of a topic. Does not wait for it to arrive. Messages
     * keep their order, and come behind the news of pools registered before; but they take another
     * way than transfers, and nothing is said of which of those comes first.
     *
     * <p>What the network has not taken waits in a queue of 32 MiB, where each message counts with
     * 66 bytes more than its own. The queue is no buffer to rely on: a peer that lets it overflow,
     * by reading too slowly or not at all, is cut off. So whoever sends much lets the other side
     * answer now and then.
     *
     * @param topic 0 to 65535
     * @param message at most {@link #MAX_MESSAGE_BYTES}; copied
     * @throws IllegalArgumentException if the message is longer or the topic out of range
     * @throws IOException if the peer is lost, or is lost now as its queue overflows; the message
     *     says which
     */
    public void send(int topic, byte[] message) throws IOException {
        if (topic < 0 || topic > 0xffff || message.length > MAX_MESSAGE_BYTES) {
            throw new IllegalArgumentException(
                    "topic %d must be 0..65535, and a message of %d bytes at most %d long"
                            .formatted(topic, message.length, MAX_MESSAGE_BYTES));
        }
        ByteBuffer frame = ByteBuffer.allocate(Short.BYTES + message.length);
        frame.putShort((short) topic).put(message);
        node.announceNow();
        connection.send(ControlFrame.MESSAGE, frame.array());
    }

    /**
     * Closes the connection: transfers under way fail, the other side is told. Waits until the
     * queue pairs are gone; but not for another thread that sees to that, if called from within a
     * callback, for which that thread may be waiting. Does nothing if done already.
     */
    @Override
    public void close() {
        tearDown(FailureReason.CLOSED, "this side closed the connection to " + name(), null);
        awaitGone();
    }

    @Override
    public String toString() {
        return "peer " + name() + " at " + address();
    }

    /** Begins to hear the peer and to make progress; once it is registered with its node. */
    void start(ProgressThread progress) {
        started = true;
        progress.add(poster);
        connection.start(
                new ControlConnection.Handler() {
                    @Override
                    public void frame(ControlFrame frame) throws IOException {
                        Peer.this.frame(frame);
                    }

                    @Override
                    public void lost(String reason, @Nullable Throwable cause) {
                        tearDown(FailureReason.PEER_LOST, reason, cause);
                    }
                });
        if (!poster.isOpen()) {
            giveUp(FailureReason.PEER_LOST, "the connection failed before it was in use");
        }
    }

    /** Tells the peer what this side offers now. */
    void announce(List<PoolDescriptor> offered) {
        try {
            connection.send(ControlFrame.POOLS, Hello.encodePools(offered));
        } catch (IOException lost) {
            // The connection's handler is told as well, and tears down.
        }
    }

    boolean hasQueuePair(int number) {
        return link.has(number);
    }

    /** Gives the peer up, on a thread of its own, as it takes as long as the drain. */
    void giveUp(FailureReason reason, String message) {
        Thread.ofVirtual()
                .name("verbena-teardown-" + name())
                .start(() -> tearDown(reason, message, null));
    }

    private Transfer post(Direction direction, TransferBatch batch, OptionalInt immediate) {
        requireOpen();
        return poster.post(direction, batch, node.registry().addressMap(), remoteMap, immediate);
    }

    private void requireOpen() {
        String reason = lostReason;
        if (reason != null) {
            throw new IllegalStateException(this + " is lost: " + reason);
        }
    }

    private Optional<RemotePool> find(String poolName) {
        return pools().stream().filter(pool -> pool.name().equals(poolName)).findFirst();
    }

    private void frame(ControlFrame frame) throws IOException {
        switch (frame.kind()) {
            case ControlFrame.POOLS -> pools(Hello.decodePools(frame.payload()));
            case ControlFrame.MESSAGE -> {
                ByteBuffer payload = ByteBuffer.wrap(frame.payload());
                if (payload.remaining() < Short.BYTES) {
                    throw new ControlProtocolException("a message without a topic");
                }
                int topic = Short.toUnsignedInt(payload.getShort());
                node.message(this, topic, payload.slice());
            }
            default -> throw new ControlProtocolException("unexpected " + frame);
        }
    }

    private void pools(List<PoolDescriptor> descriptors) {
        List<RemotePool> offered = descriptors.stream().map(RemotePool::new).toList();
        AddressMap<RemotePool> map = RemotePool.map(offered);
        synchronized (poolsLock) {
            pools = offered;
            remoteMap = map;
            poolsLock.notifyAll();
        }
    }

    private final class PosterListener implements BatchPoster.Listener {
        @Override
        public void immediate(int immediate) {
            node.immediate(Peer.this, immediate);
        }

        @Override
        public void stopped(FailureReason reason, String message) {
            // Before the start the handshake owns the peer, and sees for itself.
            if (started) {
                giveUp(reason, message);
            }
        }
    }

    /** Once, whoever comes first: the reader, a failed transfer, close. */
    private void tearDown(FailureReason reason, String message, @Nullable Throwable cause) {
        if (!tearingDown.compareAndSet(null, Thread.currentThread())) {
            return;
        }
        synchronized (poolsLock) {
            lostReason = message;
            poolsLock.notifyAll();
        }
        try {
            poster.fail(reason, message, cause);
            connection.close(message);
            node.noProgress(poster);
            try {
                poster.close();
            } finally {
                link.close();
            }
        } finally {
            // Only now: a node that closes waits for the peers that it knows.
            node.remove(this);
            gone.countDown();
            if (started) {
                node.lost(this, message);
            }
        }
    }

    private void awaitGone() {
        if (tearingDown.get() != Thread.currentThread() && !Callbacks.isInside()) {
            Node.awaitUninterruptibly(gone);
        }
    }
}
