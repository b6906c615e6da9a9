package dev.verbena.bench;

import dev.verbena.bench.Rounds.Better;
import dev.verbena.transfer.Direction;
import dev.verbena.transfer.Peer;
import dev.verbena.transfer.PosterOptions;
import dev.verbena.transfer.Transfer;
import dev.verbena.transfer.TransferBatch;
import java.io.IOException;

/**
 * Bandwidth over the device against {@code ib_write_bw} and {@code ib_read_bw}: one queue pair, as
 * deep, chains as long, the last of each signalled; and the processor time of both.
 *
 * <p>As perftest does, all messages use the same memory, which is in the processor's cache if it
 * fits.
 */
final class BandwidthBench implements Benchmark {
    private static final int[] SIZES = {4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20};
    private static final int DEPTH = 128;
    private static final int CHAIN = 32;

    /** A round moves so many bytes, or one chain if that is more. */
    private static final long ROUND_BYTES = 32L << 20;

    @Override
    public void run(Setting setting) throws Exception {
        RdmaDevice device = RdmaDevice.first();
        Perftest perftest = new Perftest(device);
        PosterOptions options = PosterOptions.defaults().withDepth(DEPTH, CHAIN);
        try (DevicePair pair = DevicePair.open(device, SIZES[SIZES.length - 1], 1, options)) {
            for (Direction direction : Direction.values()) {
                // The code of a message is the same for all sizes.
                TransferBatch smallest = batch(pair, SIZES[0]);
                Rounds.untilCompiled(() -> move(pair.peer(), smallest, direction).mibPerSecond);
                for (int size : SIZES) {
                    measure(setting, pair, perftest, direction, size);
                }
            }
        }
    }

    private static void measure(
            Setting setting, DevicePair pair, Perftest perftest, Direction direction, int size)
            throws Exception {
        Processor ours = new Processor(setting.rounds().runs());
        Processor peers = new Processor(setting.rounds().runs());
        String verb = direction == Direction.WRITE ? "write" : "read";
        Rounds.Comparison comparison =
                setting.rounds()
                        .compare(
                                Better.HIGHER,
                                () -> ours.take(move(pair.peer(), batch(pair, size), direction)),
                                () -> peers.take(perftest(perftest, "ib_" + verb + "_bw", size)));
        Object[] settings = {
            "message_bytes",
            size,
            "queue_pairs",
            1,
            "depth",
            DEPTH,
            "post_list",
            CHAIN,
            "signalled_every",
            CHAIN,
            "messages",
            messages(size),
            "peer",
            "ib_" + verb + "_bw"
        };
        String name = "%s/%d-KiB".formatted(verb, size >> 10);
        setting.report().accept(Result.of("rxe-bw/" + name, "MiB/s", comparison, settings));
        setting.report()
                .accept(
                        Result.of(
                                "rxe-bw/processor/" + name,
                                "CPU s/GiB",
                                Processor.compare(ours, peers),
                                settings));
    }

    /** What one round came to. */
    private record Moved(double mibPerSecond, double processorSecondsPerGib) {}

    /** Keeps the processor time of the rounds that count. */
    private static final class Processor {
        private final double[] seconds;
        private int taken;

        Processor(int runs) {
            seconds = new double[runs];
        }

        /** Notes one and passes the other on; rounds to warm up are overwritten. */
        double take(Moved moved) {
            seconds[taken++ % seconds.length] = moved.processorSecondsPerGib;
            return moved.mibPerSecond;
        }

        static Rounds.Comparison compare(Processor ours, Processor peers) {
            int runs = ours.seconds.length;
            double[] ratios = new double[runs];
            for (int i = 0; i < runs; i++) {
                ratios[i] = peers.seconds[i] / ours.seconds[i];
            }
            return new Rounds.Comparison(
                    Rounds.quantile(ours.seconds, 0.5),
                    Rounds.quantile(peers.seconds, 0.5),
                    Rounds.quantile(ratios, 0.5),
                    Rounds.quantile(ratios, 0.25),
                    Rounds.quantile(ratios, 0.75),
                    runs);
        }
    }

    private static int messages(int size) {
        return (int) Math.max(CHAIN, ROUND_BYTES / size);
    }

    /** The same range again and again: no two blocks follow one another, so none are merged. */
    private static TransferBatch batch(DevicePair pair, int size) {
        int messages = messages(size);
        TransferBatch batch = new TransferBatch(messages);
        for (int i = 0; i < messages; i++) {
            batch.add(pair.local().address(), pair.remote().address(), size);
        }
        return batch;
    }

    private static Moved move(Peer peer, TransferBatch batch, Direction direction)
            throws IOException, InterruptedException {
        double busy = ProcessorTime.busySeconds();
        long start = System.nanoTime();
        Transfer transfer = direction == Direction.WRITE ? peer.write(batch) : peer.read(batch);
        transfer.await();
        double seconds = (System.nanoTime() - start) / 1e9;
        busy = ProcessorTime.busySeconds() - busy;
        return new Moved(batch.bytes() / seconds / (1 << 20), busy * (1 << 30) / batch.bytes());
    }

    private static Moved perftest(Perftest perftest, String program, int size) throws Exception {
        // What it takes to start both programs and to connect them is not to count.
        double before = ProcessorTime.busySeconds();
        run(perftest, program, size, CHAIN);
        double between = ProcessorTime.busySeconds();
        int messages = messages(size) + CHAIN;
        double[] figures = run(perftest, program, size, messages);
        double busy = ProcessorTime.busySeconds() - between - (between - before);
        double bytes = (double) size * messages(size);
        return new Moved(figures[3], Math.max(busy, 0) * (1 << 30) / bytes);
    }

    private static double[] run(Perftest perftest, String program, int size, int messages)
            throws Exception {
        return perftest.run(
                program,
                size,
                "-q",
                "1",
                "-t",
                Integer.toString(DEPTH),
                "-l",
                Integer.toString(CHAIN),
                "-Q",
                Integer.toString(CHAIN),
                "-n",
                Integer.toString(messages));
    }
}
