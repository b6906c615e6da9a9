package dev.verbena.tcp;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.verbs.WorkRequests;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How the thread that posts and the one that retires meet in the counts. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class PostedSendsTest {
    /**
     * Whoever takes a completion may post to its place at once. Here the completion is held up on
     * its way, and the place must be free already.
     */
    @Test
    void thePlaceOfARequestIsFreeBeforeItsCompletionIsTold() throws Exception {
        TcpCompletions completions = new TcpCompletions(new TcpEvents(), 4);
        PostedSends sends = new PostedSends(completions, 1);
        try (WorkRequests ring = new WorkRequests(2, 1)) {
            ring.fill(0, 7, WorkRequests.Operation.WRITE, 0, 0, 0, true);
            assertThat(sends.post(ring, 0, 1)).isEqualTo(1);
            assertThat(sends.send()).isZero();
            assertThat(sends.post(ring, 1, 1)).as("the queue is full").isZero();
            Thread retiring;
            synchronized (completions) {
                retiring = Thread.ofPlatform().start(() -> sends.retireBefore(1));
                while (retiring.getState() != Thread.State.BLOCKED) {
                    Thread.onSpinWait();
                }

                assertThat(sends.post(ring, 1, 1)).isEqualTo(1);
            }
            retiring.join();
        }
    }
}
