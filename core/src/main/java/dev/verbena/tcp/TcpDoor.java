package dev.verbena.tcp;

import java.io.EOFException;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * Where the data connections of a listening node come in. Each shows a token first; one that is not
 * expected, or takes too long to show it, is dropped. There is room for so many that have yet to
 * show theirs; one more drops the oldest of them, which is the one that has had the most time: so
 * strangers who say nothing keep nobody out.
 *
 * <p>Life: {@link #open}; {@link #expect} a lane; {@link #close}. Safe for use by several threads.
 */
public final class TcpDoor implements AutoCloseable {
    private static final Logger LOG = System.getLogger(TcpDoor.class.getName());

    /** Connections that may have shown no token yet. */
    static final int MAX_GREETINGS = 256;

    /** All peers may come at once, with several lanes each. */
    private static final int BACKLOG = 1024;

    private static final long ACCEPT_PAUSE_MILLIS = 100;

    private final ServerSocketChannel server;
    private final long deadlineMillis;
    private final Map<LaneToken, TcpLane> expected = new ConcurrentHashMap<>();

    /** Those that have shown no token yet, oldest first. Guarded by itself. */
    private final ArrayDeque<SocketChannel> greetings = new ArrayDeque<>();

    private TcpDoor(ServerSocketChannel server, Duration deadline) {
        this.server = server;
        this.deadlineMillis = Math.max(1, TimeUnit.MILLISECONDS.convert(deadline));
    }

    /**
     * Opens a door.
     *
     * @param address where to listen; any free port is taken
     * @param deadline how long a connection may take to show its token
     * @return the door, to be closed by the caller
     * @throws IOException if the address cannot be bound
     */
    public static TcpDoor open(InetAddress address, Duration deadline) throws IOException {
        ServerSocketChannel server = ServerSocketChannel.open();
        try {
            server.bind(new InetSocketAddress(address, 0), BACKLOG);
        } catch (IOException failure) {
            server.close();
            throw new IOException(
                    "cannot listen for data connections on %s: %s"
                            .formatted(address.getHostAddress(), failure.getMessage()),
                    failure);
        }
        TcpDoor door = new TcpDoor(server, deadline);
        Thread.ofVirtual().name("verbena-tcp-door").start(door::accept);
        return door;
    }

    /**
     * Says where to connect to.
     *
     * @return the TCP port
     */
    public int port() {
        return server.socket().getLocalPort();
    }

    /**
     * Lets a connection in: the next one that shows the token becomes that of the lane.
     *
     * @param token what it must show
     * @param lane takes it
     */
    public void expect(LaneToken token, TcpLane lane) {
        expected.put(token, lane);
    }

    /**
     * Does not let a connection in any more.
     *
     * @param token of {@link #expect}; unknown ones do no harm
     */
    public void forget(LaneToken token) {
        expected.remove(token);
    }

    /**
     * Connects a channel to a door.
     *
     * @param channel new, and closed by the caller
     * @throws IOException if it cannot be reached in time
     */
    static void knock(
            SocketChannel channel, InetSocketAddress door, LaneToken token, Duration timeout)
            throws IOException {
        try {
            int millis = Math.clamp(TimeUnit.MILLISECONDS.convert(timeout), 1, 1 << 30);
            channel.socket().connect(door, millis);
            ByteBuffer greeting = ByteBuffer.allocate(LaneToken.BYTES);
            token.put(greeting);
            greeting.flip();
            while (greeting.hasRemaining()) {
                channel.write(greeting);
            }
        } catch (IOException failure) {
            throw new IOException(
                    "cannot open a data connection to %s:%d, which the peer listens on: %s; is the"
                                    .formatted(
                                            door.getAddress().getHostAddress(),
                                            door.getPort(),
                                            failure.getMessage())
                            + " port open to this host?",
                    failure);
        }
    }

    /** Closes the door; lanes that have come in stay. */
    @Override
    public void close() {
        expected.clear();
        try {
            server.close();
        } catch (IOException failure) {
            LOG.log(Level.DEBUG, "closing the door", failure);
        }
        synchronized (greetings) {
            greetings.forEach(TcpDoor::closeQuietly);
        }
    }

    private void accept() {
        while (server.isOpen()) {
            try {
                SocketChannel channel = server.accept();
                admit(channel);
                Thread.ofVirtual().name("verbena-tcp-greet").start(() -> greet(channel));
            } catch (Throwable failure) {
                if (server.isOpen()) {
                    // Out of file handles or memory, as a rule, which may pass; and without this
                    // thread the node would be deaf.
                    LOG.log(Level.WARNING, "accepting a data connection failed", failure);
                    pause();
                }
            }
        }
    }

    private void admit(SocketChannel channel) {
        SocketChannel oldest = null;
        synchronized (greetings) {
            if (greetings.size() == MAX_GREETINGS) {
                oldest = greetings.remove();
            }
            greetings.add(channel);
        }
        if (oldest != null) {
            closeQuietly(oldest);
        }
        if (!server.isOpen()) {
            closeQuietly(channel);
        }
    }

    private void greet(SocketChannel channel) {
        try {
            LaneToken token = readToken(channel);
            TcpLane lane = greeted(channel) ? expected.remove(token) : null;
            if (lane == null) {
                throw new IOException("nobody expects its token");
            }
            lane.connect(channel);
        } catch (IOException | RuntimeException | Error failure) {
            LOG.log(Level.DEBUG, "a data connection was dropped", failure);
            greeted(channel);
            closeQuietly(channel);
        }
    }

    /** Counts a connection as greeted; false if it had been dropped. */
    private boolean greeted(SocketChannel channel) {
        synchronized (greetings) {
            return greetings.remove(channel);
        }
    }

    private LaneToken readToken(SocketChannel channel) throws IOException {
        Thread guard =
                Thread.ofVirtual()
                        .name("verbena-tcp-deadline")
                        .start(() -> {
                            try {
                                Thread.sleep(deadlineMillis);
                                closeQuietly(channel);
                            } catch (InterruptedException inTime) {
                                // The token has come.
                            }
                        });
        try {
            ByteBuffer greeting = ByteBuffer.allocate(LaneToken.BYTES);
            while (greeting.hasRemaining()) {
                if (channel.read(greeting) < 0) {
                    throw new EOFException("closed before its token");
                }
            }
            greeting.flip();
            return LaneToken.get(greeting);
        } finally {
            guard.interrupt();
        }
    }

    private static void pause() {
        try {
            Thread.sleep(ACCEPT_PAUSE_MILLIS);
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
    }

    static void closeQuietly(SocketChannel channel) {
        try {
            channel.close();
        } catch (IOException gone) {
            // It is closed all the same.
        }
    }
}
