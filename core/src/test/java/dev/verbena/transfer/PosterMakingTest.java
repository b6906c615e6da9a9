package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.transfer.PosterRig.Shape;
import dev.verbena.verbs.CompletionQueue;
import dev.verbena.verbs.Lifetime;
import dev.verbena.verbs.QueuePair;
import dev.verbena.verbs.QueuePairOptions;
import dev.verbena.verbs.ReceiveRequests;
import dev.verbena.verbs.VerbsDouble;
import dev.verbena.verbs.VerbsException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A poster over queues that do not fit it is refused before anything is posted or kept. */
class PosterMakingTest {
    private static final QueuePairOptions FITTING = new QueuePairOptions(8, 4, 8, 1);

    private final VerbsDouble device = VerbsDouble.create();
    private final List<QueuePair> pairs = new ArrayList<>();
    private final CompletionQueue queue =
            device.createCompletionQueue(BatchPoster.completionsNeeded(2, Shape.OPTIONS));
    private long openBefore;

    @BeforeEach
    void count() {
        openBefore = Lifetime.openCount();
    }

    @AfterEach
    void nothingIsKept() {
        pairs.forEach(QueuePair::close);
        assertThat(Lifetime.openCount()).isEqualTo(openBefore);
        assertThat(device.accepted()).isZero();
        queue.close();
        device.close();
    }

    @Test
    void needsAQueuePair() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> make(List.of(), Shape.OPTIONS))
                .withMessageContaining("one queue pair at least");
    }

    @Test
    void takesNoQueuePairTwice() {
        QueuePair pair = pair(FITTING);

        assertThatIllegalArgumentException()
                .isThrownBy(() -> make(List.of(pair, pair), Shape.OPTIONS))
                .withMessageContaining("each once");
    }

    @Test
    void needsRoomForEveryCompletion() {
        List<QueuePair> three = List.of(pair(FITTING), pair(FITTING), pair(FITTING));

        assertThatIllegalArgumentException()
                .isThrownBy(() -> make(three, Shape.OPTIONS))
                .withMessageContaining("32 completions")
                .withMessageContaining("48 at once");
    }

    @Test
    void needsQueuePairsThatGatherAlike() {
        List<QueuePair> unlike = List.of(pair(FITTING), pair(new QueuePairOptions(8, 3, 8, 1)));

        assertThatIllegalArgumentException()
                .isThrownBy(() -> make(unlike, Shape.OPTIONS))
                .withMessageContaining("sendSge=4")
                .withMessageContaining("3:");
    }

    @Test
    void needsQueuePairsAsDeepAsItsOptions() {
        List<QueuePair> fewSends = List.of(pair(new QueuePairOptions(4, 4, 8, 1)));
        List<QueuePair> fewReceives = List.of(pair(new QueuePairOptions(8, 4, 2, 1)));

        assertThatIllegalArgumentException()
                .isThrownBy(() -> make(fewSends, Shape.OPTIONS))
                .withMessageContaining("4 sends and 8 receives");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> make(fewReceives, Shape.OPTIONS))
                .withMessageContaining("8 sends and 2 receives");
    }

    @Test
    void needsAPortThatTakesMessages() {
        List<QueuePair> one = List.of(pair(FITTING));

        assertThatIllegalArgumentException()
                .isThrownBy(() -> new BatchPoster(one, queue, 0, Shape.OPTIONS, listener()))
                .withMessageContaining("maxMessageBytes=0");
    }

    @Test
    void saysHowManyCompletionsThereMayBe() {
        assertThat(BatchPoster.completionsNeeded(3, Shape.OPTIONS)).isEqualTo(48);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> BatchPoster.completionsNeeded(0, Shape.OPTIONS));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> BatchPoster.completionsNeeded(1 << 28, Shape.OPTIONS))
                .withMessageContaining("4294967296 completions");
    }

    /** The queue pairs may allow more pieces than the options, or fewer. */
    @Test
    void gathersNoMoreThanOptionsAndQueuePairsAllow() {
        for (int pieces : new int[] {2, 4, 9}) {
            try (PosterRig rig = new PosterRig(Shape.of(1))) {
                TransferBatch batch = new TransferBatch();
                for (int i = 0; i < 12; i++) {
                    rig.add(batch, 32L * i, 16L * i, 16);
                }
                QueuePair pair = pair(FITTING);
                try (BatchPoster poster = make(List.of(pair), Shape.OPTIONS.withMaxSge(pieces))) {
                    assertThat(
                                    poster.plan(Direction.WRITE, batch, rig.localMap, rig.remoteMap)
                                            .workRequests())
                            .isEqualTo(12 / Math.min(pieces, FITTING.sendSge()));
                }
            }
        }
    }

    /** The second has a receive already, and no room for all of the poster's. */
    @Test
    void leavesNothingOpenIfReceivesCannotBePosted() {
        List<QueuePair> two = List.of(pair(FITTING), pair(FITTING));
        try (ReceiveRequests receive = new ReceiveRequests(1, 0)) {
            receive.fill(0, 1, 0);
            two.get(1).postReceives(receive, 1);
        }

        assertThatThrownBy(() -> make(two, Shape.OPTIONS))
                .isInstanceOf(VerbsException.class)
                .hasMessageContaining("ENOMEM");
    }

    private QueuePair pair(QueuePairOptions options) {
        QueuePair pair = device.createQueuePair(options, queue);
        pairs.add(pair);
        return pair;
    }

    private BatchPoster make(List<QueuePair> queuePairs, PosterOptions options) {
        return new BatchPoster(queuePairs, queue, 1 << 20, options, listener());
    }

    private static BatchPoster.Listener listener() {
        return new BatchPoster.Listener() {
            @Override
            public void immediate(int immediate) {}

            @Override
            public void stopped(FailureReason reason, String message) {}
        };
    }
}
