package dev.verbena.bench;

import dev.verbena.bench.NoOpDevice.Blocks;
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
 * WorkRequests} and {@link QueuePair#post}; {@code post/slots} does it slot by slot. Both compute
 * their addresses as they go; in {@code post/listed} both sides read them from arrays. {@code
 * post/transfer} is the whole way of a batch: it is also checked against the pools, merged,
 * accounted for and brought to an end.
 */
final class PostBench implements Benchmark {
    private static final int[] SIZES = {1, 32, 256, 1024};
    private static final int REQUESTS_PER_ROUND = 1 << 20;
    private static final int POLL = 64;

    /** Blocks of the arrays, more than one batch has, so that addresses change. */
    private static final int LISTED = 16 << 10;

    /**
     * The queue holds the longest batch, so that a batch is one chain and one signal on both sides.
     */
    private static final PosterOptions OPTIONS =
            PosterOptions.defaults().withDepth(1024, 1024).withSignals(1024);

    @Override
    public void run(Setting setting) throws Exception {
        try (Rig rig = new Rig(setting, OPTIONS)) {
            for (int size : SIZES) {
                rig.post("post/verbs/" + size, size, rig::postByVerbs, rig::postByPeer);
            }
            for (int size : SIZES) {
                rig.post("post/listed/" + size, size, rig::postListed, rig::postListedByPeer);
            }
            for (int size : SIZES) {
                rig.post("post/slots/" + size, size, rig::postBySlots, rig::postByPeer);
            }
            for (int size : SIZES) {
                rig.post("post/transfer/" + size, size, rig::postByTransfer, rig::postByPeer);
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
        private final Blocks listed;
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
            listed = new Blocks(pages, LISTED);
            Arrays.fill(lengths, pages.bytes());
        }

        void post(String name, int size, Poster ours, Poster peer) throws Exception {
            int batches = Math.max(1, REQUESTS_PER_ROUND / size);
            requireSameRequests(name, size, ours, peer);
            setting.report()
                    .accept(
                            Result.of(
                                    name,
                                    "ns/WR",
                                    setting.rounds()
                                            .compare(
                                                    Better.LOWER,
                                                    () -> time(ours, size, batches),
                                                    () -> time(peer, size, batches)),
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

        /** Both sides must have given the driver the same ranges and keys. */
        private void requireSameRequests(String name, int size, Poster ours, Poster peer)
                throws Exception {
            device.reset();
            peer.post(size, 3);
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
            for (int b = 0; b < batches; b++) {
                for (int k = 0; k < size; k++) {
                    locals[k] = pages.localOf(k, b);
                }
                for (int k = 0; k < size; k++) {
                    remotes[k] = pages.remoteOf(k, b);
                }
                // As in C, the driver has copied what was in the slots before.
                ring.fillRun(
                        0,
                        size,
                        0,
                        WorkRequests.Operation.WRITE,
                        pages.remoteKey(),
                        pages.localKey(),
                        locals,
                        remotes,
                        lengths,
                        0);
                postAndWait(size);
            }
        }

        /** From arrays that are there: a run of slots, then one doorbell. */
        private void postListed(int size, int batches) {
            int sets = listed.batches(size);
            for (int b = 0; b < batches; b++) {
                ring.fillRun(
                        0,
                        size,
                        0,
                        WorkRequests.Operation.WRITE,
                        pages.remoteKey(),
                        pages.localKey(),
                        listed.locals,
                        listed.remotes,
                        listed.lengths,
                        b % sets * size);
                postAndWait(size);
            }
        }

        private void postByPeer(int size, int batches) {
            device.peerPost(pages, size, batches);
        }

        private void postListedByPeer(int size, int batches) {
            device.peerPost(listed, size, batches);
        }

        /** The same, but slot by slot. */
        private void postBySlots(int size, int batches) {
            for (int b = 0; b < batches; b++) {
                for (int k = 0; k < size; k++) {
                    ring.fill(
                            k,
                            k,
                            WorkRequests.Operation.WRITE,
                            pages.remoteOf(k, b),
                            pages.remoteKey(),
                            1,
                            false);
                    ring.piece(k, 0, pages.localOf(k, b), pages.bytes(), pages.localKey());
                }
                postAndWait(size);
            }
        }

        /** One doorbell for the first slots, the last of them signalled. */
        private void postAndWait(int size) {
            ring.signal(size - 1);
            if (verbsPair.post(ring, 0, size) != size) {
                throw new AssertionError("errno " + verbsPair.postErrno());
            }
            boolean done = false;
            while (!done) {
                int count = verbsCompletions.poll(completions);
                for (int i = 0; i < count; i++) {
                    if (completions.status(i) != CompletionStatus.SUCCESS) {
                        throw new AssertionError(completions.status(i));
                    }
                    done |= completions.workRequestId(i) == size - 1;
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
}
