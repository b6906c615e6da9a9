package dev.verbena.bench;

import dev.verbena.bench.Rounds.Better;
import dev.verbena.transfer.PosterOptions;
import dev.verbena.transfer.TransferBatch;
import java.time.Duration;

/**
 * Sweeps of what a data path has to decide, on the device: how deep the queue, how long the chains,
 * how often a request is signalled, how many queue pairs, how many pieces a request, from which
 * length of pages on gathering does not pay, how long to spin. The peer is ourselves with the
 * defaults, so a ratio above 1 says that a default could be better here.
 */
final class SweepBench implements Benchmark {
    private static final int[] PAGE_BYTES = {4 << 10, 64 << 10};
    private static final int[] GATHERED_BYTES = {1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10};
    private static final long POOL_BYTES = 128L << 20;
    private static final long ROUND_BYTES = 16L << 20;

    /** One setting of a sweep. */
    private record Choice(String sweep, int value, int queuePairs, PosterOptions options) {}

    @Override
    public void run(Setting setting) throws Exception {
        RdmaDevice device = RdmaDevice.first();
        PosterOptions defaults = PosterOptions.defaults();
        try (DevicePair usual = DevicePair.open(device, POOL_BYTES, 1, defaults)) {
            Rounds.untilCompiled(
                    () -> rate(usual, PAGE_BYTES[0], false),
                    () -> rate(usual, PAGE_BYTES[0], true));
        }
        for (int chain : new int[] {1, 8, 32, 128, 256}) {
            sweep(setting, device, new Choice("chain", chain, 1, defaults.withDepth(256, chain)));
        }
        for (int signals : new int[] {1, 8, 32}) {
            sweep(
                    setting,
                    device,
                    new Choice("signals", signals, 1, defaults.withSignals(signals)));
        }
        for (int depth : new int[] {32, 64, 128, 512, 1024}) {
            PosterOptions options = defaults.withDepth(depth, Math.max(1, depth / 2));
            sweep(setting, device, new Choice("depth", depth, 1, options));
        }
        for (int queuePairs : new int[] {2, 4, 8}) {
            sweep(setting, device, new Choice("queue-pairs", queuePairs, queuePairs, defaults));
        }
        // Adjacent at the peer and scattered here, as only such pages are gathered.
        Choice apart = new Choice("pieces", 1, 1, defaults.withMaxSge(1));
        sweep(setting, device, apart, true, GATHERED_BYTES);
        for (int pieces : new int[] {2, 4, 8}) {
            Choice choice = new Choice("pieces", pieces, 1, defaults.withMaxSge(pieces));
            sweep(setting, device, choice, true, PAGE_BYTES);
        }
        for (int micros : new int[] {1, 100, 1000}) {
            sweep(setting, device, new Choice("spin-us", micros, 1, spinning(micros)));
        }
    }

    /** The defaults, but that who waits spins for so long before it sleeps. */
    static PosterOptions spinning(int micros) {
        return PosterOptions.defaults().withSpin(Duration.ofNanos(micros * 1000L));
    }

    private static void sweep(Setting setting, RdmaDevice device, Choice choice) throws Exception {
        sweep(setting, device, choice, false, PAGE_BYTES);
    }

    private static void sweep(
            Setting setting, RdmaDevice device, Choice choice, boolean gathered, int[] sizes)
            throws Exception {
        try (DevicePair chosen =
                        DevicePair.open(device, POOL_BYTES, choice.queuePairs, choice.options);
                DevicePair usual =
                        DevicePair.open(device, POOL_BYTES, 1, PosterOptions.defaults())) {
            for (int pageBytes : sizes) {
                setting.report()
                        .accept(
                                Result.of(
                                        "sweep/%s/%d-KiB/%d"
                                                .formatted(
                                                        choice.sweep,
                                                        pageBytes >> 10,
                                                        choice.value),
                                        "MiB/s",
                                        setting.rounds()
                                                .compare(
                                                        Better.HIGHER,
                                                        () -> rate(chosen, pageBytes, gathered),
                                                        () -> rate(usual, pageBytes, gathered)),
                                        choice.sweep,
                                        choice.value,
                                        "page_bytes",
                                        pageBytes,
                                        "peer",
                                        "ourselves with the defaults, one queue pair"));
            }
        }
    }

    private static double rate(DevicePair pair, int pageBytes, boolean gathered)
            throws InterruptedException {
        int pages = (int) (ROUND_BYTES / pageBytes);
        long slots = POOL_BYTES / pageBytes;
        TransferBatch batch = new TransferBatch(pages);
        for (int page = 0; page < pages; page++) {
            long here = ScatterBench.localSlot(page, 0, slots);
            long there = ScatterBench.remoteSlot(page, 0, slots, gathered);
            batch.add(
                    pair.local().address() + here * pageBytes,
                    pair.remote().address() + there * pageBytes,
                    pageBytes);
        }
        long start = System.nanoTime();
        pair.peer().write(batch).await();
        return (double) ROUND_BYTES / (1 << 20) * 1e9 / (System.nanoTime() - start);
    }
}
