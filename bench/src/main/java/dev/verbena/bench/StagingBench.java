package dev.verbena.bench;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.verbena.bench.Rounds.Better;
import dev.verbena.memory.Pool;
import dev.verbena.transfer.Node;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.transfer.TransferBatch;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.stream.IntStream;

/**
 * Gathering slices of heads into a staging area and scattering them from one, by {@link Node#copy},
 * against a memory copy of as many bytes that lie together, shared out over the processors alike.
 *
 * <p>A slice is what some heads of one token take: the tokens are four slices apart.
 */
final class StagingBench implements Benchmark {
    private static final int[] SLICES = {64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10};
    private static final int STRIDE = 4;

    /** Moved by one copy: a chunk of a request. */
    private static final long BYTES = 16L << 20;

    /** Copies of a round. */
    private static final int COPIES = 8;

    @Override
    public void run(Setting setting) throws Exception {
        try (Arena arena = Arena.ofShared();
                Node node = Node.open(NodeOptions.tcp().name("staging"))) {
            MethodHandle memcpyOfSlices =
                    Linker.nativeLinker()
                            .downcallHandle(
                                    SymbolLookup.libraryLookup(
                                                    setting.programs().resolve("libpeers.so"),
                                                    arena)
                                            .findOrThrow("peer_copy"),
                                    FunctionDescriptor.ofVoid(
                                            JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG,
                                            JAVA_LONG));
            Pool pages = node.registry().allocate("pages", BYTES * STRIDE);
            Pool staging = node.registry().allocate("staging", BYTES);
            // So that no page is touched for the first time while it is measured.
            pages.segment().fill((byte) 1);
            staging.segment().fill((byte) 2);
            for (boolean gather : new boolean[] {true, false}) {
                for (int slice : SLICES) {
                    measure(setting, node, new Case(pages, staging, gather, slice, memcpyOfSlices));
                }
            }
        }
    }

    /** Slices on one side, all together on the other. */
    private record Case(
            Pool pages, Pool staging, boolean gather, int slice, MethodHandle memcpyOfSlices) {
        private int slices() {
            return (int) (BYTES / slice);
        }

        TransferBatch batch() {
            TransferBatch batch = new TransferBatch(slices());
            for (int i = 0; i < slices(); i++) {
                long scattered = pages.address() + (long) i * slice * STRIDE;
                long together = staging.address() + (long) i * slice;
                batch.add(gather ? scattered : together, gather ? together : scattered, slice);
            }
            return batch;
        }

        /** As many bytes, in as few copies as there are parts. */
        void copyTogether() {
            MemorySegment from = gather ? pages.segment() : staging.segment();
            MemorySegment to = gather ? staging.segment() : pages.segment();
            inParts(BYTES, (first, end) -> MemorySegment.copy(from, first, to, first, end - first));
        }

        void copyInC() {
            long fromStride = gather ? (long) slice * STRIDE : slice;
            long toStride = gather ? slice : (long) slice * STRIDE;
            long from = (gather ? pages : staging).address();
            long to = (gather ? staging : pages).address();
            inParts(
                    slices(),
                    (first, end) -> {
                        try {
                            memcpyOfSlices.invokeExact(
                                    to + first * toStride,
                                    toStride,
                                    from + first * fromStride,
                                    fromStride,
                                    (long) slice,
                                    end - first);
                        } catch (Throwable thrown) {
                            throw new AssertionError(thrown);
                        }
                    });
        }

        private static void inParts(long all, LongBinaryConsumer part) {
            int parts = 4 * Runtime.getRuntime().availableProcessors();
            IntStream.range(0, parts)
                    .parallel()
                    .forEach(i -> part.accept(all * i / parts, all * (i + 1) / parts));
        }
    }

    @FunctionalInterface
    private interface LongBinaryConsumer {
        void accept(long first, long end);
    }

    private static void measure(Setting setting, Node node, Case measured) throws Exception {
        TransferBatch batch = measured.batch();
        String way = measured.gather ? "gather" : "scatter";
        report(
                setting,
                "staging/%s/%d".formatted(way, measured.slice),
                measured,
                () -> node.copy(batch),
                measured::copyTogether,
                "memory copy of as many bytes together");
        report(
                setting,
                "staging/%s-in-c/%d".formatted(way, measured.slice),
                measured,
                () -> node.copy(batch),
                measured::copyInC,
                "memcpy of the same slices, gcc -O2");
    }

    private static void report(
            Setting setting,
            String name,
            Case measured,
            Runnable ours,
            Runnable peer,
            String peerName)
            throws Exception {
        setting.report()
                .accept(
                        Result.of(
                                name,
                                "GB/s",
                                setting.rounds()
                                        .compare(Better.HIGHER, () -> rate(ours), () -> rate(peer)),
                                "slice_bytes",
                                measured.slice,
                                "stride_bytes",
                                measured.slice * STRIDE,
                                "bytes",
                                BYTES,
                                "processors",
                                Runtime.getRuntime().availableProcessors(),
                                "peer",
                                peerName));
    }

    private static double rate(Runnable copy) {
        long start = System.nanoTime();
        for (int i = 0; i < COPIES; i++) {
            copy.run();
        }
        return (double) BYTES * COPIES / (System.nanoTime() - start);
    }
}
