package dev.verbena.memory;

/** Told how a batch registration goes on. */
@FunctionalInterface
public interface RegistrationProgress {
    /**
     * A pool has been registered. Called by the registering threads, one call at a time.
     *
     * @param poolsDone pools registered so far
     * @param poolsTotal pools of the batch
     * @param bytesDone bytes registered so far
     * @param bytesTotal bytes of the batch
     */
    void registered(int poolsDone, int poolsTotal, long bytesDone, long bytesTotal);
}
