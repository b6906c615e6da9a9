package dev.verbena.bench;

import dev.verbena.bench.NoOpDevice.Pages;
import dev.verbena.bench.Rounds.Better;
import dev.verbena.transfer.PosterOptions;
import dev.verbena.transfer.TransferBatch;
import dev.verbena.verbs.CompletionQueue;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.QueuePair;
import dev.verbena.verbs.WorkCompletions;
import dev.verbena.verbs.WorkRequests;
import java.util.Arrays;

/**
 * What a work request costs before the device has it: batches of fresh addresses, built, posted and
 * polled, against the straightforward C loop on the same no-op driver.
 *
 * <p>At two altitudes. {@code post/verbs} does what the C loop does, by a run of slots of {@link
 * WorkRequests} and {@link QueuePair#post}; {@code post/slots} does it slot by slot. {@code
 * post/transfer} is the whole way of a batch: it is also checked against the pools, merged,
 * accounted for and brought to an end.
 */
final class PostBench implements Benchmark {
    private static final int[] SIZES = {1, 32, 256, 1024};
    private static final int REQUESTS_PER_ROUND = 1 << 20;
    private static final int POLL = 64;

    /** The queue holds the longest batch, so that a batch is one chain on both sides. */
    private static final PosterOptions OPTIONS = PosterOptions.defaults().withDepth(1024, 1024);

    @Override
    public void run(Setting setting) throws Exception {
        try (Rig rig = new Rig(setting, OPTIONS)) {
            for (int size : SIZES) {
                rig.post("post/verbs/" + size, size, rig::postByVerbs);
            }
            for (int size : SIZES) {
                rig.post("post/slots/" + size, size, rig::postBySlots);
            }
            for (int size : SIZES) {
                rig.post("post/transfer/" + size, size, rig::postByTransfer);
            }
            for (int size : SIZES) {
                rig.allocation(size);
            }
            for (int entries : new int[] {1, 16, POLL}) {
                rig.poll(entries);
            }
        }
    }

    /** Posts so many batches of a size. */
    @FunctionalInterface
    private interface Poster {
        void post(int size, int batches) throws Exception;
    }

    /** One device, one queue pair, and pools of addresses where there is no memory. */
    private static final class Rig implements AutoCloseable {
        private final Setting setting;
        private final NoOpDevice device;
        private final CompletionQueue verbsCompletions;
        private final QueuePair verbsPair;
        private final WorkRequests ring;
        private final WorkCompletions completions = new WorkCompletions(POLL);
        private final NoOpPoster poster;
        private final Pages pages;
        private final long[] locals = new long[OPTIONS.chainRequests()];
        private final long[] remotes = new long[OPTIONS.chainRequests()];
        private final long[] lengths = new long[OPTIONS.chainRequests()];
        private final TransferBatch batch = new TransferBatch(OPTIONS.chainRequests());

        Rig(Setting setting, PosterOptions options) {
            this.setting = setting;
            device = new NoOpDevice(setting.programs());
            verbsCompletions = device.completionQueue(options.sendRequests());
            verbsPair = device.queuePair(NoOpPoster.queuePairOptions(options));
            // As in the C loop, whose entries are one a request.
            ring = new WorkRequests(options.sendRequests(), 1);
            poster = new NoOpPoster(device, options);
            pages = poster.pages();
            Arrays.fill(lengths, pages.bytes());
        }

        void post(String name, int size, Poster ours) throws Exception {
            int batches = Math.max(1, REQUESTS_PER_ROUND / size);
            requireSameRequests(name, size, ours);
            setting.report()
                    .accept(
                            Result.of(
                                    name,
                                    "ns/WR",
                                    setting.rounds()
                                            .compare(
                                                    Better.LOWER,
                                                    () -> time(ours, size, batches),
                                                    () -> time(device::peerPost, size, batches)),
                                    "batch",
                                    size,
                                    "sge",
                                    1,
                                    "peer",
                                    "C loop, gcc -O2"));
        }

        /** Nanoseconds a request. */
        private double time(Poster side, int size, int batches) throws Exception {
            long start = ProcessorTime.threadNanos();
            side.post(size, batches);
            return (double) (ProcessorTime.threadNanos() - start) / ((long) size * batches);
        }

        private double time(PeerPoster side, int size, int batches) throws Exception {
            return time((Poster) (s, b) -> side.post(pages, s, b), size, batches);
        }

        /** Both sides must have given the driver the same ranges and keys. */
        private void requireSameRequests(String name, int size, Poster ours) throws Exception {
            device.reset();
            device.peerPost(pages, size, 3);
            long checksum = device.checksum();
            long requests = device.requests();
            device.reset();
            ours.post(size, 3);
            if (device.checksum() != checksum || device.requests() != requests) {
                throw new AssertionError(
                        "%s posted %d requests of sum %x, the peer %d of sum %x"
                                .formatted(
                                        name,
                                        device.requests(),
                                        device.checksum(),
                                        requests,
                                        checksum));
            }
        }

