package dev.verbena.tcp;

import dev.verbena.bindings.Errno;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.Endpoint;
import dev.verbena.verbs.QueuePairOptions;
import dev.verbena.verbs.ReceiveRequests;
import dev.verbena.verbs.VerbsException;
import dev.verbena.verbs.WorkRequests;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * One TCP connection that behaves as a reliable connected queue pair.
 *
 * <p>One thread of its own sends and receives, both without ever blocking on the socket, so two
 * lanes that fill each other's buffers cannot lock up. It alone touches memory: once it has ended
 * nothing is touched any more.
 *
 * <pre>
 *   unconnected --connect--&gt; running --failure, stop, close--&gt; stopped: all is flushed
 * </pre>
 *
 * <p>A platform thread, as it copies for most of its life: copies would keep the carriers of
 * virtual threads from everybody else.
 *
 * <p>Life: make, {@link #connect}, post, {@link #close}. Safe for use as {@link Endpoint} says.
 */
public final class TcpLane implements Endpoint {
    private static final Logger LOG = System.getLogger(TcpLane.class.getName());

    /**
     * Reads that the peer may have outstanding: as many as the largest send queue holds. It is not
     * this side's to choose, and the lane must take what follows them, as two lanes that each wait
     * with that until their answers are sent would wait for each other.
     */
    static final int MAX_READS = 1 << 16;

    private final String name;
    private final QueuePairOptions options;
    private final TcpCompletions completions;
    private final TcpRegions regions;
    private final PostedSends sends;

    /** Open once it is connected, or never will be. */
    private final CountDownLatch settled = new CountDownLatch(1);

    /** Guards the turn to stopped, and what is flushed by it. */
    private final Object lock = new Object();

    /** Identities of receives that no immediate has taken. Guarded by the lock. */
    private final ArrayDeque<Long> receives = new ArrayDeque<>();

    /** The thread looks at its queues, or sleeps and must be woken. */
    private volatile boolean isSleeping;

    private volatile boolean isStopping;
    private boolean isStopped;
    private boolean isClosed;
    private int postErrno;
    private @Nullable Thread thread;
    private volatile @Nullable Selector selector;

    /** On its way to the peer. */
    private @Nullable SocketChannel connecting;

    /**
     * Makes a lane that is not connected; what is posted waits until it is.
     *
     * @param name for messages and the thread
     * @param options how much may be posted
     * @param completions where work requests complete
     * @param regions this side's memory, for its own requests and the peer's
     */
    public TcpLane(
            String name, QueuePairOptions options, TcpCompletions completions, TcpRegions regions) {
        this.name = name;
        this.options = options;
        this.completions = completions;
        this.regions = regions;
        this.sends = new PostedSends(completions, options.sendRequests());
    }

    /**
     * Connects to the door of a lane that expects a token, and starts to use the connection. Once;
     * {@link #breakOff} and {@link #close} break it off.
     *
     * @param door address of the {@link TcpDoor}
     * @param token what to show there
     * @param timeout longest wait
     * @throws IOException if it cannot be reached in time, or the lane was stopped meanwhile
     */
    public void connect(InetSocketAddress door, LaneToken token, Duration timeout)
            throws IOException {
        SocketChannel channel = SocketChannel.open();
        try {
            synchronized (lock) {
                requireUnsettled();
                connecting = channel;
            }
            TcpDoor.knock(channel, door, token, timeout);
            connect(channel);
        } catch (IOException | RuntimeException failure) {
            TcpDoor.closeQuietly(channel);
            throw failure;
        } finally {
            synchronized (lock) {
                connecting = null;
            }
        }
    }

    /**
     * Takes a connection and starts to use it. Once.
     *
     * @param channel to another lane, as long as this one lives; if this throws, the caller's to
     *     close
     * @throws IOException if it cannot be used, or the lane was stopped before
     */
    void connect(SocketChannel channel) throws IOException {
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        Selector made = Selector.open();
        try {
            Thread starting =
                    Thread.ofPlatform()
                            .daemon()
                            .name("verbena-" + name)
                            .unstarted(() -> run(channel, made));
            synchronized (lock) {
                requireUnsettled();
                starting.start();
                selector = made;
                thread = starting;
            }
        } catch (IOException | RuntimeException | Error failure) {
            made.close();
            throw failure;
        }
        settled.countDown();
    }

    private void requireUnsettled() throws IOException {
        if (isStopping || thread != null) {
            throw new IOException(this + (isStopping ? " was stopped" : " is connected already"));
        }
    }

    /**
     * Waits for the connection.
     *
     * @param nanos longest wait
     * @return true if it has one; false if the time is up, or the lane was stopped before
     * @throws InterruptedException if this thread is interrupted
     */
    public boolean awaitConnected(long nanos) throws InterruptedException {
        if (!settled.await(nanos, TimeUnit.NANOSECONDS)) {
            return false;
        }
        synchronized (lock) {
            return thread != null;
        }
    }

    /**
     * Breaks off connecting, or waiting for it, on another thread. Nothing once it is connected.
     */
    public void breakOff() {
        synchronized (lock) {
            if (thread == null) {
                settleStopped();
                stopped(CompletionStatus.FLUSHED);
            }
        }
    }

    @Override
    public QueuePairOptions options() {
        return options;
    }

    @Override
    public int post(WorkRequests requests, int firstSlot, int count) {
        Objects.checkIndex(firstSlot, requests.capacity());
        if (count < 1 || count > requests.capacity()) {
            throw new IllegalArgumentException(
                    "a chain has 1.." + requests.capacity() + " slots, not " + count);
        }
        if (requests.maxSge() > options.sendSge()) {
            throw new IllegalArgumentException(
                    "%s takes %d pieces in a work request, and the ring has up to %d"
                            .formatted(this, options.sendSge(), requests.maxSge()));
        }
        int taken = count;
        synchronized (lock) {
            requireOpen();
            if (isStopped) {
                // Not through the queue, which the thread may still look at.
                sends.flushUnposted(requests, firstSlot, count);
            } else {
                taken = sends.post(requests, firstSlot, count);
            }
        }
        postErrno = taken == count ? 0 : Errno.ENOMEM;
        wakeIfSleeping();
        return taken;
    }

    @Override
    public int postErrno() {
        return postErrno;
    }

    @Override
    public void postReceives(ReceiveRequests requests, int count) {
        Objects.checkIndex(count - 1, requests.capacity());
        synchronized (lock) {
            requireOpen();
            if (receives.size() + count > options.receiveRequests()) {
                throw new VerbsException(
                        "post receives",
                        Errno.ENOMEM,
                        "%s, count=%d, posted=%d".formatted(this, count, receives.size()));
            }
            for (int slot = 0; slot < count; slot++) {
                receives.add(requests.workRequestId(slot));
            }
            if (isStopped) {
                flushReceives();
            }
        }
        wakeIfSleeping();
    }

    @Override
    public void stop() {
        synchronized (lock) {
            requireOpen();
            settleStopped();
            if (thread == null) {
                stopped(CompletionStatus.FLUSHED);
            }
        }
        wake();
    }

    /** Closes the connection and waits until the thread has ended. */
    @Override
    public void close() {
        Thread running;
        synchronized (lock) {
            isClosed = true;
            settleStopped();
            isStopped |= thread == null;
            running = thread;
        }
        wake();
        boolean interrupted = false;
        while (running != null && running.isAlive() && running != Thread.currentThread()) {
            try {
                running.join();
            } catch (InterruptedException later) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public String toString() {
        return "TCP lane " + name;
    }

    // What follows is the thread's, and its helpers'.

    PostedSends sends() {
        return sends;
    }

    TcpRegions regions() {
        return regions;
    }

    /**
     * The region of a piece of a request of this side, whose transfer holds it.
     *
     * @param access what it must allow beyond being read
     * @throws LaneFailure if it is not one
     */
    TcpRegion local(WorkRequests ring, int slot, int piece, @Nullable Access access)
            throws LaneFailure {
        long address = ring.pieceAddress(slot, piece);
        int length = ring.pieceLength(slot, piece);
        TcpRegion region = regions.find(ring.pieceKey(slot, piece));
        if (region == null
                || !region.covers(address, length)
                || (access != null && !region.grants(access, address, length))) {
            throw new LaneFailure(
                    CompletionStatus.LOCAL_PROTECTION,
                    "0x%x+%d is in no pool of this side, or in one that cannot be written"
                            .formatted(address, length));
        }
        return region;
    }

    boolean hasReceive() {
        synchronized (lock) {
            return !receives.isEmpty();
        }
    }

    /** Hands an immediate to the next receive. */
    void deliver(int immediate) {
        long identity;
        synchronized (lock) {
            identity = receives.remove();
        }
        completions.addImmediate(identity, immediate);
    }

    /** A request of the peer was refused: as on a device, this side's end stops too. */
    void refused() {
        synchronized (lock) {
            stopped(CompletionStatus.FLUSHED);
        }
    }

    private void run(SocketChannel channel, Selector sleeping) {
        CompletionStatus end = CompletionStatus.FLUSHED;
        try (channel;
                sleeping;
                Arena arena = Arena.ofConfined()) {
            SelectionKey key = channel.register(sleeping, 0);
            ByteBuffer staging = arena.allocate(LaneOutput.STAGING_BYTES).asByteBuffer();
            ByteBuffer ahead = arena.allocate(LaneInput.AHEAD_BYTES).asByteBuffer();
            turns(new LaneOutput(this, channel, staging), new LaneInput(this, channel, ahead), key);
        } catch (LaneFailure failure) {
            end = failure.status();
            LOG.log(Level.DEBUG, () -> this + ": " + failure.getMessage());
        } catch (IOException lost) {
            // The socket is how a lost peer shows; where this side stops it, all is just flushed.
            end = isStopping ? CompletionStatus.FLUSHED : CompletionStatus.RETRY_EXCEEDED;
            LOG.log(Level.DEBUG, () -> this + " lost its connection: " + lost.getMessage());
        } catch (Throwable failure) {
            end = CompletionStatus.FATAL;
            LOG.log(Level.ERROR, this + " failed", failure);
        } finally {
            // The connection is closed by now: nothing moves any more.
            synchronized (lock) {
                stopped(end);
            }
        }
    }

    private void turns(LaneOutput output, LaneInput input, SelectionKey key)
            throws IOException, LaneFailure {
        while (!isStopping) {
            boolean moved = input.turn(output);
            moved |= output.turn();
            if (moved) {
                continue;
            }
            isSleeping = true;
            // Looked at once more: who posted before that does not wake.
            if (!isStopping && !output.hasNews() && !input.canGoOn()) {
                key.interestOps(
                        (input.waitsForSocket() ? SelectionKey.OP_READ : 0)
                                | (output.waitsForSocket() ? SelectionKey.OP_WRITE : 0));
                key.selector().select(ready -> {});
            }
            isSleeping = false;
        }
    }

    /**
     * Flushes all that is outstanding, once: the first with a status that says why. With the lock.
     */
    private void stopped(CompletionStatus first) {
        if (isStopped) {
            return;
        }
        isStopped = true;
        if (!isClosed) {
            boolean told = sends.flush(first);
            Long receive = told ? null : receives.poll();
            if (receive != null) {
                completions.add(receive, first);
            }
            flushReceives();
        }
    }

    /** Ends what is on its way to a connection, or keeps it from beginning. With the lock. */
    private void settleStopped() {
        isStopping = true;
        settled.countDown();
        if (connecting != null) {
            TcpDoor.closeQuietly(connecting);
        }
    }

    private void flushReceives() {
        Long identity;
        while ((identity = receives.poll()) != null) {
            completions.add(identity, CompletionStatus.FLUSHED);
        }
    }

    private void wakeIfSleeping() {
        if (isSleeping) {
            wake();
        }
    }

    private void wake() {
        Selector sleeping = selector;
        if (sleeping != null) {
            sleeping.wakeup();
        }
    }

    private void requireOpen() {
        if (isClosed) {
            throw new IllegalStateException(this + " is closed");
        }
    }
}
