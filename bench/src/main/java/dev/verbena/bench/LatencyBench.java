package dev.verbena.bench;

import dev.verbena.bench.Rounds.Better;
import dev.verbena.memory.Pool;
import dev.verbena.memory.RemotePool;
import dev.verbena.transfer.Node;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.transfer.Peer;
import dev.verbena.transfer.TransferBatch;
import dev.verbena.verbs.Access;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.Map;

/**
 * Latency over the device against {@code ib_write_lat} and {@code ib_read_lat}.
 *
 * <p>A write is half of a ping-pong: a process writes, the other sees the last byte change, and
 * writes back. A read is one read. The two processes have a processor each. A read by the verbs
 * objects alone shows what a transfer adds.
 */
final class LatencyBench implements Benchmark {
    private static final int[] SIZES = {4 << 10, 64 << 10, 1 << 20, 4 << 20};
    private static final int LARGEST = SIZES[SIZES.length - 1];

    /** A round has so many ping-pongs, or as many as move so many bytes. */
    private static final int MOST_ITERATIONS = 500;

    private static final long ROUND_BYTES = 64L << 20;

    private static final VarHandle BYTE = ValueLayout.JAVA_BYTE.varHandle();

    @Override
    public void run(Setting setting) throws Exception {
        RdmaDevice device = RdmaDevice.first();
        Perftest perftest = new Perftest(device);
        try (ChildProcess other =
                        new ChildProcess(
                                Map.of(),
                                ChildProcess.pinned(
                                        0, ChildProcess.java(LatencyPong.class.getName())));
                Side side = Side.connect(device, Integer.parseInt(other.answer()))) {
            other.answer();
            Rounds.untilCompiled(() -> pings(side, other, SIZES[0]), () -> reads(side, SIZES[0]));
            for (int size : SIZES) {
                measure(setting, perftest, "write", size, () -> pings(side, other, size));
            }
            for (int size : SIZES) {
                measure(setting, perftest, "read", size, () -> reads(side, size));
            }
        }
        try (VerbsReads verbs = new VerbsReads(device, LARGEST)) {
            Rounds.untilCompiled(() -> reads(verbs, SIZES[0]));
            for (int size : SIZES) {
                measure(setting, perftest, "verbs-read", size, () -> reads(verbs, size));
            }
        }
    }

    private static void measure(
            Setting setting, Perftest perftest, String name, int size, Rounds.Side ours)
            throws Exception {
        String program = name.equals("write") ? "ib_write_lat" : "ib_read_lat";
        setting.report()
                .accept(
                        Result.of(
                                "rxe-lat/%s/%d-KiB".formatted(name, size >> 10),
                                "us",
                                setting.rounds()
                                        .compare(
                                                Better.LOWER,
                                                ours,
                                                () -> perftest(perftest, program, size)),
                                "message_bytes",
                                size,
                                "iterations",
                                iterations(size),
                                "queue_pairs",
                                1,
                                "peer",
                                program + ", t_typical"));
    }

    private static int iterations(int size) {
        return Math.clamp(ROUND_BYTES / size, 16, MOST_ITERATIONS);
    }

    /** The median of half the round trips, in microseconds. */
    private static double pings(Side side, ChildProcess other, int size) throws Exception {
        int iterations = iterations(size);
        other.tell(size + " " + iterations);
        double[] micros = new double[iterations];
        for (int i = 0; i < iterations; i++) {
            long start = System.nanoTime();
            side.send(size, i);
            side.awaitByte(size, i);
            micros[i] = (System.nanoTime() - start) / 2e3;
        }
        other.answer();
        return Rounds.quantile(micros, 0.5);
    }

    private static double reads(Side side, int size) throws Exception {
        double[] micros = new double[iterations(size)];
        TransferBatch batch =
                new TransferBatch(1).add(side.in.address(), side.theirs.address(), size);
        for (int i = 0; i < micros.length; i++) {
            long start = System.nanoTime();
            side.peer.read(batch).await();
            micros[i] = (System.nanoTime() - start) / 1e3;
        }
        return Rounds.quantile(micros, 0.5);
    }

    private static double reads(VerbsReads verbs, int size) {
        double[] micros = new double[iterations(size)];
        for (int i = 0; i < micros.length; i++) {
            long start = System.nanoTime();
            verbs.read(size);
            micros[i] = (System.nanoTime() - start) / 1e3;
        }
        return Rounds.quantile(micros, 0.5);
    }

    private static double perftest(Perftest perftest, String program, int size) throws Exception {
        double[] figures = perftest.run(program, size, "-n", Integer.toString(iterations(size)));
        return figures[4];
    }

    /** One process of the two: what it sends, and what the other writes to. */
    record Side(Node node, Peer peer, Pool in, Pool out, RemotePool theirs)
            implements AutoCloseable {
        static Side connect(RdmaDevice device, int port) throws Exception {
            Node node = Node.open(options(device).name("ping"));
            allocate(node);
            return of(node, node.connect("127.0.0.1:" + port));
        }

        /** As perftest does, a side waits for a completion without ever going to sleep. */
        static NodeOptions options(RdmaDevice device) {
            return device.options().queuePairs(1).poster(SweepBench.spinning(1_000_000));
        }

        static void allocate(Node node) {
            node.registry().allocate("in", LARGEST, Access.REMOTE_WRITE, Access.REMOTE_READ);
            node.registry().allocate("out", LARGEST);
        }

        static Side of(Node node, Peer peer) throws InterruptedException {
            return new Side(
                    node,
                    peer,
                    node.registry().find("in").orElseThrow(),
                    node.registry().find("out").orElseThrow(),
                    peer.awaitPool("in", Duration.ofSeconds(30)));
        }

        /** Writes so many bytes, whose last one says which iteration it is. */
        void send(int size, int iteration) throws InterruptedException {
            out.segment().set(ValueLayout.JAVA_BYTE, size - 1, stamp(iteration));
            peer.write(new TransferBatch(1).add(out.address(), theirs.address(), size)).await();
        }

        /** A device writes in ascending order, so when the last byte is there all of them are. */
        void awaitByte(int size, int iteration) {
            MemorySegment memory = in.segment();
            while ((byte) BYTE.getVolatile(memory, (long) size - 1) != stamp(iteration)) {
                Thread.onSpinWait();
            }
            memory.set(ValueLayout.JAVA_BYTE, size - 1, (byte) 0);
        }

        /** Never 0, which is what a byte is before it is written. */
        private static byte stamp(int iteration) {
            return (byte) (iteration % 127 + 1);
        }

        @Override
        public void close() {
            node.close();
        }
    }
}