        /** Addresses into arrays, then a run of slots, then one doorbell. */
        private void postByVerbs(int size, int batches) {
            int mask = ring.capacity() - 1;
            int first = 0;
            for (int b = 0; b < batches; b++) {
                for (int k = 0; k < size; k++) {
                    locals[k] = pages.localOf(k, b);
                }
                for (int k = 0; k < size; k++) {
                    remotes[k] = pages.remoteOf(k, b);
                }
                ring.fillRun(
                        first,
                        size,
                        0,
                        WorkRequests.Operation.WRITE,
                        pages.remoteKey(),
                        pages.localKey(),
                        locals,
                        remotes,
                        lengths,
                        0);
                ring.signal(first + size - 1);
                if (verbsPair.post(ring, first, size) != size) {
                    throw new AssertionError("errno " + verbsPair.postErrno());
                }
                first = (first + size) & mask;
                awaitLast(size - 1);
            }
        }

        /** The same, but slot by slot. */
        private void postBySlots(int size, int batches) {
            int mask = ring.capacity() - 1;
            int first = 0;
            for (int b = 0; b < batches; b++) {
                for (int k = 0; k < size; k++) {
                    int slot = first + k;
                    ring.fill(
                            slot,
                            k,
                            WorkRequests.Operation.WRITE,
                            pages.remoteOf(k, b),
                            pages.remoteKey(),
                            1,
                            k == size - 1);
                    ring.piece(slot, 0, pages.localOf(k, b), pages.bytes(), pages.localKey());
                }
                if (verbsPair.post(ring, first, size) != size) {
                    throw new AssertionError("errno " + verbsPair.postErrno());
                }
                first = (first + size) & mask;
                awaitLast(size - 1);
            }
        }

        private void awaitLast(long identity) {
            boolean done = false;
            while (!done) {
                int count = verbsCompletions.poll(completions);
                for (int i = 0; i < count; i++) {
                    if (completions.status(i) != CompletionStatus.SUCCESS) {
                        throw new AssertionError(completions.status(i));
                    }
                    done |= completions.workRequestId(i) == identity;
                }
            }
        }

        private void postByTransfer(int size, int batches) {
            for (int b = 0; b < batches; b++) {
                batch.clear();
                for (int k = 0; k < size; k++) {
                    batch.add(pages.localOf(k, b), pages.remoteOf(k, b), pages.bytes());
                }
                poster.write(batch);
            }
        }

        /** Bytes on the Java heap, of which the C loop has none. */
        void allocation(int size) throws Exception {
            int batches = 1000;
            double verbs = heapBytes(this::postByVerbs, size, batches) / ((double) size * batches);
            double transfer = heapBytes(this::postByTransfer, size, batches) / (double) batches;
            setting.report()
                    .accept(
                            Result.of(
                                    "post/allocated/" + size,
                                    "bytes/WR",
                                    new Rounds.Comparison(verbs, 0, verbs == 0 ? 1 : 0, 1, 1, 1),
                                    "batch",
                                    size,
                                    "bytes_per_transfer",
                                    transfer,
                                    "peer",
                                    "C loop, which has no heap"));
        }

        private static long heapBytes(Poster side, int size, int batches) throws Exception {
            long before = ProcessorTime.threadHeapBytes();
            side.post(size, batches);
            return ProcessorTime.threadHeapBytes() - before;
        }

        void poll(int entries) throws Exception {
            int polls = REQUESTS_PER_ROUND / entries;
            double count = (double) polls * entries;
            try (WorkCompletions room = new WorkCompletions(entries)) {
                long sum = sumByPeer(entries, polls);
                long sumOfOurs = sumByVerbs(room, polls);
                if (sum != sumOfOurs) {
                    throw new AssertionError("polled identities differ");
                }
                setting.report()
                        .accept(
                                Result.of(
                                        "post/poll/" + entries,
                                        "ns/completion",
                                        setting.rounds()
                                                .compare(
                                                        Better.LOWER,
                                                        () ->
                                                                nanos(() -> sumByVerbs(room, polls))
                                                                        / count,
                                                        () ->
                                                                nanos(() ->
                                                                        sumByPeer(entries, polls))
                                                                        / count),
                                        "completions_per_poll",
                                        entries,
                                        "peer",
                                        "C loop, gcc -O2"));
            }
        }

        private long sumByPeer(int entries, int polls) {
            device.endless(true);
            long sum = device.peerPoll(entries, polls);
            device.endless(false);
            return sum;
        }

        private long sumByVerbs(WorkCompletions room, int polls) {
            device.endless(true);
            long sum = 0;
            for (int poll = 0; poll < polls; poll++) {
                int count = verbsCompletions.poll(room);
                for (int i = 0; i < count; i++) {
                    if (room.status(i) != CompletionStatus.SUCCESS) {
                        throw new AssertionError(room.status(i));
                    }
                    sum += room.workRequestId(i);
                }
            }
            device.endless(false);
            return sum;
        }

        private static double nanos(Runnable code) {
            long start = ProcessorTime.threadNanos();
            code.run();
            return ProcessorTime.threadNanos() - start;
        }

        @Override
        public void close() {
            poster.close();
            completions.close();
            ring.close();
            verbsPair.close();
            verbsCompletions.close();
            device.close();
        }
    }

    @FunctionalInterface
    private interface PeerPoster {
        long post(Pages pages, int size, int batches);
    }
}
