package dev.verbena.bench;

import dev.verbena.bench.NoOpDevice.Blocks;
import dev.verbena.bench.NoOpDevice.Pages;
import dev.verbena.bench.Rounds.Better;
import dev.verbena.bindings.VerbsInline;
import dev.verbena.verbs.WorkRequests;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What bounds posting: the parts it consists of, each by itself, against C. A call out of the JVM
 * and back, an addition that other threads see, and the filling of a run of work requests.
 */
final class FloorBench implements Benchmark {
    private static final int TIMES_PER_ROUND = 1 << 22;
    private static final int[] RUNS = {8, 12, 16, 24, 32, 1024};
    private static final int LONGEST_RUN = RUNS[RUNS.length - 1];

    @Override
    public void run(Setting setting) throws Exception {
        try (NoOpDevice device = new NoOpDevice(setting.programs())) {
            long queue = device.completionQueueAddress();
            measure(
                    setting,
                    "call",
                    "ns/call",
                    TIMES_PER_ROUND,
                    () -> call(queue),
                    () -> device.peerCall(TIMES_PER_ROUND));
            AtomicLong number = new AtomicLong();
            measure(
                    setting,
                    "addition",
                    "ns/addition",
                    TIMES_PER_ROUND,
                    () -> add(number),
                    () -> device.peerAdd(TIMES_PER_ROUND));
            try (Run run = new Run(device)) {
                for (int size : RUNS) {
                    int times = TIMES_PER_ROUND / size;
                    measure(
                            setting,
                            "fill/" + size,
                            "ns/WR",
                            size * times,
                            () -> run.fill(size, times),
                            () -> run.fillByPeer(size, times));
                }
            }
        }
    }

    private static void measure(
            Setting setting, String name, String unit, int count, Runnable ours, Runnable peer)
            throws Exception {
        setting.report()
                .accept(
                        Result.of(
                                "floor/" + name,
                                unit,
                                setting.rounds()
                                        .compare(
                                                Better.LOWER,
                                                () -> nanos(ours) / count,
                                                () -> nanos(peer) / count),
                                "times",
                                count,
                                "peer",
                                "C, gcc -O2"));
    }

    private static double nanos(Runnable code) {
        long start = ProcessorTime.threadNanos();
        code.run();
        return ProcessorTime.threadNanos() - start;
    }

    private static void call(long queue) {
        for (int i = 0; i < TIMES_PER_ROUND; i++) {
            if (VerbsInline.ibv_req_notify_cq(queue, 0) != 0) {
                throw new AssertionError("the no-op driver refused");
            }
        }
    }

    private static void add(AtomicLong number) {
        for (int i = 0; i < TIMES_PER_ROUND; i++) {
            number.incrementAndGet();
        }
    }

    /** Slots, and arrays to fill them from. */
    private static final class Run implements AutoCloseable {
        private final NoOpDevice device;
        private final WorkRequests ring = new WorkRequests(LONGEST_RUN, 1);
        private final Blocks blocks =
                new Blocks(new Pages(1L << 40, 1, 1L << 41, 2, 1 << 18, 4096), LONGEST_RUN);

        Run(NoOpDevice device) {
            this.device = device;
        }

        void fill(int size, int times) {
            for (int t = 0; t < times; t++) {
                ring.fillRun(
                        0,
                        size,
                        t,
                        WorkRequests.Operation.WRITE,
                        blocks.pages.remoteKey(),
                        blocks.pages.localKey(),
                        blocks.locals,
                        blocks.remotes,
                        blocks.lengths,
                        0);
            }
            require(ring.workRequestId(size - 1), size, times);
        }

        void fillByPeer(int size, int times) {
            require(device.peerFill(blocks, size, times), size, times);
        }

        private static void require(long lastIdentity, int size, int times) {
            if (lastIdentity != times - 1L + size - 1L) {
                throw new AssertionError("the last request is called " + lastIdentity);
            }
        }

        @Override
        public void close() {
            ring.close();
        }
    }
}
