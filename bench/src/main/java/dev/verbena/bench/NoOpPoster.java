package dev.verbena.bench;

import dev.verbena.bench.NoOpDevice.Pages;
import dev.verbena.memory.AddressMap;
import dev.verbena.memory.MemoryRegistry;
import dev.verbena.memory.Pool;
import dev.verbena.memory.RegistryOptions;
import dev.verbena.memory.RemotePool;
import dev.verbena.transfer.BatchPoster;
import dev.verbena.transfer.Direction;
import dev.verbena.transfer.FailureReason;
import dev.verbena.transfer.PosterOptions;
import dev.verbena.transfer.Transfer;
import dev.verbena.transfer.TransferBatch;
import dev.verbena.transfer.TransferPlan;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.CompletionQueue;
import dev.verbena.verbs.QueuePairOptions;
import java.util.List;
import java.util.OptionalInt;

/**
 * A poster over one queue pair of the no-op driver, with a pool of addresses on each side: all that
 * a transfer goes through but the device.
 */
final class NoOpPoster implements AutoCloseable {
    /** Pages of each side. */
    static final int PAGES = 1 << 18;

    /** Bytes of a page. */
    static final int PAGE_BYTES = 4096;

    private final MemoryRegistry registry =
            new MemoryRegistry(new AddressRegions(), RegistryOptions.defaults());
    private final CompletionQueue completionQueue;
    private final BatchPoster poster;
    private final AddressMap<Pool> local;
    private final AddressMap<RemotePool> remote;
    private final Pages pages;

    NoOpPoster(NoOpDevice device, PosterOptions options) {
        long bytes = (long) PAGES * PAGE_BYTES;
        Pool here = registry.registerAddress("local", 1L << 40, bytes);
        Pool there = registry.registerAddress("remote", 1L << 41, bytes, Access.REMOTE_WRITE);
        local = registry.addressMap();
        remote = RemotePool.map(List.of(new RemotePool(there.descriptor())));
        pages =
                new Pages(
                        here.address(),
                        local.key(local.find(here.address())),
                        there.address(),
                        remote.key(0),
                        PAGES,
                        PAGE_BYTES);
        completionQueue = device.completionQueue(BatchPoster.completionsNeeded(1, options));
        poster =
                new BatchPoster(
                        List.of(device.queuePair(queuePairOptions(options))),
                        completionQueue,
                        1L << 30,
                        options,
                        new BatchPoster.Listener() {
                            @Override
                            public void immediate(int immediate) {}

                            @Override
                            public void stopped(FailureReason reason, String message) {}
                        });
    }

    /** The size of a queue pair that has room for what a poster posts. */
    static QueuePairOptions queuePairOptions(PosterOptions options) {
        return new QueuePairOptions(
                options.sendRequests(), options.maxSge(), options.receiveRequests(), 1);
    }

    /** The pages of both pools. */
    Pages pages() {
        return pages;
    }

    /** Writes a batch, and polls until it has ended. */
    void write(TransferBatch batch) {
        Transfer transfer = poster.post(Direction.WRITE, batch, local, remote, OptionalInt.empty());
        while (!transfer.poll()) {}
    }

    TransferPlan plan(TransferBatch batch) {
        return poster.plan(Direction.WRITE, batch, local, remote);
    }

    @Override
    public void close() {
        poster.close();
        completionQueue.close();
        registry.close();
    }
}
