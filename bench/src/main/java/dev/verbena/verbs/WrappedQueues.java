package dev.verbena.verbs;

import java.lang.foreign.MemorySegment;

/**
 * Opens to the benchmarks what core has for its driver double: queues over structs of their own.
 */
public final class WrappedQueues {
    private WrappedQueues() {}

    /**
     * Makes a queue pair of a native struct, ready to send.
     *
     * @param qp an {@code ibv_qp} whose context has the driver's table
     * @param options its size
     * @return the queue pair; closing it leaves the struct alone
     */
    public static QueuePair queuePair(MemorySegment qp, QueuePairOptions options) {
        return QueuePair.wrap(
                qp,
                options,
                new QueuePair.ControlVerbs() {
                    @Override
                    public int modify(MemorySegment changed, MemorySegment attr, int mask) {
                        return 0;
                    }

                    @Override
                    public int destroy(MemorySegment destroyed) {
                        return 0;
                    }
                });
    }

    /**
     * Makes a completion queue of a native struct.
     *
     * @param cq an {@code ibv_cq} whose context has the driver's table
     * @param entries how many completions it holds
     * @return the queue; closing it leaves the struct alone
     */
    public static CompletionQueue completionQueue(MemorySegment cq, int entries) {
        return CompletionQueue.wrap(cq, entries);
    }
}
