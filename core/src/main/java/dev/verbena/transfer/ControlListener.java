package dev.verbena.transfer;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Accepts control connections. Whatever a stranger does, or fails to do, costs that stranger's
 * socket and one of a bounded number of handshakes for a bounded time: other peers, and the
 * accepting itself, go on.
 *
 * <p>Life: {@link #bind}, {@link #close}. One platform thread accepts, and each handshake has a
 * virtual thread, which calls the greeter: so greeters run side by side. Safe for any thread.
 */
final class ControlListener implements AutoCloseable {
    /** Answers a peer that has introduced itself. */
    @FunctionalInterface
    interface Greeter {
        /**
         * Does the rest of the handshake: sends WELCOME, and starts the connection. From a normal
         * return on, the connection is the greeter's to close.
         *
         * @throws IOException if the handshake fails. Then, and on any other exception, the peer is
         *     refused with the exception's message and the connection closed
         */
        void greet(Hello hello, ControlConnection connection) throws IOException;
    }

    /** Most handshakes at a time; those beyond are refused at once. */
    static final int MAX_HANDSHAKES = 64;

    /** Most refusals at a time; those beyond are cut off without a word. */
    private static final int MAX_REFUSALS = 64;

    /** Connections that the kernel keeps until they are accepted: all nodes may start at once. */
    private static final int BACKLOG = 1024;

    private static final Duration CLOSE_BOUND = Duration.ofSeconds(5);
    private static final long FIRST_BACK_OFF_MILLIS = 10;
    private static final long LONGEST_BACK_OFF_MILLIS = 1000;

    private final ServerSocket server;
    private final ControlOptions options;
    private final Greeter greeter;
    private final ControlComplaints complaints = new ControlComplaints();
    private final Semaphore handshakes = new Semaphore(MAX_HANDSHAKES);
    private final Semaphore refusals = new Semaphore(MAX_REFUSALS);
    private final Set<Socket> inProgress = ConcurrentHashMap.newKeySet();

    /** The connections over sockets in progress, from where there is one. */
    private final Map<Socket, ControlConnection> greeting = new ConcurrentHashMap<>();

    private final Thread acceptor;
    private volatile boolean closed;

    private ControlListener(ServerSocket server, ControlOptions options, Greeter greeter) {
        this.server = server;
        this.options = options;
        this.greeter = greeter;
        acceptor =
                Thread.ofPlatform()
                        .daemon()
                        .name("verbena-control-listener-" + server.getLocalPort())
                        .unstarted(this::acceptAll);
    }

    /**
     * Binds an address and accepts from now on.
     *
     * @param address where to listen; port 0 takes any that is free
     * @throws IOException if the address cannot be bound; the message names it
     */
    static ControlListener bind(InetSocketAddress address, ControlOptions options, Greeter greeter)
            throws IOException {
        ServerSocket server = new ServerSocket();
        try {
            // A node that restarts must get its port back while old connections fade.
            server.setReuseAddress(true);
            server.bind(address, BACKLOG);
        } catch (IOException e) {
            server.close();
            throw new IOException(
                    "cannot listen on " + ControlSocket.name(address) + ": " + e.getMessage(), e);
        }
        return over(server, options, greeter);
    }

    /** Accepts from a bound socket, which it closes in the end. */
    static ControlListener over(ServerSocket server, ControlOptions options, Greeter greeter) {
        ControlListener listener = new ControlListener(server, options, greeter);
        listener.acceptor.start();
        return listener;
    }

    /** Gives the port that was bound. */
    int port() {
        return server.getLocalPort();
    }

    /**
     * Stops accepting and ends the handshakes in progress; when it returns, no greeter runs any
     * more, unless one hangs for seconds. Connections that have been greeted stay.
     */
    @Override
    public void close() {
        closed = true;
        try {
            server.close();
        } catch (IOException e) {
            complaints.complain("close", null, "cannot close the listening socket: " + e, e);
        }
        acceptor.interrupt();
        inProgress.forEach(this::endUnlessGreeted);
        try {
            if (handshakes.tryAcquire(
                    MAX_HANDSHAKES, CLOSE_BOUND.toMillis(), TimeUnit.MILLISECONDS)) {
                handshakes.release(MAX_HANDSHAKES);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** A connection that was started has been greeted, even if its greeter has yet to return. */
    private void endUnlessGreeted(Socket raw) {
        ControlConnection connection = greeting.get(raw);
        if (connection == null || !connection.isStarted()) {
            ControlSocket.close(raw);
        }
    }

    private void acceptAll() {
        long backOffMillis = FIRST_BACK_OFF_MILLIS;
        while (!closed) {
            try {
                admit(server.accept());
                backOffMillis = FIRST_BACK_OFF_MILLIS;
            } catch (Throwable failure) {
                if (closed) {
                    return;
                }
                // Out of file handles or memory, as a rule. Trying again at once would burn a
                // processor, and giving up would make the node deaf.
                String message = "cannot accept on port %d: %s".formatted(port(), failure);
                complaints.complain("accept", null, message, failure);
                pause(backOffMillis);
                backOffMillis = Math.min(2 * backOffMillis, LONGEST_BACK_OFF_MILLIS);
            }
        }
    }

    private void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            // Only close() interrupts, and the loop then sees that.
        }
    }

    /** Gives a socket to a thread of its own, or cuts it off where there are too many. */
    private void admit(Socket raw) {
        boolean welcome = handshakes.tryAcquire();
        Semaphore permits = welcome ? handshakes : refusals;
        if (!welcome && !refusals.tryAcquire()) {
            ControlSocket.close(raw);
            return;
        }
        inProgress.add(raw);
        Runnable done =
                () -> {
                    inProgress.remove(raw);
                    greeting.remove(raw);
                    permits.release();
                };
        try {
            Thread.ofVirtual()
                    .name("verbena-control-handshake")
                    .start(() -> meet(raw, welcome, done));
        } catch (Throwable failure) {
            ControlSocket.close(raw);
            done.run();
            throw failure;
        }
        if (closed) {
            ControlSocket.close(raw);
        }
    }

    /** Leads one handshake to its end, good or bad. */
    private void meet(Socket raw, boolean welcome, Runnable done) {
        @Nullable ControlConnection connection = null;
        long deadlineNanos = ControlConnection.handshakeDeadline(options);
        try {
            raw.setTcpNoDelay(true);
            if (!welcome) {
                throw new IOException(MAX_HANDSHAKES + " handshakes are in progress; try again");
            }
            ControlSocket socket = ControlSocket.secureServer(raw, options, deadlineNanos);
            connection = ControlConnection.over(socket, options, deadlineNanos);
            greeting.put(raw, connection);
            greeter.greet(
                    Hello.decode(connection.receive(ControlFrame.HELLO).payload()), connection);
        } catch (Throwable failure) {
            // An Error too: it must cost this socket and no more.
            complain(raw.getInetAddress(), failure);
            refuse(raw, connection, failure);
        } finally {
            done.run();
        }
    }

    private void complain(InetAddress address, Throwable failure) {
        boolean silent = closed || failure instanceof EOFException;
        if (!silent) {
            String message = "handshake with " + address.getHostAddress() + " failed: " + failure;
            complaints.complain(failure.getClass().getSimpleName(), address, message, failure);
        }
    }

    /** Tells the other side why, in plain bytes where the connection did not come about. */
    private void refuse(Socket raw, @Nullable ControlConnection connection, Throwable failure) {
        try {
            ControlConnection refused =
                    connection != null
                            ? connection
                            : ControlConnection.over(
                                    ControlSocket.plain(raw),
                                    options,
                                    ControlConnection.handshakeDeadline(options));
            String message = failure.getMessage();
            refused.refuse(message == null ? failure.getClass().getSimpleName() : message);
        } catch (IOException e) {
            // It is gone already.
        } finally {
            ControlSocket.close(raw);
        }
    }
}
