package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.kv.KvGroup.Job;
import dev.verbena.kv.KvGroup.Shape;
import dev.verbena.kv.KvGroup.Staging;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.verbs.Lifetime;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/**
 * One thing goes wrong behind each step of a request, on each rank in turn: every request and every
 * send ends exactly once, on all ranks, and nothing is left of it: slots, tokens, staging regions
 * and buffers, announcements, memory regions, files. Before the last chunk is given a failure on
 * any rank fails the request; a request that is ready has all its bytes.
 */
abstract class KvFailures {
    private static final int CHUNK_PAGES = 3;
    private static final int TOKENS = 41;

    /** Nobody is late here; who never announces is waited for as long. */
    private static final Duration BEGIN_WAIT = Duration.ofMillis(500);

    /** What goes wrong, on one rank. */
    enum Failure {
        DECODE_ABORTS,
        DECODE_NODE_CLOSES,
        PREFILL_FAILS,
        PREFILL_CLOSES_THE_SEND,
        PREFILL_NODE_CLOSES,
        A_CONNECTION_IS_LOST;

        int victims(Shape shape) {
            return switch (this) {
                case DECODE_ABORTS, DECODE_NODE_CLOSES -> shape.decodeTp();
                default -> shape.prefillTp() * shape.stages();
            };
        }
    }

    private long openBefore;
    private long filesBefore;

    /** Options of every node. */
    abstract NodeOptions options();

    @BeforeEach
    void count() throws IOException {
        openBefore = Lifetime.openCount();
        filesBefore = files();
    }

    @AfterEach
    void nothingStaysOpen() throws Exception {
        assertThat(Lifetime.openCount()).isEqualTo(openBefore);
        for (int i = 0; i < 1000 && files() > filesBefore; i++) {
            Thread.sleep(5);
        }
        // The platform keeps some of its own from the first use on.
        assertThat(files()).isLessThanOrEqualTo(filesBefore + 8);
    }

    /** All failures behind all steps on all ranks. */
    final void enumerate(Shape shape, boolean staged) throws Exception {
        for (Failure failure : Failure.values()) {
            for (int victim = 0; victim < failure.victims(shape); victim++) {
                int step = 0;
                while (run(shape, staged, failure, victim, step)) {
                    step++;
                }
                assertThat(step).as("steps of a request").isGreaterThan(5);
            }
        }
    }

    /** Gives whether there was such a step. */
    private boolean run(Shape shape, boolean staged, Failure failure, int victim, int step)
            throws Exception {
        String name = "%s of rank %d behind step %d, %s".formatted(failure, victim, step, shape);
        ModelOfBytes model = ModelOfBytes.heads(4).withMamba().withAux();
        long chunk = model.stagedBytes(shape, CHUNK_PAGES);
        Staging staging = staged ? new Staging(chunk + chunk / 2, chunk, 2) : Staging.NONE;
        try (KvGroup group =
                new KvGroup(
                        options(),
                        shape,
                        model,
                        model,
                        KvSenderOptions.defaults(),
                        KvReceiverOptions.defaults(),
                        staging)) {
            Life life = new Life(group, group.new Job(1, TOKENS));
            List<Step> steps = life.steps();
            if (step >= steps.size()) {
                return false;
            }
            for (int i = 0; i <= step; i++) {
                steps.get(i).run();
            }
            boolean mustFail = step < life.lastStepThatMustFail(failure, victim);
            life.strike(failure, victim);
            for (int i = step + 1; i < steps.size(); i++) {
                life.tryOn(steps.get(i));
            }
            life.assertEnded(name, mustFail);
            group.assertQuiet();
        }
        return true;
    }

    @FunctionalInterface
    private interface Step {
        void run() throws Exception;
    }

    /** The life of one request on all ranks, step by step. */
    private static final class Life {
        private final KvGroup group;
        private final Job job;
        private final int[] pagesGiven;
        private int[] stepsOfLast = {};
        private boolean struck;

        Life(KvGroup group, Job job) {
            this.group = group;
            this.job = job;
            this.pagesGiven = new int[group.senders.size()];
        }

