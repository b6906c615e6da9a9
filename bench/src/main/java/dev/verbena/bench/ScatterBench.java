package dev.verbena.bench;

import dev.verbena.bench.Rounds.Better;
import dev.verbena.transfer.PosterOptions;
import dev.verbena.transfer.Transfer;
import dev.verbena.transfer.TransferBatch;
import java.io.IOException;
import java.util.Map;

/**
 * Scattered pages over the device, in batches, against puts and a flush of UCX by its Java binding.
 *
 * <p>No two pages of a batch are adjacent on this side. They are not at the peer either, so that
 * there is nothing to merge; or, in a second group, they are, as the pages that a decode node has
 * set aside for a request often are.
 */
final class ScatterBench implements Benchmark {
    /** Of the memory of both sides; what a page of the processor has. */
    static final long ALIGNMENT = 4096;

    private static final int[] PAGE_BYTES = {4 << 10, 16 << 10, 64 << 10};
    private static final int[] BATCHES = {32, 128, 1024, 4096};
    private static final long POOL_BYTES = 512L << 20;

    /** A round moves so many bytes, or one batch if that is more. */
    private static final long ROUND_BYTES = 32L << 20;

    /** Where page i of batch b is here, in pages. */
    static long localSlot(int page, int batch, long slots) {
        return (page * 2L + batch * 31L) % slots;
    }

    /** Where page i of batch b goes: the batch back to front, or one page behind the other. */
    static long remoteSlot(int page, int batch, long slots, boolean adjacent) {
        return adjacent ? (page + batch * 31L) % slots : slots - 1 - localSlot(page, batch, slots);
    }

    @Override
    public void run(Setting setting) throws Exception {
        RdmaDevice device = RdmaDevice.first();
        Map<String, String> ucx =
                Map.of(
                        "UCX_TLS",
                        System.getProperty("verbena.bench.ucx.tls", "rc_v"),
                        "UCX_NET_DEVICES",
                        "all",
                        "UCX_IB_GID_INDEX",
                        Integer.toString(device.gidIndex()),
                        // UCX connects by datagrams, and drops those of soft-RoCE over IPv4, as it
                        // looks for the destination where the driver does not put it.
                        "UCX_UD_ETH_DGID_CHECK",
                        "n",
                        // Answers alone go to standard output.
                        "UCX_LOG_FILE",
                        "stderr",
                        "UCX_WARN_UNUSED_ENV_VARS",
                        "n");
        try (DevicePair pair = DevicePair.open(device, POOL_BYTES, 1, PosterOptions.defaults());
                ChildProcess peer =
                        new ChildProcess(
                                ucx,
                                ChildProcess.java(
                                        "dev.verbena.bench.UcxScatter",
                                        Long.toString(POOL_BYTES)))) {
            peer.answer();
            for (boolean adjacent : new boolean[] {false, true}) {
                Case first = new Case(pair, peer, PAGE_BYTES[0], BATCHES[0], adjacent);
                Rounds.untilCompiled(first::ours, first::peers);
                for (int pageBytes : PAGE_BYTES) {
                    for (int pages : BATCHES) {
                        if ((long) pages * pageBytes * 2 <= POOL_BYTES) {
                            measure(setting, new Case(pair, peer, pageBytes, pages, adjacent));
                        }
                    }
                }
            }
        }
    }

    /** How many batches of so many pages a round writes, and how fast each side is at it. */
    private record Case(
            DevicePair pair, ChildProcess ucx, int pageBytes, int pages, boolean adjacent) {
        int batches() {
            return (int) Math.max(1, ROUND_BYTES / ((long) pageBytes * pages));
        }

        double ours() throws InterruptedException {
            return mibPerSecond(write());
        }

        double peers() throws IOException {
            String request = "%d %d %d %b".formatted(pageBytes, pages, batches(), adjacent);
            return mibPerSecond(Long.parseLong(ucx.ask(request)));
        }

        private double mibPerSecond(long nanos) {
            return (double) batches() * pages * pageBytes / (1 << 20) * 1e9 / nanos;
        }

        /** Gives the nanoseconds that it takes. */
        private long write() throws InterruptedException {
            TransferBatch batch = new TransferBatch(pages);
            long slots = POOL_BYTES / pageBytes;
            long start = System.nanoTime();
            for (int b = 0; b < batches(); b++) {
                batch.clear();
                for (int page = 0; page < pages; page++) {
                    batch.add(
                            pair.local().address() + localSlot(page, b, slots) * pageBytes,
                            pair.remote().address()
                                    + remoteSlot(page, b, slots, adjacent) * pageBytes,
                            pageBytes);
                }
                Transfer transfer = pair.peer().write(batch);
                transfer.await();
            }
            return System.nanoTime() - start;
        }
    }

    private static void measure(Setting setting, Case measured) throws Exception {
        setting.report()
                .accept(
                        Result.of(
                                "rxe-scatter/%s/%d-KiB/%d"
                                        .formatted(
                                                measured.adjacent ? "adjacent-there" : "scattered",
                                                measured.pageBytes >> 10,
                                                measured.pages),
                                "MiB/s",
                                setting.rounds()
                                        .compare(Better.HIGHER, measured::ours, measured::peers),
                                "page_bytes",
                                measured.pageBytes,
                                "batch",
                                measured.pages,
                                "queue_pairs",
                                1,
                                "peer",
                                "UCX, implicit puts and a flush, by jucx"));
    }
}
