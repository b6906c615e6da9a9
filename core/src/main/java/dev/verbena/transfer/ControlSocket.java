package dev.verbena.transfer;

import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.NoRouteToHostException;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;

/**
 * A TCP socket and, where TLS is asked for, the TLS socket over it.
 *
 * <p>It is closed through the TCP socket alone: that never blocks, and wakes every thread that
 * reads or writes, where closing a TLS socket may wait for a peer. What TLS would say at the end,
 * GOODBYE says.
 *
 * @param raw the TCP socket
 * @param stream the socket to read and write: the TLS socket, or the TCP socket itself
 */
record ControlSocket(Socket raw, Socket stream) {
    /** How a TLS socket comes about. */
    private interface Maker {
        Socket make() throws IOException;
    }

    static ControlSocket plain(Socket raw) {
        return new ControlSocket(raw, raw);
    }

    /**
     * Makes a TCP connection.
     *
     * @throws IOException if it fails; the message names the address and the cause
     */
    static Socket connect(InetSocketAddress address, ControlOptions options) throws IOException {
        if (address.isUnresolved()) {
            throw new IOException("cannot connect to " + name(address) + ": unknown host");
        }
        Socket raw = new Socket();
        try {
            raw.connect(address, (int) options.connectDeadline().toMillis());
            raw.setTcpNoDelay(true);
            return raw;
        } catch (IOException e) {
            close(raw);
            String why =
                    switch (e) {
                        case SocketTimeoutException _ ->
                                "no answer in " + options.connectDeadline().toMillis() + " ms";
                        case NoRouteToHostException _ -> "unreachable: " + e.getMessage();
                        case ConnectException _ -> "no node listens there: " + e.getMessage();
                        default -> String.valueOf(e.getMessage());
                    };
            throw new IOException("cannot connect to " + name(address) + ": " + why, e);
        }
    }

    /** Starts TLS on the side that connects, if there is a context. */
    static ControlSocket secureClient(Socket raw, ControlOptions options, long deadlineNanos)
            throws IOException {
        SSLContext tls = options.tls();
        if (tls == null) {
            return plain(raw);
        }
        String host = raw.getInetAddress().getHostAddress();
        Maker maker = () -> tls.getSocketFactory().createSocket(raw, host, raw.getPort(), true);
        return secure(raw, deadlineNanos, maker);
    }

    /** Starts TLS on the side that listens, if there is a context. */
    static ControlSocket secureServer(Socket raw, ControlOptions options, long deadlineNanos)
            throws IOException {
        SSLContext tls = options.tls();
        if (tls == null) {
            return plain(raw);
        }
        Maker maker =
                () -> {
                    ByteArrayInputStream first = new ByteArrayInputStream(firstBytes(raw));
                    SSLSocket secure =
                            (SSLSocket) tls.getSocketFactory().createSocket(raw, first, true);
                    secure.setNeedClientAuth(options.clientCertificates());
                    return secure;
                };
        return secure(raw, deadlineNanos, maker);
    }

    /** Reads ahead, as TLS itself would call a node without TLS "unrecognized" only. */
    private static byte[] firstBytes(Socket raw) throws IOException {
        byte[] first = raw.getInputStream().readNBytes(Integer.BYTES);
        if (first.length < Integer.BYTES) {
            throw new EOFException("the other side closed the connection");
        }
        if (ByteBuffer.wrap(first).getInt() == ControlFrame.MAGIC) {
            throw new ControlProtocolException(
                    "this node speaks TLS only, and the other side was not given an SSLContext");
        }
        return first;
    }

    private static ControlSocket secure(Socket raw, long deadlineNanos, Maker maker)
            throws IOException {
        ControlDeadline deadline = new ControlDeadline(deadlineNanos, () -> close(raw));
        try (deadline) {
            deadline.start();
            SSLSocket secure = (SSLSocket) maker.make();
            secure.startHandshake();
            return new ControlSocket(raw, secure);
        } catch (IOException e) {
            if (deadline.struck()) {
                throw new SocketTimeoutException("the TLS handshake took too long");
            }
            throw e instanceof SSLException
                    ? new SSLException("the TLS handshake failed: " + e.getMessage(), e)
                    : e;
        }
    }

    /** Shows an address without the slash of {@link InetSocketAddress#toString}. */
    static String name(InetSocketAddress address) {
        String host = address.getHostString();
        return (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":" + address.getPort();
    }

    /** Closes a TCP socket; that it was closed already, or cannot be, changes nothing. */
    static void close(Socket raw) {
        try {
            raw.close();
        } catch (IOException e) {
            // There is nobody to tell: whoever uses the socket learns that it is gone.
        }
    }
}
