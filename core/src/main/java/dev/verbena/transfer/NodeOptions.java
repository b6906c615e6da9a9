package dev.verbena.transfer;

import dev.verbena.memory.RegistryOptions;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalInt;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/**
 * How a node is opened. Immutable: every method gives changed options and leaves these.
 *
 * <p>Defaults: port 1 of the device, the GID that reaches furthest, two queue pairs to a peer, no
 * listening, no TLS.
 */
public final class NodeOptions {
    private static final int MAX_QUEUE_PAIRS = Hello.MAX_QUEUE_PAIRS;

    private @Nullable String device;
    private boolean isTcp;
    private String name = "node-" + ProcessHandle.current().pid();
    private int port = 1;
    private OptionalInt gidIndex = OptionalInt.empty();
    private int queuePairs = 2;
    private @Nullable InetSocketAddress listenAddress;
    private boolean listenUnencrypted;
    private PosterOptions poster = PosterOptions.defaults();
    private RegistryOptions registry = RegistryOptions.defaults();
    private ControlOptions control = ControlOptions.defaults();

    private NodeOptions() {}

    private NodeOptions(NodeOptions other) {
        device = other.device;
        isTcp = other.isTcp;
        name = other.name;
        port = other.port;
        gidIndex = other.gidIndex;
        queuePairs = other.queuePairs;
        listenAddress = other.listenAddress;
        listenUnencrypted = other.listenUnencrypted;
        poster = other.poster;
        registry = other.registry;
        control = other.control;
    }

    /**
     * Options for a device given by name.
     *
     * @param device as {@link dev.verbena.verbs.Device#names} lists it
     * @return options with all else by default
     */
    public static NodeOptions device(String device) {
        NodeOptions options = new NodeOptions();
        options.device = device;
        return options;
    }

    /**
     * Options for the only device of this machine; with several, opening refuses and lists them.
     *
     * @return options with all else by default
     */
    public static NodeOptions onlyDevice() {
        return new NodeOptions();
    }

    /**
     * Options for a node without RDMA: transfers go over TCP, with the same outcomes. It needs
     * neither a device nor libibverbs. Its peers are TCP nodes too.
     *
     * <p>Data takes connections of its own, one for each queue pair, to a free port of the address
     * that the other side listens on. Only who is told so over the control connection can connect
     * there; the data itself is not encrypted, with {@link #tls} neither, as over RDMA.
     *
     * @return options with all else by default; port and GID index have no meaning
     */
    public static NodeOptions tcp() {
        NodeOptions options = new NodeOptions();
        options.isTcp = true;
        return options;
    }

    /**
     * Names the node, for its peers' messages.
     *
     * @param newName 1 to 255 bytes of UTF-8
     * @return changed options
     */
    public NodeOptions name(String newName) {
        NodeOptions changed = new NodeOptions(this);
        changed.name = newName;
        return changed;
    }

    /**
     * Chooses the device's port.
     *
     * @param newPort from 1
     * @return changed options
     */
    public NodeOptions port(int newPort) {
        NodeOptions changed = new NodeOptions(this);
        changed.port = newPort;
        return changed;
    }

    /**
     * Insists on a GID instead of the one that reaches furthest.
     *
     * @param index index into the port's table
     * @return changed options
     */
    public NodeOptions gidIndex(int index) {
        NodeOptions changed = new NodeOptions(this);
        changed.gidIndex = OptionalInt.of(index);
        return changed;
    }

    /**
     * Chooses how many queue pairs join two nodes; the smaller number of both sides counts.
     *
     * @param count 1 to 256
     * @return changed options
     * @throws IllegalArgumentException if the count is out of range
     */
    public NodeOptions queuePairs(int count) {
        if (count < 1 || count > MAX_QUEUE_PAIRS) {
            throw new IllegalArgumentException(
                    "queuePairs=" + count + " is outside 1.." + MAX_QUEUE_PAIRS);
        }
        NodeOptions changed = new NodeOptions(this);
        changed.queuePairs = count;
        return changed;
    }