        List<Step> steps() {
            List<Step> steps = new ArrayList<>();
            for (int rank = 0; rank < group.receivers.size(); rank++) {
                int decode = rank;
                steps.add(() -> job.expect(decode));
            }
            for (KvSender sender : group.senders) {
                steps.add(() -> job.sends.add(sender.begin(job.room, BEGIN_WAIT)));
            }
            int pages = job.prefillSlots.getFirst().pageSlots().length;
            for (int first = 0; first + CHUNK_PAGES < pages; first += CHUNK_PAGES) {
                for (int rank = 0; rank < group.senders.size(); rank++) {
                    int prefill = rank;
                    steps.add(() -> chunk(prefill));
                }
            }
            stepsOfLast = new int[group.senders.size()];
            for (int rank = 0; rank < group.senders.size(); rank++) {
                int prefill = rank;
                stepsOfLast[rank] = steps.size();
                steps.add(() ->
                        job.sends.get(prefill).last(job.lastSlots(prefill, pagesGiven[prefill])));
            }
            steps.add(() -> job.sends.get(0).await());
            steps.add(() -> job.requests.get(0).await(patience()));
            return steps;
        }

        /**
         * A prefill rank that has given its last chunk may have done all it had to; a decode rank
         * needs those of all.
         */
        int lastStepThatMustFail(Failure failure, int victim) {
            return switch (failure) {
                case DECODE_ABORTS, DECODE_NODE_CLOSES -> stepsOfLast[stepsOfLast.length - 1];
                default -> stepsOfLast[victim];
            };
        }

        /** A request that not all prefill ranks have begun waits until its own deadline. */
        private Duration patience() {
            return job.sends.size() < group.senders.size() ? BEGIN_WAIT : KvGroup.SOON;
        }

        private void chunk(int rank) {
            int[] pages = job.prefillSlots.get(rank).pageSlots();
            int first = pagesGiven[rank];
            pagesGiven[rank] += CHUNK_PAGES;
            job.sends.get(rank).chunk(Arrays.copyOfRange(pages, first, first + CHUNK_PAGES));
        }

        void strike(Failure failure, int victim) {
            switch (failure) {
                case DECODE_ABORTS -> {
                    if (victim < job.requests.size()) {
                        job.requests.get(victim).abort("as meant");
                        struck = true;
                    }
                }
                case DECODE_NODE_CLOSES -> {
                    group.decode.get(victim).node.close();
                    struck = true;
                }
                case PREFILL_FAILS -> {
                    if (victim < job.sends.size()) {
                        job.sends.get(victim).fail("as meant");
                        struck = true;
                    }
                }
                case PREFILL_CLOSES_THE_SEND -> {
                    if (victim < job.sends.size()) {
                        job.sends.get(victim).close();
                        struck = true;
                    }
                }
                case PREFILL_NODE_CLOSES -> {
                    group.prefill.get(victim).node.close();
                    struck = true;
                }
                case A_CONNECTION_IS_LOST -> {
                    group.prefill.get(victim).peers.getFirst().close();
                    struck = true;
                }
            }
        }

        /** What an application would still do that has not heard of the failure. */
        void tryOn(Step step) throws Exception {
            try {
                step.run();
            } catch (KvException | IllegalStateException | IndexOutOfBoundsException refused) {
                // It is told: the request has failed, its node is closed, or was never begun.
            } catch (IllegalArgumentException unconnected) {
                assertThat(unconnected).hasMessageContaining("connected");
            }
        }

        void assertEnded(String name, boolean mustFail) throws Exception {
            boolean anyFailed = false;
            for (KvRequest request : job.requests) {
                try {
                    request.await(patience());
                } catch (KvException failed) {
                    assertThat(failed.getMessage())
                            .as(name)
                            .doesNotContain("not filled within PT1M");
                    anyFailed = true;
                }
            }
            if (struck && mustFail) {
                assertThat(anyFailed || job.requests.isEmpty()).as(name + " fails it").isTrue();
            }
            for (KvSend send : job.sends) {
                send.close();
            }
            job.requests.forEach(KvRequest::close);
            // Who waits may go on a moment before the end is counted.
            for (int i = 0; i < 10_000 && job.requestEnds.get() < job.requests.size(); i++) {
                Thread.sleep(1);
            }
            assertThat(job.requestEnds.get()).as(name + ": ends").isEqualTo(job.requests.size());
            boolean memoryIsThere =
                    group.decode.stream().noneMatch(rank -> rank.node.peers().isEmpty());
            if (!anyFailed && memoryIsThere && job.requests.size() == group.receivers.size()) {
                job.isExpected();
                group.assertBytes();
            }
        }
    }

    private static long files() throws IOException {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            return open.count();
        }
    }
}
