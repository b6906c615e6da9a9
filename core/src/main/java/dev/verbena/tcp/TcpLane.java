package dev.verbena.tcp;

import dev.verbena.bindings.Errno;
import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.Endpoint;
import dev.verbena.verbs.QueuePairOptions;
import dev.verbena.verbs.ReceiveRequests;
import dev.verbena.verbs.VerbsException;
import dev.verbena.verbs.WorkRequests;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.StandardSocketOptions;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
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
 * <p>Life: make, {@link #connect}, post, {@link #close}. Safe for use as {@link Endpoint} says.
 */
public final class TcpLane implements Endpoint {
    private static final Logger LOG = System.getLogger(TcpLane.class.getName());

    private final String name;
    private final QueuePairOptions options;
    private final TcpCompletions completions;
    private final Supplier<AddressMap<Pool>> pools;
    private final PostedSends sends;
    private final CountDownLatch connected = new CountDownLatch(1);

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
    private @Nullable Selector selector;

    /**
     * Makes a lane that is not connected; what is posted waits until it is.
     *
     * @param name for messages and the thread
     * @param options how much may be posted
     * @param completions where work requests complete
     * @param pools this side's pools, looked at anew for each access
     */
    public TcpLane(
            String name,
            QueuePairOptions options,
            TcpCompletions completions,
            Supplier<AddressMap<Pool>> pools) {
        this.name = name;
        this.options = options;
        this.completions = completions;
        this.pools = pools;
        this.sends = new PostedSends(completions, options.sendRequests());
    }

    /**
     * Takes a connection and starts to use it. Once; what comes too late is closed.
     *
     * @param channel to another lane, as long as this one lives
     * @throws IOException if it cannot be used
     */
    public void connect(SocketChannel channel) throws IOException {
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        Selector made = Selector.open();
        synchronized (lock) {
            if (!isStopped && thread == null) {
                selector = made;
                thread =
                        Thread.ofPlatform()
                                .daemon()
                                .name("verbena-" + name)
                                .start(() -> run(channel, made));
                connected.countDown();
                return;
            }
        }
        made.close();
        channel.close();
    }

    /**
     * Waits for the connection.
     *
     * @param nanos longest wait
     * @return true if it has one
     * @throws InterruptedException if this thread is interrupted
     */
    public boolean awaitConnected(long nanos) throws InterruptedException {
        return connected.await(nanos, TimeUnit.NANOSECONDS);
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
        int taken;
        synchronized (lock) {
            requireOpen();
            taken = sends.post(requests, firstSlot, count);
            if (isStopped) {
                sends.flush(CompletionStatus.FLUSHED);
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
            isStopping = true;
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
            isStopping = true;
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

    AddressMap<Pool> pools() {
        return pools.get();
    }

    int maxReads() {
        return options.sendRequests();
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
                sleeping) {
            SelectionKey key = channel.register(sleeping, 0);
            turns(new LaneOutput(this, channel), new LaneInput(this, channel), key);
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

    /** Flushes all that is outstanding, once. With the lock. */
    private void stopped(CompletionStatus first) {
        if (isStopped) {
            return;
        }
        isStopped = true;
        if (!isClosed) {
            sends.flush(first);
            flushReceives();
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
