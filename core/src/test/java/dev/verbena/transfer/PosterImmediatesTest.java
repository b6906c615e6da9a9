package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.transfer.PosterRig.Shape;
import dev.verbena.verbs.CompletionQueue;
import dev.verbena.verbs.CompletionStatus;
import dev.verbena.verbs.QueuePair;
import dev.verbena.verbs.QueuePairOptions;
import dev.verbena.verbs.VerbsDouble;
import dev.verbena.verbs.VerbsDouble.PostedRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Immediates go out on every queue pair behind the data of all of them, and those of the peer are
 * all told, though there are only eight receives for thousands of them.
 */
@Timeout(120)
class PosterImmediatesTest {
    private static final int WRITE_WITH_IMMEDIATE = 1;

    @Test
    void anImmediateFollowsTheDataOnEveryQueuePair() throws Exception {
        for (int blocks : new int[] {0, 1, 3, 8, 9, 40}) {
            try (PosterRig rig = new PosterRig(Shape.of(4))) {
                rig.write(rig.scattered(blocks, 16), 0xcafe).await();

                int left = blocks;
                for (QueuePair pair : rig.pairs) {
                    List<PostedRequest> posted = rig.device.posted(pair);
                    PostedRequest last = posted.getLast();
                    assertThat(last.opcode()).isEqualTo(WRITE_WITH_IMMEDIATE);
                    assertThat(last.immediate()).isEqualTo(0xcafe);
                    assertThat(last.signaled()).isTrue();
                    assertThat(posted.subList(0, posted.size() - 1))
                            .noneMatch(r -> r.opcode() == WRITE_WITH_IMMEDIATE);
                    left -= posted.size() - 1;
                }
                assertThat(left).isZero();
            }
        }
    }

    /** The queues are full when the immediates' turn comes, and the next transfer waits behind. */
    @Test
    void immediatesWaitForRoom() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(2))) {
            rig.device.hold();
            Transfer first = rig.write(rig.scattered(16, 16), 1);
            Transfer second = rig.write(rig.scattered(2, 16), 2);
            assertThat(rig.device.accepted()).isEqualTo(16);
            rig.device.release(16);
            rig.poster.progress();

            assertThat(first.isDone()).isFalse();
            rig.device.release();
            first.await();
            second.await();
            assertThat(rig.device.posted())
                    .filteredOn(r -> r.opcode() == WRITE_WITH_IMMEDIATE)
                    .extracting(PostedRequest::immediate)
                    .containsExactly(1, 1, 2, 2);
        }
    }

    @Test
    void tellsAllImmediatesOfThePeerAndPostsReceivesAgain() {
        try (PosterRig rig = new PosterRig(Shape.of(2))) {
            List<Integer> sent = new ArrayList<>();
            for (int i = 0; i < 4000; i++) {
                assertThat(rig.device.deliverImmediate(rig.pairs.get(i % 2), i, 0)).isTrue();
                sent.add(i);
                if (i % 7 == 0) {
                    rig.poster.progress();
                }
            }
            rig.poster.progress();

            assertThat(rig.immediates).containsExactlyElementsOf(sent);
        }
    }

    @Test
    void oneReceiveAtATimeIsEnough() {
        PosterOptions one = Shape.OPTIONS.withReceives(1);
        try (PosterRig rig = new PosterRig(Shape.of(1).with(one))) {
            for (int i = 0; i < 10; i++) {
                assertThat(rig.device.deliverImmediate(rig.pairs.getFirst(), i, 0)).isTrue();
                assertThat(rig.device.deliverImmediate(rig.pairs.getFirst(), i, 0)).isFalse();
                rig.poster.progress();
            }
            assertThat(rig.immediates).hasSize(10);
        }
    }

    /** A peer that sends without end gets its turns, and so does everything else. */
    @Test
    void aFloodOfImmediatesDoesNotKeepATurnFromEnding() throws Exception {
        try (PosterRig rig = new PosterRig(Shape.of(1))) {
            AtomicInteger sent = new AtomicInteger();
            rig.device.whilePolling(() -> {
                while (rig.device.deliverImmediate(
                        rig.pairs.getFirst(), sent.getAndIncrement(), 0)) {}
            });

            assertThat(rig.poster.progress()).isTrue();

            assertThat(rig.immediates.size()).isBetween(1 << 14, (1 << 14) + 64);
            rig.write(rig.scattered(20, 16)).await();
        }
    }

    @Test
    void aListenerThatFailsLosesNothingForOthers() {
        VerbsDouble device = VerbsDouble.create();
        CompletionQueue queue = device.createCompletionQueue(16);
        QueuePair pair = device.createQueuePair(new QueuePairOptions(8, 4, 8, 1), queue);
        List<String> told = new ArrayList<>();
        BatchPoster poster =
                new BatchPoster(
                        List.of(pair),
                        queue,
                        1 << 20,
                        Shape.OPTIONS,
                        new BatchPoster.Listener() {
                            @Override
                            public void immediate(int immediate) {
                                told.add("immediate " + immediate);
                                throw new AssertionError("an error in a listener, as meant");
                            }

                            @Override
                            public void stopped(FailureReason reason, String message) {
                                told.add("stopped");
                                throw new IllegalStateException("a failing listener, as meant");
                            }
                        });
        device.deliverImmediate(pair, 1, 0);
        device.deliverImmediate(pair, 2, 0);
        device.failQueuePair(pair, CompletionStatus.FATAL);
        poster.progress();

        assertThat(told).containsExactly("immediate 1", "immediate 2", "stopped");
        poster.close();
        queue.close();
        device.close();
    }
}
