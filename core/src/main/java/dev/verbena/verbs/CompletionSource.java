package dev.verbena.verbs;

/**
 * Where completions of {@link Endpoint}s come from: the completion queue of a device, or what
 * stands for one on another transport.
 */
public interface CompletionSource extends AutoCloseable {
    /**
     * Says how many completions it can hold.
     *
     * @return the number
     */
    int entries();

    /**
     * Takes completions, without waiting. For one thread at a time.
     *
     * @param completions where they are put; what it held before is gone
     * @return how many came, from 0 to the capacity
     * @throws IllegalStateException if the source is closed, or the room for completions is
     * @throws VerbsException if the source failed
     */
    int poll(WorkCompletions completions);

    /**
     * Asks for one event at the next completion. Completions that are there already give none: poll
     * once more after this call and before waiting.
     *
     * @throws IllegalStateException if the source is closed
     * @throws VerbsException if the device refuses
     */
    void requestNotify();

    /**
     * Destroys the source and forgets the completions in it. Does nothing if done already.
     *
     * @throws IllegalStateException if endpoints of a device still use it
     * @throws VerbsException if the device refuses
     */
    @Override
    void close();
}
