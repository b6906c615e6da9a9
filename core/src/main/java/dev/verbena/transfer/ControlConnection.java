package dev.verbena.transfer;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * The TCP connection beside the queue pairs of two nodes: frames in both directions, and the
 * certainty that a peer that is gone is noticed.
 *
 * <pre>
 *   made ------------------------&gt; start(handler) --------------&gt; lost
 *     send, receive: the handshake      send, handler.frame      by close, by the peer,
 *     under one deadline                PING, silence counts     or by a failure
 * </pre>
 *
 * <p>Life: {@link #connect}, or given by a {@link ControlListener}; exchange frames with {@link
 * #send} and {@link #receive}; {@link #start}; {@link #close}. The handshake deadline runs from the
 * making to {@link #start} and bounds all of it, so a slow drip of bytes gains nothing. From {@link
 * #start} on, the handler is told exactly once that the connection has ended and why, whatever ends
 * it, and nothing after that.
 *
 * <p>Threads: {@link #send} and {@link #close} from any, {@link #receive} and {@link #start} from
 * the one that does the handshake. One virtual thread writes and one reads, which calls the
 * handler. A sender never waits for the peer: frames queue up, to twice the longest frame, and a
 * peer that lets the queue overflow is lost.
 */
final class ControlConnection implements AutoCloseable {
    /** Told what happens, always by the reading thread, which it must not keep for long. */
    interface Handler {
        /**
         * A frame has come: READY, POOLS or MESSAGE, in the order of sending. If this throws, the
         * connection is lost.
         */
        void frame(ControlFrame frame) throws IOException;

        /**
         * The connection has ended. Called once, and last.
         *
         * @param reason a sentence that names the peer
         * @param cause what was thrown, or null where an end was simply told
         */
        void lost(String reason, @Nullable Throwable cause);
    }

    private record End(String reason, @Nullable Throwable cause) {}

    /** Longest payload before the peer is known: enough for 16,000 pools, harmless from anybody. */
    static final int MAX_HANDSHAKE_FRAME_BYTES = 1 << 20;

    /** Longest time that the last words get. */
    private static final Duration FAREWELL = Duration.ofSeconds(1);

    private static final int BUFFER_BYTES = 64 << 10;
    private static final ControlFrame PING = new ControlFrame(ControlFrame.PING, new byte[0]);
    private static final System.Logger LOG = System.getLogger(ControlConnection.class.getName());

    private final ControlSocket socket;
    private final ControlOptions options;
    private final InetSocketAddress remoteAddress;
    private final String peer;
    private final InputStream in;
    private final ControlOutbox outbox;
    private final ControlDeadline handshake;
    private final Thread writer;
    private final CompletableFuture<End> end = new CompletableFuture<>();
    private volatile @Nullable Thread reader;

    private ControlConnection(ControlSocket socket, ControlOptions options, long deadlineNanos)
            throws IOException {
        this.socket = socket;
        this.options = options;
        remoteAddress =
                new InetSocketAddress(socket.raw().getInetAddress(), socket.raw().getPort());
        peer = ControlSocket.name(remoteAddress);
        in = new BufferedInputStream(socket.stream().getInputStream(), BUFFER_BYTES);
        outbox = new ControlOutbox(2L * options.maxFrameBytes());
        String tooSlow =
                "the handshake took more than " + options.handshakeDeadline().toMillis() + " ms";
        handshake = new ControlDeadline(deadlineNanos, () -> refuse(tooSlow));
        writer = Thread.ofVirtual().name("verbena-control-writer-" + peer).unstarted(this::write);
    }

    /**
     * Connects, and starts TLS if there is a context.
     *
     * @throws IOException if it fails; the message names the address and the cause
     */
    static ControlConnection connect(InetSocketAddress address, ControlOptions options)
            throws IOException {
        Socket raw = ControlSocket.connect(address, options);
        long deadlineNanos = handshakeDeadline(options);
        try {
            return over(
                    ControlSocket.secureClient(raw, options, deadlineNanos),
                    options,
                    deadlineNanos);
        } catch (IOException e) {
            ControlSocket.close(raw);
            throw new IOException(
                    "cannot connect to " + ControlSocket.name(address) + ": " + e.getMessage(), e);
        }
    }

    /** Makes a connection of a socket, whose handshake must end by a point in time. */
    static ControlConnection over(ControlSocket socket, ControlOptions options, long deadlineNanos)
            throws IOException {
        ControlConnection connection = new ControlConnection(socket, options, deadlineNanos);
        connection.handshake.start();
        connection.writer.start();
        return connection;
    }

    /** Says when a handshake that begins now must have ended, in {@link System#nanoTime}. */
    static long handshakeDeadline(ControlOptions options) {
        return System.nanoTime() + options.handshakeDeadline().toNanos();
    }

    /** Gives the peer's address, for messages. */
    InetSocketAddress remoteAddress() {
        return remoteAddress;
    }

    /**
     * Queues a frame for sending. Never blocks. Frames of one thread keep their order.
     *
     * @param payload handed over: to be left unchanged
     * @throws IllegalArgumentException if the payload is longer than a frame may be
     * @throws IOException if the connection has ended, or ends now as the queue overflows
     */
    void send(byte kind, byte[] payload) throws IOException {
        if (payload.length > options.maxFrameBytes()) {
            throw new IllegalArgumentException(
                    "a %s frame of %d bytes, where the limit is %d"
                            .formatted(
                                    ControlFrame.kindName(kind),
                                    payload.length,
                                    options.maxFrameBytes()));
        }
        if (!outbox.offer(new ControlFrame(kind, payload))) {
            // If the connection has ended already, that end stands, and this one changes nothing.
            end(peer + " does not read: the queue of frames to send has overflowed", null);
            throw ended(null);
        }
    }

    /**
     * Waits for a frame of the handshake, until the handshake's deadline.
     *
     * @param kind the kind that is due
     * @throws ControlRefusedException if the peer refuses the connection, in the peer's words
     * @throws ControlProtocolException if something else comes
     * @throws IOException if the connection ends, or the deadline is over
     */
    ControlFrame receive(byte kind) throws IOException {
        int limit = Math.min(MAX_HANDSHAKE_FRAME_BYTES, options.maxFrameBytes());
        ControlFrame frame;
        try {
            do {
                frame = ControlFrame.read(in, limit);
            } while (frame.kind() == ControlFrame.PING);
        } catch (IOException e) {
            // The socket may have been closed under the read; the end then says why.
            throw end.isDone() ? ended(e) : named(e);
        }
        if (end.isDone()) {
            throw ended(null);
        }
        if (frame.kind() == kind) {
            return frame;
        }
        if (frame.kind() == ControlFrame.REFUSED || frame.kind() == ControlFrame.GOODBYE) {
            throw new ControlRefusedException(peer + " refused: " + frame.words());
        }
        throw new ControlProtocolException(
                "%s sent a %s, where %s was due"
                        .formatted(peer, frame, ControlFrame.kindName(kind)));
    }

    /**
     * Ends the handshake: from now on frames go to the handler, and silence counts. A connection
     * that has ended before tells the handler so.
     *
     * @throws IllegalStateException if it was started before
     */
    void start(Handler handler) {
        if (reader != null) {
            throw new IllegalStateException(this + " was started before");
        }
        handshake.close();
        Thread thread =
                Thread.ofVirtual()
                        .name("verbena-control-reader-" + peer)
                        .unstarted(() -> read(handler));
        reader = thread;
        thread.start();
    }

    /** Whether the handshake is over. */
    boolean isStarted() {
        return reader != null;
    }

    /** Leaves without a particular reason. */
    @Override
    public void close() {
        close("closed");
    }

    /**
     * Sends what is queued and the farewell, as far as the peer takes it within a second, and ends
     * the connection. Closing once more, or after the end, changes nothing.
     */
    void close(String farewell) {
        leave(
                ControlFrame.GOODBYE,
                farewell,
                new End(this + " closed by this side: " + farewell, null));
    }

    /** Like {@link #close(String)}, but tells the peer that it is not wanted. */
    void refuse(String words) {
        leave(ControlFrame.REFUSED, words, new End(this + " refused by this side: " + words, null));
    }

    private void leave(byte kind, String words, End why) {
        handshake.close();
        if (!end.complete(why)) {
            return;
        }
        Runnable cut = () -> ControlSocket.close(socket.raw());
        ControlDeadline bound =
                new ControlDeadline(System.nanoTime() + FAREWELL.toNanos(), cut).start();
        try (bound) {
            outbox.finish(ControlFrame.ofWords(kind, words));
            writer.join(FAREWELL);
            // To close while bytes of the peer lie unread would reset the connection, and the
            // farewell might die with it: so first the peer hangs up.
            Thread reading = reader;
            if (reading == null || reading == Thread.currentThread()) {
                in.transferTo(OutputStream.nullOutputStream());
            } else {
                reading.join(FAREWELL);
            }
        } catch (IOException e) {
            // The peer is gone, or does not listen: it was told as well as could be.
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            cut.run();
        }
    }

    /** Ends the connection at once, unless it has ended: the first reason stands. */
    private void end(String reason, @Nullable Throwable cause) {
        if (end.complete(new End(reason, cause))) {
            handshake.close();
            outbox.discard();
            ControlSocket.close(socket.raw());
        }
    }

    private IOException ended(@Nullable Throwable failure) {
        End why = end.join();
        return new IOException(why.reason, why.cause == null ? failure : why.cause);
    }

    private IOException named(IOException failure) {
        String message = peer + ": " + failure.getMessage();
        return switch (failure) {
            case ControlProtocolException _ -> new ControlProtocolException(message);
            case EOFException _ -> new EOFException(message);
            default -> new IOException(message, failure);
        };
    }

    private void write() {
        try {
            OutputStream out =
                    new BufferedOutputStream(socket.stream().getOutputStream(), BUFFER_BYTES);
            long idleNanos = options.pingInterval().toNanos();
            for (ControlFrame frame; (frame = outbox.take(idleNanos, PING)) != null; ) {
                frame.write(out);
                if (outbox.isEmpty()) {
                    out.flush();
                }
            }
            socket.raw().shutdownOutput();
        } catch (IOException e) {
            awaitLastWords();
            end("writing to " + peer + " failed: " + e.getMessage(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            // An Error, such as one of memory, must not leave a connection that only seems alive.
            end("the thread that writes to " + peer + " has stopped", null);
        }
    }

    /** Gives the reader time to find the peer's own reason, which may have come before the end. */
    private void awaitLastWords() {
        try {
            end.get(FAREWELL.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException | ExecutionException e) {
            // None came: then the failure to write is the reason.
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void read(Handler handler) {
        try {
            socket.stream().setSoTimeout((int) options.silenceLimit().toMillis());
            while (true) {
                ControlFrame frame = ControlFrame.read(in, options.maxFrameBytes());
                // While this side leaves, what still comes is dropped, until the peer hangs up.
                if (!end.isDone()) {
                    deliver(frame, handler);
                }
            }
        } catch (SocketTimeoutException e) {
            long millis = options.silenceLimit().toMillis();
            end("%s is lost: silent for %d ms".formatted(peer, millis), e);
        } catch (ControlProtocolException e) {
            End why = new End(peer + " broke the protocol: " + e.getMessage(), e);
            leave(ControlFrame.GOODBYE, "a breach of protocol: " + e.getMessage(), why);
        } catch (IOException e) {
            end(peer + " is lost: " + e.getMessage(), e);
        } finally {
            tellLost(handler);
        }
    }

    private void deliver(ControlFrame frame, Handler handler) throws IOException {
        switch (frame.kind()) {
            case ControlFrame.PING -> {
                // Its arrival is all it says.
            }
            case ControlFrame.GOODBYE -> end(peer + " said goodbye: " + frame.words(), null);
            case ControlFrame.REFUSED -> end(peer + " refused: " + frame.words(), null);
            case ControlFrame.HELLO, ControlFrame.WELCOME ->
                    throw new ControlProtocolException("a second handshake, by a " + frame);
            default -> {
                try {
                    handler.frame(frame);
                } catch (Throwable failure) {
                    // Whatever it is, an Error too: the connection must not die in silence.
                    String what = frame + " could not be handled: " + failure;
                    leave(
                            ControlFrame.GOODBYE,
                            what,
                            new End(peer + " is cut off: a " + what, failure));
                }
            }
        }
    }

    private void tellLost(Handler handler) {
        // A reader that an Error stops, such as one of memory, comes here without a reason.
        end("the thread that reads from " + peer + " has stopped", null);
        End why = end.join();
        try {
            handler.lost(why.reason, why.cause);
        } catch (RuntimeException e) {
            LOG.log(System.Logger.Level.ERROR, "handler failed when told: " + why.reason, e);
        }
    }

    @Override
    public String toString() {
        return "control connection with " + peer;
    }
}
