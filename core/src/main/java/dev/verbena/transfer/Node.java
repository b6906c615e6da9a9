package dev.verbena.transfer;

import dev.verbena.memory.MemoryRegistry;
import dev.verbena.verbs.AsyncEvent;
import dev.verbena.verbs.VerbsException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * This process among others: an RDMA device or TCP, the registered memory, and the peers it is
 * connected to.
 *
 * <p>Life: {@link #open}; register pools; {@link #connect}, or listen and be connected to; {@link
 * #close}, which closes peers and pools. Safe for use by several threads.
 *
 * <p>A node has one thread that makes progress for all peers and one for the device's events, both
 * daemons, and two virtual threads a control connection. Over TCP each queue pair has a daemon, and
 * there are no events of a device.
 *
 * <p>Listeners are called without a lock of this library held. What one throws is logged and
 * changes nothing, but for a {@link MessageListener}.
 */
public final class Node implements AutoCloseable {
    private static final Logger LOG = System.getLogger(Node.class.getName());

    /** How long a message waits for somebody to hear its topic. */
    private static final Duration LISTENER_WAIT = Duration.ofSeconds(5);

    /** Pools that come in a burst are announced together. */
    private static final Duration ANNOUNCE_DELAY = Duration.ofMillis(2);

    private final NodeOptions options;
    private final long incarnation = new SecureRandom().nextLong();
    private final Fabric fabric;
    private final MemoryRegistry registry;
    private final ProgressThread progress;
    private final @Nullable ControlListener listener;

    private final List<Peer> peers = new CopyOnWriteArrayList<>();
    private final List<PeerListener> peerListeners = new CopyOnWriteArrayList<>();
    private final List<BiConsumer<Peer, String>> lostListeners = new CopyOnWriteArrayList<>();
    private final List<ImmediateListener> immediateListeners = new CopyOnWriteArrayList<>();

    /** Guarded by itself, which is notified of every new listener. */
    private final Map<Integer, MessageListener> messageListeners = new HashMap<>();

    private final AtomicBoolean announcing = new AtomicBoolean();
    private final Object announceLock = new Object();
    private final AtomicBoolean closed = new AtomicBoolean();
    private final CountDownLatch closedCompletely = new CountDownLatch(1);

    /** Handshakes that have built something of the device; also guards the turn to closed. */
    private final Set<Joining> joinings = new HashSet<>();

    private Node(NodeOptions options, Fabric fabric) throws IOException {
        this.options = options;
        this.fabric = fabric;
        this.registry = new MemoryRegistry(fabric.regions(), options.registry());
        this.progress = new ProgressThread("verbena-progress", fabric.events());
        fabric.watch(this::handle);
        registry.onChange(this::announceSoon);
        try {
            InetSocketAddress address = options.listenAddress().orElse(null);
            listener =
                    address == null
                            ? null
                            : ControlListener.bind(address, options.control(), this::greet);
        } catch (IOException | RuntimeException failure) {
            closed.set(true);
            progress.close();
            throw failure;
        }
    }

    /**
     * Opens a node.
     *
     * @param options which device, and how
     * @return the node, to be closed by the caller
     * @throws IllegalArgumentException if the device does not exist, or the options would let
     *     strangers write to its pools
     * @throws IllegalStateException if this machine has no RDMA device, or its port is down
     * @throws dev.verbena.bindings.VerbsUnavailableException if libibverbs is not installed
     * @throws VerbsException if the device refuses
     * @throws IOException if the address to listen on cannot be bound
     */
    public static Node open(NodeOptions options) throws IOException {
        Fabric fabric = options.isTcp() ? TcpFabric.open(options) : VerbsFabric.open(options);
        try {
            return new Node(options, fabric);
        } catch (IOException | RuntimeException failure) {
            fabric.close();
            throw failure;
        }
    }

    /**
     * Gives the node's registered memory.
     *
     * @return the registry, closed with the node
     */
    public MemoryRegistry registry() {
        return registry;
    }

    /**
     * Copies blocks within this node's pools, by the processor: each from its local address to its
     * remote one, which here is an address of this node too. This is how heads are gathered into a
     * staging area, and scattered from one. Returns when all is copied; many bytes are shared out
     * over the processors.
     *
     * <p>Cost: one pass over the batch to check it, then a memory copy a block; nothing is
     * allocated for a block.
     *
     * @param batch the blocks, unchanged meanwhile. They are copied in no particular order, so no
     *     block's destination may overlap another block
     * @throws IllegalArgumentException if a block is in no pool, passes its pool's end, overlaps
     *     itself, or is in memory that this thread cannot reach or write; the message names it, and
     *     nothing was copied
     * @throws IllegalStateException if a pool was closed
     */
    public void copy(TransferBatch batch) {
        LocalCopy.run(batch, registry.addressMap());
    }

    /**
     * Names the device in use.
     *
     * @return its name; "tcp" if there is none
     */
    public String deviceName() {
        return fabric.deviceName();
    }

    /**
     * Names what carries the transfers.
     *
     * @return "verbs" for RDMA, or "tcp"
     */
    public String transport() {
        return fabric.transport();
    }

    /**
     * Gives the TCP port that the node listens on.
     *
     * @return the port, also if any free one was asked for
     * @throws IllegalStateException if the node does not listen
     */
    public int listenPort() {
        if (listener == null) {
            throw new IllegalStateException("this node does not listen; see NodeOptions.listen");
        }
        return listener.port();
    }

    /**
     * Connects to another node.
     *
     * @param address "host:port" of its control connection
     * @return the peer, connected
     * @throws IllegalArgumentException if the address is not of that form
     * @throws IOException as {@link #connect(InetSocketAddress)}
     */
    public Peer connect(String address) throws IOException {
        int colon = address.lastIndexOf(':');
        try {
            int port = Integer.parseInt(address.substring(colon + 1));
            return connect(new InetSocketAddress(address.substring(0, Math.max(0, colon)), port));
        } catch (NumberFormatException malformed) {
            throw new IllegalArgumentException(
                    "'" + address + "' is not of the form host:port", malformed);
        }
    }

    /**
     * Connects to another node. Bounded by the options' connect deadline, for the TCP connection
     * and again for the handshake.
     *
     * @param address of its control connection
     * @return the peer, connected
     * @throws IOException if it cannot be reached, by the control connection or those for data; if
     *     it is no node of Verbena, or of another version; or if it refuses, in its words, as where
     *     it is on another transport
     * @throws IllegalStateException if the node is closed, the peer is on another transport or
     *     network, or no GID of this side reaches the peer
     * @throws VerbsException if the device refuses, as when the GIDs cannot reach each other
     */
    public Peer connect(InetSocketAddress address) throws IOException {
        requireOpen();
        ControlConnection connection = ControlConnection.connect(address, options.control());
        try {
            try (Joining joining = new Joining(connection, null)) {
                connection.send(ControlFrame.HELLO, hello(joining.link()).encode());
                joining.join(welcome(connection), connection);
                connection.send(ControlFrame.READY, new byte[0]);
                Peer peer = joining.admit();
                tellOf(peer);
                return peer;
            }
        } catch (IOException | RuntimeException failure) {
            connection.close("cannot connect: " + failure.getMessage());
            throw failure;
        }
    }

    /** The listening side of the handshake; whatever it throws is told to the other side. */
    private void greet(Hello hello, ControlConnection connection) throws IOException {
        requireOpen();
        try (Joining joining = new Joining(connection, hello)) {
            joining.join(hello, connection);
            connection.send(ControlFrame.WELCOME, hello(joining.link()).encode());
            connection.receive(ControlFrame.READY);
            joining.link().awaitConnected();
            Peer peer = joining.admit();
            // On a thread of its own: there is only so much room for handshakes, and closing the
            // listener, which this one's may do, waits for them.
            Thread.ofVirtual().name("verbena-peer-" + peer.name()).start(() -> tellOf(peer));
        }
    }

    private static Hello welcome(ControlConnection connection) throws IOException {
        byte[] payload = connection.receive(ControlFrame.WELCOME).payload();
        try {
            return Hello.decode(payload);
        } catch (IllegalArgumentException malformed) {
            throw new ControlProtocolException(
                    "the peer's welcome makes no sense: " + malformed.getMessage(), malformed);
        }
    }

    /** A listener, and whom it was told of: one that comes while it is added, only once. */
    private static final class PeerListener {
        private final Consumer<Peer> listener;
        private final Set<Peer> told =
                Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

        PeerListener(Consumer<Peer> listener) {
            this.listener = listener;
        }

        void tell(Peer peer) {
            if (told.add(peer)) {
                try {
                    listener.accept(peer);
                } catch (RuntimeException | Error failure) {
                    LOG.log(Level.WARNING, "a listener of peers failed", failure);
                }
            }
        }
    }

    /** What a handshake has built so far, undone on close unless the peer was admitted. */
    private final class Joining implements AutoCloseable {
        private final ControlConnection connection;

        /** Null until it is made; read by a thread that closes the node, too. */
        private volatile @Nullable Link link;

        private @Nullable Peer peer;
        private boolean admitted;

        Joining(ControlConnection connection, @Nullable Hello peer) {
            this.connection = connection;
            synchronized (joinings) {
                requireOpen();
                joinings.add(this);
            }
            try {
                link = fabric.link(peer);
            } catch (RuntimeException failure) {
                leave();
                throw failure;
            }
        }

        Link link() {
            return Objects.requireNonNull(link);
        }

        void join(Hello hello, ControlConnection connection) throws IOException {
            peer = new Peer(Node.this, hello, connection, link());
        }

        Peer admit() {
            Peer joined = Objects.requireNonNull(peer);
            synchronized (joinings) {
                requireOpen();
                peers.add(joined);
            }
            // From here on the peer closes itself, and a listener may close the node.
            admitted = true;
            leave();
            joined.start(progress);
            // Pools may have come or gone since the hello was made.
            announceSoon();
            return joined;
        }

        void breakOff() {
            Link made = link;
            if (made != null) {
                made.breakOff();
            }
        }

        private void leave() {
            synchronized (joinings) {
                joinings.remove(this);
                joinings.notifyAll();
            }
        }

        @Override
        public void close() {
            if (admitted) {
                return;
            }
            try {
                if (peer != null) {
                    peer.close();
                } else {
                    link().close();
                }
            } finally {
                leave();
            }
        }
    }

    /**
     * Lists the peers that are connected.
     *
     * @return those connected to and by
     */
    public List<Peer> peers() {
        return peers.stream().filter(peer -> peer.lostReason().isEmpty()).toList();
    }

    /**
     * Adds a listener that is told of every new peer, and at once, on the calling thread, of those
     * there are.
     *
     * @param peerListener called once a peer: on the thread that connects, before {@link #connect}
     *     returns, or on one of its own for a peer that has connected to this node. It may block,
     *     and may close the peer or the node; while it runs the peer may already send messages and
     *     immediates, or be lost
     */
    public void onPeer(Consumer<Peer> peerListener) {
        PeerListener listening = new PeerListener(peerListener);
        peerListeners.add(listening);
        peers.forEach(listening::tell);
    }

    /**
     * Adds a listener that is told of every peer that is lost or closed, and why, when nothing of
     * it is left.
     *
     * @param lostListener called once a peer, on the thread that closed it or found it lost. It may
     *     connect again; the closing of the node, or whoever closes the peer, waits for it
     */
    public void onPeerLost(BiConsumer<Peer, String> lostListener) {
        lostListeners.add(lostListener);
    }

    /**
     * Adds a listener that is told of immediates.
     *
     * @param immediateListener called on whichever thread finds the immediate: the one that makes
     *     progress for all peers, or one that posts to the peer, waits for it or closes it. So it
     *     should be short: others wait for that thread. It may post, wait for transfers and close
     *     peers or the node, as {@link Transfer#completion} says
     */
    public void onImmediate(ImmediateListener immediateListener) {
        immediateListeners.add(immediateListener);
    }

    /**
     * Sets who is told of the messages on a topic.
     *
     * @param topic 0 to 65535
     * @param messageListener called on the thread that reads the peer's control connection: while
     *     it runs nothing else of that peer is heard, also no change of its pools
     * @throws IllegalArgumentException if the topic is taken or out of range
     */
    public void onMessage(int topic, MessageListener messageListener) {
        if (topic < 0 || topic > 0xffff) {
            throw new IllegalArgumentException("topic " + topic + " is outside 0..65535");
        }
        synchronized (messageListeners) {
            if (messageListeners.putIfAbsent(topic, messageListener) != null) {
                throw new IllegalArgumentException("topic " + topic + " has a listener already");
            }
            messageListeners.notifyAll();
        }
    }

    /**
     * Closes the node: stops listening, closes the peers, failing their transfers, then the pools
     * and the device. Where a part fails, the rest is closed all the same, and the first failure
     * thrown. If another thread is at it already, waits until that is done. Does nothing if done
     * already.
     *
     * <p>Called from within a callback, it returns at once, and the node closes on a thread of its
     * own: that must wait for the threads that run callbacks.
     *
     * @throws IllegalStateException if a pool is held for longer, as by a copy under way
     * @throws VerbsException if the device refuses
     */
    @Override
    public void close() {
        boolean first = closed.compareAndSet(false, true);
        if (Callbacks.isInside()) {
            if (first) {
                Thread.ofVirtual().name("verbena-close").start(this::closeLogged);
            }
        } else if (first) {
            closeAll();
        } else {
            awaitUninterruptibly(closedCompletely);
        }
    }

    private void closeLogged() {
        try {
            closeAll();
        } catch (RuntimeException | Error failure) {
            LOG.log(Level.ERROR, "closing " + this + " failed", failure);
        }
    }

    private void closeAll() {
        List<Joining> unfinished;
        synchronized (joinings) {
            // Those that come later see that the node is closed.
            unfinished = List.copyOf(joinings);
        }
        Closing closing = new Closing();
        unfinished.forEach(joining -> closing.then(joining::breakOff));
        if (listener != null) {
            closing.then(listener::close);
        }
        unfinished.forEach(
                joining -> closing.then(() -> joining.connection.close("the node is closing")));
        closing.then(this::awaitJoinings);
        peers.forEach(peer -> closing.then(peer::close));
        closing.then(this::awaitPeers)
                .then(progress::close)
                .then(registry::close)
                .then(fabric::close)
                .then(closedCompletely::countDown)
                .end();
    }

    /** Waits for those that other threads see to. */
    private void awaitPeers() {
        synchronized (joinings) {
            boolean interrupted = false;
            while (!peers.isEmpty()) {
                try {
                    joinings.wait();
                } catch (InterruptedException later) {
                    interrupted = true;
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    static void awaitUninterruptibly(CountDownLatch latch) {
        boolean interrupted = false;
        while (true) {
            try {
                latch.await();
                break;
            } catch (InterruptedException later) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void awaitJoinings() {
        boolean interrupted = false;
        synchronized (joinings) {
            while (!joinings.isEmpty()) {
                try {
                    joinings.wait();
                } catch (InterruptedException later) {
                    interrupted = true;
                }
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public String toString() {
        return "node " + options.name() + " on " + fabric.deviceName();
    }

    // What follows is for the peers of this package.

    void noProgress(BatchPoster poster) {
        progress.remove(poster);
    }

    void remove(Peer peer) {
        synchronized (joinings) {
            peers.remove(peer);
            joinings.notifyAll();
        }
    }

    void lost(Peer peer, String reason) {
        for (BiConsumer<Peer, String> lostListener : lostListeners) {
            try {
                Callbacks.run(() -> lostListener.accept(peer, reason));
            } catch (RuntimeException failure) {
                LOG.log(Level.WARNING, "a listener of lost peers failed", failure);
            }
        }
    }

    void message(Peer peer, int topic, ByteBuffer message) throws IOException {
        MessageListener messageListener = awaitListener(topic);
        Callbacks.run(() -> messageListener.arrived(peer, message));
    }

    /** A peer may be quicker than the setting up of this side: its messages wait for a moment. */
    private MessageListener awaitListener(int topic) throws IOException {
        long deadline = System.nanoTime() + LISTENER_WAIT.toNanos();
        synchronized (messageListeners) {
            MessageListener messageListener;
            while ((messageListener = messageListeners.get(topic)) == null) {
                long millis = Duration.ofNanos(deadline - System.nanoTime()).toMillis();
                if (millis <= 0 || closed.get()) {
                    throw new ControlProtocolException(
                            "a message on topic " + topic + ", which nobody hears");
                }
                try {
                    messageListeners.wait(millis);
                } catch (InterruptedException stop) {
                    Thread.currentThread().interrupt();
                    throw new InterruptedIOException("interrupted while a message waited");
                }
            }
            return messageListener;
        }
    }

    void immediate(Peer peer, int immediate) {
        for (ImmediateListener immediateListener : immediateListeners) {
            try {
                immediateListener.arrived(peer, immediate);
            } catch (RuntimeException failure) {
                LOG.log(Level.WARNING, "a listener of immediates failed", failure);
            }
        }
    }

    private void tellOf(Peer peer) {
        peerListeners.forEach(peerListener -> peerListener.tell(peer));
    }

    private Hello hello(Link link) {
        return new Hello(options.name(), incarnation, link.address(), registry.descriptors());
    }

    private void announceSoon() {
        if (!peers.isEmpty() && announcing.compareAndSet(false, true)) {
            Thread.ofVirtual().name("verbena-announce").start(this::announce);
        }
    }

    private void announce() {
        try {
            Thread.sleep(ANNOUNCE_DELAY);
        } catch (InterruptedException noMatter) {
            Thread.currentThread().interrupt();
        }
        announceNow();
    }

    /**
     * Tells the peers of pools that have come or gone, if they do not know yet. When it returns
     * they have been told, by whichever thread: so a message sent next cannot be ahead of the
     * pools.
     */
    void announceNow() {
        // One at a time, or an older list might arrive behind a newer one.
        synchronized (announceLock) {
            // Cleared first: what changes from here on starts another announcement.
            if (announcing.compareAndSet(true, false)) {
                var offered = registry.descriptors();
                peers.forEach(peer -> peer.announce(offered));
            }
        }
    }

    private void handle(AsyncEvent event) {
        LOG.log(event.isFailure() ? Level.WARNING : Level.DEBUG, "{0}: {1}", this, event);
        if (!event.isFailure()) {
            return;
        }
        String message = "device event: " + event.name();
        for (Peer peer : peers) {
            switch (event.subject()) {
                case DEVICE, COMPLETION_QUEUE -> peer.giveUp(FailureReason.DEVICE, message);
                case QUEUE_PAIR -> {
                    if (peer.hasQueuePair(event.number())) {
                        peer.giveUp(FailureReason.DEVICE, message);
                    }
                }
                default -> {}
            }
        }
    }

    private void requireOpen() {
        if (closed.get()) {
            throw new IllegalStateException(this + " is closed");
        }
    }
}
