package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.transfer.PosterRig.Shape;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** However long a batch is, it costs no more than its own three arrays while it is under way. */
@Timeout(120)
class PosterMemoryTest {
    private static final int BLOCKS = 1 << 20;
    private static final int BYTES = 8;

    /** A slot of a ring: {@code ibv_send_wr} and sixteen {@code ibv_sge}. */
    private static final int SLOT_BYTES = 128 + 16 * 16;

    /**
     * A work request for each of a million blocks, which would be 384 MB if there were a slot for
     * each, and 16 MB if there were the smallest of objects. The bounds are a sixth of the one and
     * half of the other: what a compiler thread takes now and then is less.
     */
    @Test
    void aMillionWorkRequestsTakeNoMoreMemoryThanAFew() throws Exception {
        PosterOptions options = Shape.OPTIONS.withDepth(256, 128).withMaxSge(16);
        int pool = 2 * BLOCKS * BYTES;
        try (PosterRig rig = new PosterRig(Shape.of(2).with(options).withPool(pool, 1)).filled(1)) {
            rig.device.recordPosts(false);
            TransferBatch batch = rig.scattered(BLOCKS, BYTES);
            // Compiles what is hot, and touches every page.
            rig.write(batch).await();
            rig.remote.fill((byte) 0);

            MemoryWatch watch = new MemoryWatch();
            Transfer transfer = rig.write(batch);
            long done = 0;
            while (!transfer.isDone()) {
                rig.poster.progress();
                if (transfer.bytesDone() - done > batch.bytes() / 32) {
                    done = transfer.bytesDone();
                    watch.look();
                }
            }

            assertThat(watch.allocated()).isLessThan(8L * BLOCKS);
            assertThat(watch.residentGrowth()).isLessThan((long) BLOCKS * SLOT_BYTES / 6);
            assertThat(watch.looks()).as("all along its way").isGreaterThan(25);
            assertThat(rig.device.accepted()).isEqualTo(2L * BLOCKS);
            rig.assertTruthful(transfer);
        }
    }
}