    /**
     * Listens for peers on the loopback address.
     *
     * @param tcpPort the port, or 0 for any that is free
     * @return changed options
     */
    public NodeOptions listen(int tcpPort) {
        return listen(new InetSocketAddress(InetAddress.getLoopbackAddress(), tcpPort));
    }

    /**
     * Listens for peers. Whoever gets through the control connection may write to the pools that
     * are offered, so beyond loopback this needs {@link #tls}.
     *
     * @param address where to listen
     * @return changed options
     */
    public NodeOptions listen(InetSocketAddress address) {
        NodeOptions changed = new NodeOptions(this);
        changed.listenAddress = address;
        changed.listenUnencrypted = address.getAddress().isLoopbackAddress();
        return changed;
    }

    /**
     * Listens for peers without TLS, beyond loopback: only on a network where everybody may write
     * to this node's pools.
     *
     * @param address where to listen
     * @return changed options
     */
    public NodeOptions listenUnencrypted(InetSocketAddress address) {
        NodeOptions changed = listen(address);
        changed.listenUnencrypted = true;
        return changed;
    }

    /**
     * Protects control connections, made and accepted, by TLS. Both sides show a certificate, and a
     * peer whose certificate the context does not trust is turned away; host names are not
     * compared. The data itself goes over RDMA, which is not encrypted.
     *
     * @param context this node's key and whom it trusts
     * @return changed options
     */
    public NodeOptions tls(SSLContext context) {
        NodeOptions changed = new NodeOptions(this);
        changed.control = control.withTls(context);
        return changed;
    }

    /**
     * Sets how long connecting may take.
     *
     * @param deadline for the TCP connection, and again for the handshake on it; a millisecond to a
     *     day
     * @return changed options
     * @throws IllegalArgumentException if it is shorter or longer
     */
    public NodeOptions connectDeadline(Duration deadline) {
        NodeOptions changed = new NodeOptions(this);
        changed.control = control.withConnectDeadline(deadline).withHandshakeDeadline(deadline);
        return changed;
    }

    /**
     * Sets how a silent peer is noticed.
     *
     * @param interval how often each side says that it is there
     * @param silence after how long without a word the other is lost; longer than the interval.
     *     Both a millisecond to a day
     * @return changed options
     * @throws IllegalArgumentException if that is not so
     */
    public NodeOptions heartbeat(Duration interval, Duration silence) {
        NodeOptions changed = new NodeOptions(this);
        changed.control = control.withHeartbeat(interval, silence);
        return changed;
    }

    /**
     * Sets how transfers are posted.
     *
     * @param newPoster the options
     * @return changed options
     */
    public NodeOptions poster(PosterOptions newPoster) {
        NodeOptions changed = new NodeOptions(this);
        changed.poster = newPoster;
        return changed;
    }

    /**
     * Sets how memory is registered.
     *
     * @param newRegistry the options
     * @return changed options
     */
    public NodeOptions registry(RegistryOptions newRegistry) {
        NodeOptions changed = new NodeOptions(this);
        changed.registry = newRegistry;
        return changed;
    }

    Optional<String> device() {
        return Optional.ofNullable(device);
    }

    boolean isTcp() {
        return isTcp;
    }

    String name() {
        return name;
    }

    int port() {
        return port;
    }

    OptionalInt gidIndex() {
        return gidIndex;
    }

    int queuePairs() {
        return queuePairs;
    }

    /** Where to listen, if at all; refused where anybody could write to the pools. */
    Optional<InetSocketAddress> listenAddress() {
        InetSocketAddress address = listenAddress;
        if (address != null && !listenUnencrypted && control.tls() == null) {
            throw new IllegalArgumentException(
                    "listening on "
                            + address
                            + " without TLS would let anybody who reaches it write to the pools:"
                            + " give an SSLContext, or say listenUnencrypted");
        }
        return Optional.ofNullable(address);
    }

    PosterOptions poster() {
        return poster;
    }

    RegistryOptions registry() {
        return registry;
    }

    ControlOptions control() {
        return control;
    }
}
