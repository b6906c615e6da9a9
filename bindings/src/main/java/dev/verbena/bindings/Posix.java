package dev.verbena.bindings;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * What a user of verbs needs of the C library: waiting on the file descriptors of channels, waking
 * the one that waits, and the limit on locked memory.
 *
 * <p>Results follow the contract of the package: a status is 0 or a positive errno value, a number
 * is negative for an error. After it, {@link VerbsCalls#errno()} tells the same value.
 *
 * <p>Safe for use by many threads. A virtual thread that waits in {@link #poll} holds its carrier.
 */
public final class Posix {
    /** Event: there is something to read. */
    public static final short POLLIN = 0x1;

    /** Event: there is room to write. */
    public static final short POLLOUT = 0x4;

    /** Returned event: the file descriptor is in error. */
    public static final short POLLERR = 0x8;

    /** Returned event: the other end hung up. */
    public static final short POLLHUP = 0x10;

    /** Returned event: this is not an open file descriptor. */
    public static final short POLLNVAL = 0x20;

    /** Size of a {@code struct pollfd} in bytes: the descriptor, then two sets of events. */
    private static final long POLLFD_BYTES = 8;

    private static final long POLLFD_EVENTS = 4;
    private static final long POLLFD_REVENTS = 6;

    private static final int F_GETFL = 3;
    private static final int F_SETFL = 4;
    private static final int O_NONBLOCK = 0x800;
    private static final int EFD_CLOEXEC = 0x80000;
    private static final int RLIMIT_MEMLOCK = 8;
    private static final long RLIM_INFINITY = -1L;

    private static final MethodHandle POLL =
            link("poll", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));
    private static final MethodHandle FCNTL =
            link(
                    "fcntl",
                    FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT),
                    Linker.Option.firstVariadicArg(2));
    private static final MethodHandle EVENTFD =
            link("eventfd", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));
    private static final MethodHandle WRITE =
            link("write", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG));
    private static final MethodHandle READ =
            link("read", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG));

    /** Linked when first used, each for itself: opening a device should not wait for them. */
    private static final class Close {
        static final MethodHandle CLOSE = link("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
    }

    private static final class Limits {
        static final MethodHandle GETRLIMIT =
                link("getrlimit", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS));
    }

    private static final class PageSize {
        static final MethodHandle GETPAGESIZE =
                link("getpagesize", FunctionDescriptor.of(JAVA_INT));
    }

    private Posix() {}

    private static MethodHandle link(
            String name, FunctionDescriptor descriptor, Linker.Option... more) {
        Linker.Option[] options = new Linker.Option[more.length + 1];
        System.arraycopy(more, 0, options, 1, more.length);
        options[0] = Linker.Option.captureCallState("errno");
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor, options);
    }

    // --- Waiting ---------------------------------------------------------------------------------

    /**
     * Allocates an array of {@code struct pollfd}, to be filled with {@link #pollFd} and used again
     * and again.
     *
     * @param arena owner of the array
     * @param count entries
     * @return the array, zeroed
     */
    public static MemorySegment pollFds(Arena arena, int count) {
        return arena.allocate(MemoryLayout.sequenceLayout(count, JAVA_LONG));
    }

    /**
     * Sets one entry of an array for {@link #poll}.
     *
     * @param fds array from {@link #pollFds}
     * @param index entry
     * @param fd file descriptor; a negative one is passed over
     * @param events {@code POLL*} events to wait for, or-ed; errors are always reported
     */
    public static void pollFd(MemorySegment fds, int index, int fd, short events) {
        fds.set(JAVA_INT, index * POLLFD_BYTES, fd);
        fds.set(JAVA_SHORT, index * POLLFD_BYTES + POLLFD_EVENTS, events);
    }

    /**
     * Reads what {@link #poll} found out about one entry.
     *
     * @param fds array from {@link #pollFds}
     * @param index entry
     * @return {@code POLL*} events, or-ed
     */
    public static short polledEvents(MemorySegment fds, int index) {
        return fds.get(JAVA_SHORT, index * POLLFD_BYTES + POLLFD_REVENTS);
    }

    /**
     * Waits until one of some file descriptors is ready. Allocates nothing.
     *
     * <p>Verb: poll(2)
     *
     * @param fds array from {@link #pollFds}
     * @param count entries that count, from the first
     * @param timeoutMillis milliseconds to wait at most; 0 does not wait, -1 waits for ever
     * @return entries that are ready, 0 after the timeout, or a negative errno value: EINTR is not
     *     hidden, as the caller knows how much of its deadline is left
     * @throws IndexOutOfBoundsException if the array is shorter than {@code count}
     */
    public static int poll(MemorySegment fds, int count, int timeoutMillis) {
        if (count < 0 || fds.byteSize() < count * POLLFD_BYTES) {
            throw new IndexOutOfBoundsException(
                    count + " entries in an array of " + fds.byteSize() + " bytes");
        }
        try {
            return ThreadState.number(
                    (int)
                            POLL.invokeExact(
                                    ThreadState.capture(), fds, (long) count, timeoutMillis));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Makes reading from a file descriptor fail with EAGAIN instead of waiting, for instance that
     * of a completion channel before {@link VerbsCalls#ibv_get_cq_event}.
     *
     * <p>Verb: fcntl(2)
     *
     * @param fd file descriptor
     * @return 0, or a positive errno value
     */
    public static int setNonBlocking(int fd) {
        try {
            int flags = (int) FCNTL.invokeExact(ThreadState.capture(), fd, F_GETFL, 0);
            if (flags < 0) {
                return ThreadState.status(flags);
            }
            int result =
                    (int) FCNTL.invokeExact(ThreadState.capture(), fd, F_SETFL, flags | O_NONBLOCK);
            return ThreadState.status(result);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Makes an event counter at 0, which one thread waits for in {@link #poll} and another bumps.
     * It does not block, and is closed in programs that this one starts.
     *
     * <p>Verb: eventfd(2)
     *
     * @return its file descriptor, or a negative errno value
     */
    public static int eventFd() {
        try {
            return ThreadState.number(
                    (int) EVENTFD.invokeExact(ThreadState.capture(), 0, O_NONBLOCK | EFD_CLOEXEC));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Adds to an event counter, which wakes who polls it. Allocates nothing.
     *
     * <p>Verb: eventfd(2)
     *
     * @param fd file descriptor from {@link #eventFd}
     * @param amount what to add, at least 1
     * @return 0, or a positive errno value
     */
    public static int eventFdAdd(int fd, long amount) {
        MemorySegment value = ThreadState.scratch();
        value.set(JAVA_LONG, 0, amount);
        try {
            long written =
                    (long)
                            WRITE.invokeExact(
                                    ThreadState.capture(), fd, value, JAVA_LONG.byteSize());
            return written < 0 ? ThreadState.status(-1) : 0;
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Takes the value of an event counter and sets it to 0. Allocates nothing.
     *
     * <p>Verb: eventfd(2)
     *
     * @param fd file descriptor from {@link #eventFd}
     * @return the value, or a negative errno value: EAGAIN if it was 0
     */
    public static long eventFdTake(int fd) {
        MemorySegment value = ThreadState.scratch();
        try {
            long read =
                    (long) READ.invokeExact(ThreadState.capture(), fd, value, JAVA_LONG.byteSize());
            return read < 0 ? -ThreadState.status(-1) : value.get(JAVA_LONG, 0);
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Closes a file descriptor that the caller owns; those of contexts and channels belong to
     * libibverbs.
     *
     * <p>Verb: close(2)
     *
     * @param fd file descriptor
     * @return 0, or a positive errno value; the descriptor is gone in either case
     */
    public static int close(int fd) {
        try {
            return ThreadState.status((int) Close.CLOSE.invokeExact(ThreadState.capture(), fd));
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    // --- Limits ----------------------------------------------------------------------------------

    /**
     * Tells how much memory this process may lock, and thus register: the soft limit
     * RLIMIT_MEMLOCK.
     *
     * <p>Verb: getrlimit(2)
     *
     * @return bytes, {@link Long#MAX_VALUE} if there is no limit, or a negative errno value
     */
    public static long memoryLockLimitBytes() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment limit = arena.allocate(JAVA_LONG, 2); // soft, then hard
            int result =
                    (int)
                            Limits.GETRLIMIT.invokeExact(
                                    ThreadState.capture(), RLIMIT_MEMLOCK, limit);
            if (result != 0) {
                return -ThreadState.status(result);
            }
            long softBytes = limit.get(JAVA_LONG, 0);
            return softBytes == RLIM_INFINITY ? Long.MAX_VALUE : softBytes;
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }

    /**
     * Tells the size of a page of memory. Regions are best aligned to pages and whole pages long,
     * as locking and fork protection work on pages.
     *
     * <p>Verb: getpagesize(2)
     *
     * @return bytes, a power of two
     */
    public static int pageSizeBytes() {
        try {
            return (int) PageSize.GETPAGESIZE.invokeExact(ThreadState.capture());
        } catch (Throwable thrown) {
            throw NativeCall.rethrow(thrown);
        }
    }
}
