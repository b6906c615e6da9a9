package dev.verbena.transfer;

import dev.verbena.memory.PoolDescriptor;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.Gid;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** What the tests of control connections share: both ends of a socket, and a handler that notes. */
final class ControlPeers {
    private ControlPeers() {}

    /** Notes what a connection tells; ends once lost. */
    static class Notes implements ControlConnection.Handler {
        final LinkedBlockingQueue<ControlFrame> frames = new LinkedBlockingQueue<>();
        final AtomicInteger timesLost = new AtomicInteger();
        final CompletableFuture<String> lost = new CompletableFuture<>();

        @Override
        public void frame(ControlFrame frame) throws IOException {
            frames.add(frame);
        }

        @Override
        public void lost(String reason, @Nullable Throwable cause) {
            timesLost.incrementAndGet();
            lost.complete(reason);
        }

        /** Waits for the end, as long as the test's time-out allows. */
        String awaitLost() {
            return lost.join();
        }
    }

    /** A connection, and the bare socket at its other end, which does what the test makes it do. */
    record WithSocket(ControlConnection connection, Socket socket) implements AutoCloseable {
        @Override
        public void close() throws IOException {
            socket.close();
            connection.close();
        }

        void sendBytes(byte... bytes) throws IOException {
            socket.getOutputStream().write(bytes);
        }

        void sendFrame(byte kind, String words) throws IOException {
            ControlFrame.ofWords(kind, words).write(socket.getOutputStream());
        }

        ControlFrame readFrame() throws IOException {
            return ControlFrame.read(socket.getInputStream(), 1 << 20);
        }
    }

    /** Two connections, one to the other. */
    record Pair(ControlConnection near, ControlConnection far) implements AutoCloseable {
        /** Closes both at a time: each waits for the other to hang up. */
        @Override
        public void close() {
            CompletableFuture<Void> nearClosed = CompletableFuture.runAsync(near::close);
            far.close();
            nearClosed.join();
        }
    }

    static InetSocketAddress loopback(int port) {
        return new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
    }

    static WithSocket withSocket(ControlOptions options) throws IOException {
        try (ServerSocket server = new ServerSocket()) {
            server.bind(loopback(0));
            ControlConnection connection =
                    ControlConnection.connect(loopback(server.getLocalPort()), options);
            return new WithSocket(connection, server.accept());
        }
    }

    static Pair pair(ControlOptions options) throws IOException {
        WithSocket ends = withSocket(options);
        return new Pair(ends.connection, over(ends.socket, options));
    }

    static ControlConnection over(Socket socket, ControlOptions options) throws IOException {
        return ControlConnection.over(
                ControlSocket.plain(socket), options, ControlConnection.handshakeDeadline(options));
    }

    static Hello hello(String name) {
        return new Hello(
                name,
                0x1234_5678_9abc_def0L,
                new Hello.Rdma(
                        true,
                        gid("00000000000000000000ffff0a000001"),
                        0,
                        4096,
                        16,
                        List.of(new Hello.Endpoint(0x11, 0xffffff), new Hello.Endpoint(0x12, 0))),
                List.of(pool("kv", 1), pool("aux", 3)));
    }

    static PoolDescriptor pool(String name, int regions) {
        List<PoolDescriptor.Region> parts =
                IntStream.range(0, regions)
                        .mapToObj(i -> new PoolDescriptor.Region(4096L, 0x100 + i))
                        .toList();
        return new PoolDescriptor(
                name, 7, 0x7f00_0000_0000L, 4096L * regions, Set.of(Access.REMOTE_READ), parts);
    }

    static Gid.Address gid(String hex) {
        return new Gid.Address(HexFormat.of().parseHex(hex));
    }
}
