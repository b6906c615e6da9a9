package dev.verbena.bench;

import dev.verbena.bench.NumpyPlanner.Planned;
import dev.verbena.bench.Rounds.Better;
import dev.verbena.kv.KvPools;
import dev.verbena.kv.PagePlanner;
import dev.verbena.transfer.TransferBatch;
import java.io.IOException;
import java.util.Arrays;
import java.util.stream.LongStream;

/**
 * From the page indices of a request to the blocks of a batch, against numpy.
 *
 * <p>A model of 80 layers with a pool each for K and V. The pages of a long context are in runs of
 * a length that is the case's: from every page by itself to all in one.
 */
final class PlanBench implements Benchmark {
    static final int PAGE_BYTES = 32 << 10;
    static final long PREFILL_BASE = 1L << 40;
    static final long DECODE_BASE = 1L << 44;

    private static final int LAYERS = 80;

    private static final Case[] CASES = {
        new Case(2 * LAYERS, 6_250, 1),
        new Case(2 * LAYERS, 6_250, 10),
        new Case(2 * LAYERS, 6_250, 100),
        new Case(2 * LAYERS, 6_250, 6_250),
        new Case(2 * LAYERS, 62_500, 10),
        new Case(2 * LAYERS, 62_500, 62_500),
    };

    /**
     * One request.
     *
     * @param pools K and V of all layers
     * @param pages pages of each pool that are sent
     * @param runPages pages that are contiguous on both sides
     */
    record Case(int pools, int pages, int runPages) {
        int blocks() {
            return pools * Math.ceilDiv(pages, runPages);
        }

        /** Room for the pages and for what is left out between runs. */
        long poolBytes() {
            return 3L * pages * PAGE_BYTES;
        }

        KvPools pools(long base) {
            long[] bases = LongStream.range(0, pools).map(i -> base + i * poolBytes()).toArray();
            long[] itemBytes = new long[pools];
            Arrays.fill(itemBytes, PAGE_BYTES);
            int[] itemCounts = new int[pools];
            Arrays.fill(itemCounts, 3 * pages);
            return KvPools.of(bases, itemBytes, itemCounts);
        }

        int[] pages(int gap) {
            int[] indices = new int[pages];
            Arrays.setAll(indices, i -> i + i / runPages * gap);
            return indices;
        }
    }

    @Override
    public void run(Setting setting) throws Exception {
        try (NumpyPlanner peer = new NumpyPlanner(setting.sources())) {
            for (String way : new String[] {"lists", "vectorised"}) {
                for (Case planned : CASES) {
                    measure(setting, peer, planned, way);
                }
            }
        }
        GrowthBench.measure(setting);
    }

    private static void measure(Setting setting, NumpyPlanner peer, Case planned, String way)
            throws Exception {
        KvPools prefill = planned.pools(PREFILL_BASE);
        KvPools decode = planned.pools(DECODE_BASE);
        int[] prefillPages = planned.pages(1);
        int[] decodePages = planned.pages(2);
        peer.prepare(planned);
        requireSame(PagePlanner.plan(prefill, decode, prefillPages, decodePages), peer.plan(way));
        // Short plans are repeated, so that a round takes some milliseconds.
        int repeats = Math.max(1, 500_000 / (planned.blocks() + planned.pages()));
        setting.report()
                .accept(
                        Result.of(
                                "plan/%s/%d-pages/runs-of-%d"
                                        .formatted(way, planned.pages(), planned.runPages()),
                                "us/plan",
                                setting.rounds()
                                        .compare(
                                                Better.LOWER,
                                                () -> {
                                                    long start = System.nanoTime();
                                                    for (int i = 0; i < repeats; i++) {
                                                        plan(
                                                                planned,
                                                                prefill,
                                                                decode,
                                                                prefillPages,
                                                                decodePages);
                                                    }
                                                    return (System.nanoTime() - start)
                                                            / 1e3
                                                            / repeats;
                                                },
                                                () -> micros(peer, way)),
                                "pools",
                                planned.pools(),
                                "pages",
                                planned.pages(),
                                "blocks",
                                planned.blocks(),
                                "page_bytes",
                                PAGE_BYTES,
                                "peer",
                                "numpy, " + way));
    }

    private static void plan(
            Case planned, KvPools prefill, KvPools decode, int[] prefillPages, int[] decodePages) {
        TransferBatch batch = PagePlanner.plan(prefill, decode, prefillPages, decodePages);
        if (batch.size() != planned.blocks()) {
            throw new AssertionError(batch + " should have " + planned.blocks() + " blocks");
        }
    }

    private static double micros(NumpyPlanner peer, String way) throws IOException {
        return peer.plan(way).nanos() / 1e3;
    }

    private static void requireSame(TransferBatch batch, Planned peers) {
        long checksum = 0;
        for (int block = 0; block < batch.size(); block++) {
            checksum +=
                    batch.localAddress(block) * 3
                            + batch.remoteAddress(block) * 5
                            + batch.length(block) * 7;
        }
        if (batch.size() != peers.blocks() || checksum != peers.checksum()) {
            throw new AssertionError(batch + " differs from the peer's plan: " + peers);
        }
    }
}
