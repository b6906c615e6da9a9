package dev.verbena.memory;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** Registers many pools on several threads: all of them, or none. */
final class BatchRegistration {
    private final MemoryRegistry registry;
    private final List<PoolRequest> requests;
    private final RegistrationProgress progress;
    private final @Nullable Pool[] pools;
    private final AtomicInteger next = new AtomicInteger();
    private final long bytesTotal;

    private int poolsDone;
    private long bytesDone;
    private @Nullable Throwable failure;

    BatchRegistration(
            MemoryRegistry registry, List<PoolRequest> requests, RegistrationProgress progress) {
        this.registry = registry;
        this.requests = List.copyOf(requests);
        this.progress = progress;
        this.pools = new Pool[requests.size()];
        this.bytesTotal = requests.stream().mapToLong(r -> r.segment().byteSize()).sum();
    }

    List<Pool> run(int parallelism) {
        int threads = Math.min(parallelism, requests.size());
        CountDownLatch finished = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            Thread.ofPlatform()
                    .daemon()
                    .name("verbena-register-" + i)
                    .start(() -> {
                        try {
                            work();
                        } finally {
                            finished.countDown();
                        }
                    });
        }
        boolean interrupted = false;
        while (true) {
            try {
                finished.await();
                break;
            } catch (InterruptedException later) {
                // Registration cannot be broken off half-way; the caller sees the flag afterwards.
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return result();
    }

    private void work() {
        int index;
        while (failure() == null && (index = next.getAndIncrement()) < requests.size()) {
            PoolRequest request = requests.get(index);
            try {
                pools[index] = registry.register(request, null);
                report(request.segment().byteSize());
            } catch (RuntimeException | Error failed) {
                fail(failed);
            }
        }
    }

    private synchronized void report(long bytes) {
        poolsDone++;
        bytesDone += bytes;
        progress.registered(poolsDone, requests.size(), bytesDone, bytesTotal);
    }

    // One throwable may come twice, and must not be made to suppress itself.
    @SuppressWarnings("ReferenceEquality")
    private synchronized void fail(Throwable failed) {
        if (failure == null) {
            failure = failed;
        } else if (failure != failed) {
            failure.addSuppressed(failed);
        }
    }

    private synchronized @Nullable Throwable failure() {
        return failure;
    }

    private List<Pool> result() {
        Throwable failed = failure();
        if (failed == null) {
            List<Pool> done = new ArrayList<>();
            Arrays.stream(pools).map(Objects::requireNonNull).forEach(done::add);
            return List.copyOf(done);
        }
        for (Pool pool : pools) {
            if (pool != null) {
                try {
                    pool.close();
                } catch (RuntimeException closing) {
                    failed.addSuppressed(closing);
                }
            }
        }
        if (failed instanceof Error error) {
            throw error;
        }
        throw (RuntimeException) failed;
    }
}
