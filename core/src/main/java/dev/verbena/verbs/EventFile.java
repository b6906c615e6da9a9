package dev.verbena.verbs;

import dev.verbena.bindings.Errno;
import dev.verbena.bindings.Posix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A file of events that one thread waits for and any thread can cut the waiting short: the events'
 * own descriptor, made non-blocking, beside an event counter.
 *
 * <p>The verbs' own calls for the next event block without a way out; this waits in poll(2)
 * instead, and they are called when something is there.
 */
final class EventFile implements AutoCloseable {
    private static final int EVENTS = 0;
    private static final int WAKE = 1;

    private final MemorySegment fds = Posix.pollFds(Arena.ofAuto(), 2);
    private final AtomicBoolean claimed = new AtomicBoolean();
    private final String what;
    private final int wakeFd;

    /** Waits on a descriptor that stays its owner's. */
    EventFile(int fd, String what) {
        this.what = what;
        VerbsException.check("fcntl(O_NONBLOCK)", Posix.setNonBlocking(fd), what);
        wakeFd = Posix.eventFd();
        if (wakeFd < 0) {
            throw new VerbsException("eventfd", -wakeFd, what);
        }
        Posix.pollFd(fds, EVENTS, fd, Posix.POLLIN);
        Posix.pollFd(fds, WAKE, wakeFd, Posix.POLLIN);
    }

    /**
     * Makes this thread the one that waits and takes events, until {@link #unclaim}. Two would take
     * each other's wake-up, and closing would wait for the second for as long as its time lasts.
     *
     * @throws IllegalStateException if another thread is the one
     */
    void claim() {
        if (!claimed.compareAndSet(false, true)) {
            throw new IllegalStateException("another thread waits for the " + what + " already");
        }
    }

    /** Lets another thread wait. */
    void unclaim() {
        claimed.set(false);
    }

    /**
     * Waits until there may be an event, until woken, or until the time is up; between claim and
     * unclaim.
     */
    void await(long timeoutNanos) {
        int millis = (int) Math.min(Integer.MAX_VALUE, TimeUnit.NANOSECONDS.toMillis(timeoutNanos));
        int ready = Posix.poll(fds, 2, Math.max(0, millis));
        if (ready < 0 && ready != -Errno.EINTR) {
            throw new VerbsException("poll", -ready, "");
        }
        if (ready > 0 && Posix.polledEvents(fds, WAKE) != 0) {
            Posix.eventFdTake(wakeFd);
        }
    }

    /** Makes the current or the next {@link #await} return. */
    void wake() {
        Posix.eventFdAdd(wakeFd, 1);
    }

    /** Frees the counter; nobody may be waiting. */
    @Override
    public void close() {
        Posix.close(wakeFd);
    }
}
