package dev.verbena.verbs;

/**
 * Where a thread sleeps until there are completions: the completion channel of a device, or what
 * stands for one on another transport. One thread waits; any thread may {@link #wake} it.
 */
public interface CompletionEvents extends AutoCloseable {
    /**
     * Waits until a source that was asked to {@linkplain CompletionSource#requestNotify notify} has
     * completions, until {@link #wake}, or until the time is up.
     *
     * @param timeoutNanos longest wait in nanoseconds
     * @return true if there was an event
     * @throws IllegalStateException if this is closed, or another thread waits on it
     * @throws VerbsException if waiting fails
     */
    boolean await(long timeoutNanos);

    /**
     * Makes the current or the next {@link #await} return.
     *
     * @throws IllegalStateException if this is closed
     */
    void wake();

    /**
     * Destroys it, after waking the thread that waits. Does nothing if done already.
     *
     * @throws IllegalStateException if sources of a device still use it
     * @throws VerbsException if the device refuses
     */
    @Override
    void close();
}
