package dev.verbena.verbs;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The life of one native resource: open, in use by calls and by children, closed once.
 *
 * <p>Every call that touches the native handle runs between {@link #enter} and {@link #exit}.
 * {@link #close} first turns new calls away, then waits for those under way, then refuses if
 * children are open, and only then destroys. So no call can meet a freed handle, whichever thread
 * closes it.
 *
 * <p>A call that touches two resources, as a post does a queue pair and a ring, enters the one and
 * uses the other ({@link #enterUsing}), which costs no more than entering one.
 *
 * <p>Thread-safe. {@code enter} and {@code exit} cost one atomic addition each and allocate
 * nothing.
 */
public final class Lifetime {
    /** Added to the count of calls once the resource is closed: makes every count negative. */
    private static final int CLOSED = Integer.MIN_VALUE;

    private static final long WAIT_NANOS = 50_000;

    private static final AtomicLong OPEN = new AtomicLong();

    private static final AtomicReferenceFieldUpdater<Lifetime, @Nullable Lifetime> USER =
            AtomicReferenceFieldUpdater.newUpdater(Lifetime.class, Lifetime.class, "user");

    private final Supplier<String> name;
    private final @Nullable Lifetime parent;
    private final AtomicInteger calls = new AtomicInteger();
    private final Set<Lifetime> children = ConcurrentHashMap.newKeySet();

    /** The thread that is closing, while it does. */
    private volatile @Nullable Thread closer;

    private volatile boolean ended;

    /**
     * The first resource that has used this one, for good. Its calls keep this one from being
     * destroyed as well, so that those that use it need not be counted here too.
     */
    private volatile @Nullable Lifetime user;

    private Lifetime(Supplier<String> name, @Nullable Lifetime parent) {
        this.name = name;
        this.parent = parent;
        OPEN.incrementAndGet();
    }

    /**
     * Begins the life of a resource that has no parent.
     *
     * @param name says what the resource is, for messages
     * @return the new lifetime, open
     */
    public static Lifetime root(Supplier<String> name) {
        return new Lifetime(name, null);
    }

    /**
     * Begins the life of a resource that must be closed before this one.
     *
     * @param childName says what the child is, for messages
     * @return the new lifetime, open
     * @throws IllegalStateException if this resource is closed
     */
    public Lifetime child(Supplier<String> childName) {
        enter();
        try {
            return childOfEntered(childName);
        } finally {
            exit();
        }
    }

    /**
     * Begins the life of a child whose native handle has just been made by a call on this resource.
     * Unlike {@link #child} it cannot fail, so the new handle cannot be lost to a close that began
     * meanwhile.
     *
     * @param childName says what the child is, for messages
     * @return the new lifetime, open
     */
    Lifetime childOfEntered(Supplier<String> childName) {
        Lifetime child = new Lifetime(childName, this);
        children.add(child);
        return child;
    }

    /**
     * Begins a call on the resource, which cannot be destroyed before {@link #exit}.
     *
     * @throws IllegalStateException if the resource is closed
     */
    public void enter() {
        if (calls.incrementAndGet() < 0) {
            calls.decrementAndGet();
            throw closedFailure();
        }
    }

    /** Ends a call begun with {@link #enter}. */
    public void exit() {
        calls.decrementAndGet();
    }

    /**
     * Begins a call on this resource that touches another as well, which cannot be destroyed before
     * {@link #exitUsing} either.
     *
     * <p>If this is the first resource to use the other, as is usual, that is counted here alone: a
     * ring of work requests and its queue pair cost two atomic additions a post, not four.
     *
     * @param used the other resource, which is no parent or child of this one
     * @throws IllegalStateException if one of them is closed
     */
    void enterUsing(Lifetime used) {
        if (used.user == null) {
            USER.compareAndSet(used, null, this);
        }
        // Counted before it is looked whether the other is closed; who closes that looks in the
        // opposite order. So one of the two sees the other.
        enter();
        try {
            if (used.user != this) {
                used.enter();
            } else if (!used.isOpen()) {
                throw used.closedFailure();
            }
        } catch (IllegalStateException closed) {
            exit();
            throw closed;
        }
    }

    /**
     * Ends a call begun with {@link #enterUsing}.
     *
     * @param used the same other resource
     */
    void exitUsing(Lifetime used) {
        if (used.user != this) {
            used.exit();
        }
        exit();
    }

    /**
     * Says whether the resource can still be used.
     *
     * @return false once it is closed or closing
     */
    public boolean isOpen() {
        return calls.get() >= 0;
    }

    /**
     * Closes the resource: turns new calls away, waits for those under way, then destroys. Does
     * nothing if it is closed already; if another thread is closing it, waits for the outcome.
     *
     * @param destroy frees the native handle; if it throws, the resource stays open
     * @throws IllegalStateException if children are still open; the message names them
     */
    public void close(Runnable destroy) {
        close(() -> {}, destroy);
    }

    /**
     * Closes a resource on which calls may be waiting.
     *
     * @param interrupt makes calls under way return soon; run after new ones are turned away
     * @param destroy as in {@link #close(Runnable)}
     * @throws IllegalStateException if children are still open; the message names them
     */
    public void close(Runnable interrupt, Runnable destroy) {
        while ((calls.getAndUpdate(count -> count | CLOSED) & CLOSED) != 0) {
            if (ended || closer == Thread.currentThread()) {
                return;
            }
            // Whoever returns from here may free the memory behind the handle.
            LockSupport.parkNanos(this, WAIT_NANOS);
        }
        closer = Thread.currentThread();
        boolean destroyed = false;
        try {
            interrupt.run();
            while (calls.get() != CLOSED || isUsed()) {
                LockSupport.parkNanos(this, WAIT_NANOS);
            }
            refuseWithChildren();
            destroy.run();
            destroyed = true;
        } finally {
            closer = null;
            if (destroyed) {
                ended = true;
                OPEN.decrementAndGet();
                if (parent != null) {
                    parent.children.remove(this);
                }
            } else {
                calls.getAndAdd(CLOSED);
            }
        }
    }

    /**
     * Counts the resources of this process that are open, for tests that look for leaks.
     *
     * @return how many lifetimes have begun and not ended
     */
    public static long openCount() {
        return OPEN.get();
    }

    @Override
    public String toString() {
        return name.get();
    }

    /**
     * Whether a call of the first user may be touching this resource; one that begins later sees
     * that it is closed.
     */
    private boolean isUsed() {
        Lifetime first = user;
        return first != null && (first.calls.get() & ~CLOSED) != 0;
    }

    private IllegalStateException closedFailure() {
        return new IllegalStateException(name.get() + " is closed");
    }

    private void refuseWithChildren() {
        // Those that close meanwhile are gone from the list, and must not be complained of.
        List<String> names = new ArrayList<>();
        for (Lifetime child : children) {
            names.add(child.toString());
        }
        if (!names.isEmpty()) {
            throw new IllegalStateException(
                    name.get()
                            + " still has "
                            + names.size()
                            + " open: "
                            + String.join(", ", names));
        }
    }
}
