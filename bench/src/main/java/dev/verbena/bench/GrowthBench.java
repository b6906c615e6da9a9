package dev.verbena.bench;

import dev.verbena.bench.Benchmark.Setting;
import dev.verbena.bench.Rounds.Better;
import dev.verbena.transfer.PosterOptions;
import dev.verbena.transfer.TransferBatch;

/**
 * How planning and posting grow with the number of pieces in which the same bytes are described,
 * all of which merge. The peer is ourselves with fewer pieces: a ratio of 1 says that a piece costs
 * no more when there are many, so that time is linear.
 */
final class GrowthBench {
    private static final long BYTES = 500_000_000;
    private static final int[] PIECES = {1, 128, 2_000, 12_000, 120_000, 270_000};
    private static final int PIECES_PER_ROUND = 2_000_000;
    private static final int MOST_REPEATS = 20_000;

    private GrowthBench() {}

    /** What is timed. */
    @FunctionalInterface
    private interface Work {
        void on(TransferBatch batch);
    }

    static void measure(Setting setting) throws Exception {
        try (NoOpDevice device = new NoOpDevice(setting.programs());
                NoOpPoster poster = new NoOpPoster(device, PosterOptions.defaults())) {
            for (int i = 1; i < PIECES.length; i++) {
                compare(setting, "growth/plan/", poster, poster::plan, i);
            }
            for (int i = 1; i < PIECES.length; i++) {
                compare(setting, "growth/post/", poster, poster::write, i);
            }
        }
    }

    private static void compare(
            Setting setting, String name, NoOpPoster poster, Work work, int index)
            throws Exception {
        TransferBatch many = batch(poster, PIECES[index]);
        TransferBatch fewer = batch(poster, PIECES[index - 1]);
        setting.report()
                .accept(
                        Result.of(
                                name + PIECES[index],
                                "ns/piece",
                                setting.rounds()
                                        .compare(
                                                Better.LOWER,
                                                () -> nanosPerPiece(many, work),
                                                () -> nanosPerPiece(fewer, work)),
                                "bytes",
                                BYTES,
                                "pieces",
                                PIECES[index],
                                "runs",
                                poster.plan(many).runs(),
                                "peer",
                                "ourselves with %d pieces".formatted(PIECES[index - 1])));
    }

    private static TransferBatch batch(NoOpPoster poster, int pieces) {
        long length = BYTES / pieces;
        TransferBatch batch = new TransferBatch(pieces);
        for (int i = 0; i < pieces; i++) {
            long offset = i * length;
            long last = i == pieces - 1 ? BYTES - offset : length;
            batch.add(poster.pages().local() + offset, poster.pages().remote() + offset, last);
        }
        return batch;
    }

    private static double nanosPerPiece(TransferBatch batch, Work work) {
        int repeats = Math.clamp(PIECES_PER_ROUND / batch.size(), 1, MOST_REPEATS);
        long start = ProcessorTime.threadNanos();
        for (int i = 0; i < repeats; i++) {
            work.on(batch);
        }
        return (double) (ProcessorTime.threadNanos() - start) / ((long) repeats * batch.size());
    }
}
