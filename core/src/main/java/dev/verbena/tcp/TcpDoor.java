package dev.verbena.tcp;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Where the data connections of a listening node come in. Each shows a token first; one that is not
 * expected, or takes too long to show it, is dropped.
 *
 * <p>Life: {@link #open}; {@link #expect} a lane; {@link #close}. Safe for use by several threads.
 */
public final class TcpDoor implements AutoCloseable {
    private static final Logger LOG = System.getLogger(TcpDoor.class.getName());

    /** Strangers may hold so many connections open for as long as the deadline. */
    private static final int MAX_GREETINGS = 256;

    private final ServerSocketChannel server;
    private final long deadlineMillis;
    private final Map<LaneToken, TcpLane> expected = new ConcurrentHashMap<>();
    private final Semaphore greetings = new Semaphore(MAX_GREETINGS);

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
            server.bind(new InetSocketAddress(address, 0));
        } catch (IOException | RuntimeException failure) {
            server.close();
            throw failure;
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
     * Connects to a door.
     *
     * @param address where it is
     * @param token to be shown
     * @param timeout longest wait
     * @return the connection
     * @throws IOException if it cannot be reached in time
     */
    public static SocketChannel knock(InetSocketAddress address, LaneToken token, Duration timeout)
            throws IOException {
        SocketChannel channel = SocketChannel.open();
        try {
            int millis = Math.clamp(TimeUnit.MILLISECONDS.convert(timeout), 1, 1 << 30);
            channel.socket().connect(address, millis);
            ByteBuffer greeting = ByteBuffer.allocate(LaneToken.BYTES);
            token.put(greeting);
            greeting.flip();
            while (greeting.hasRemaining()) {
                channel.write(greeting);
            }
            return channel;
        } catch (IOException | RuntimeException failure) {
            channel.close();
            throw failure;
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
    }

    private void accept() {
        while (server.isOpen()) {
            try {
                SocketChannel channel = server.accept();
                if (greetings.tryAcquire()) {
                    Thread.ofVirtual().name("verbena-tcp-greet").start(() -> greet(channel));
                } else {
                    channel.close();
                }
            } catch (ClosedChannelException closed) {
                return;
            } catch (IOException failure) {
                // Such as no file descriptor left: it may pass.
                LOG.log(Level.WARNING, "accepting a data connection failed", failure);
                pause();
            }
        }
    }

    private void greet(SocketChannel channel) {
        try {
            TcpLane lane = expected.remove(readToken(channel));
            if (lane == null) {
                channel.close();
            } else {
                lane.connect(channel);
            }
        } catch (IOException | RuntimeException failure) {
            LOG.log(Level.DEBUG, "a data connection was dropped", failure);
            closeQuietly(channel);
        } finally {
            greetings.release();
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
                    throw new IOException("closed before its token");
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
            Thread.sleep(100);
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
