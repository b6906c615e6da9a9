package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A batch keeps its blocks in order, grows as needed, and refuses what is no range of memory. */
class TransferBatchTest {
    @Test
    void keepsBlocksInOrderWhileItGrows() {
        TransferBatch batch = new TransferBatch(0);
        for (int i = 0; i < 1000; i++) {
            batch.add(i, 2L * i, 1 + i);
        }

        assertThat(batch.size()).isEqualTo(1000);
        assertThat(batch.bytes()).isEqualTo(1000L * 1001 / 2);
        assertThat(batch.localAddress(999)).isEqualTo(999);
        assertThat(batch.remoteAddress(999)).isEqualTo(1998);
        assertThat(batch.length(999)).isEqualTo(1000);
    }

    @Test
    void runsOfItemsAreTheBlocksThatEachOfThemIs() {
        int[] locals = {0, 7, 3, 1 << 30};
        int[] remotes = {9, 0, 1 << 30, 2};
        int[] counts = {1, 5, 1 << 30, 2};
        for (long base : new long[] {0x1000, 0x7fff_ffff_ffff_0000L, 0xffff_0000_0000_0000L}) {
            TransferBatch runs = new TransferBatch(1).add(1, 2, 3);
            TransferBatch each = new TransferBatch(1).add(1, 2, 3);

            runs.addRuns(base, locals, 0x2000, remotes, counts, 3, 24);
            for (int i = 0; i < 3; i++) {
                each.add(base + locals[i] * 24L, 0x2000 + remotes[i] * 24L, counts[i] * 24L);
            }

            assertThat(runs.size()).isEqualTo(4);
            assertThat(runs.bytes()).isEqualTo(each.bytes());
            for (int i = 0; i < 4; i++) {
                assertThat(runs.describe(i)).isEqualTo(each.describe(i));
            }
        }
    }

    @Test
    void runsThatAreNoRangesAreRefusedAsTheirBlocksWouldBe() {
        int[] items = {0, 1, 2};
        assertThatIllegalArgumentException()
                .isThrownBy(() -> runs(new TransferBatch(), 1, items, new int[] {1, -1, 1}, 8))
                .withMessageContaining("block 1 has a negative length: -8");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> runs(new TransferBatch(), -16, items, new int[] {1, 1, 1}, 8))
                .withMessageContaining("block 1 passes the end of the address space");
        assertThatThrownBy(() ->
                        runs(new TransferBatch(), 1, items, new int[] {1, 1 << 30, 1}, 1L << 40))
                .isInstanceOf(ArithmeticException.class);
        assertThatThrownBy(() -> runs(new TransferBatch(), 1, items, new int[] {1, 1}, 8))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThat(runs(new TransferBatch(), 1, items, new int[] {1, 0, 1}, 8).size())
                .as("an empty run is dropped")
                .isEqualTo(2);
    }

    private static TransferBatch runs(
            TransferBatch batch, long base, int[] items, int[] counts, long itemBytes) {
        return batch.addRuns(base, items, 0x2000, items, counts, items.length, itemBytes);
    }

    @Test
    void dropsEmptyBlocks() {
        assertThat(new TransferBatch().add(1, 2, 0).isEmpty()).isTrue();
    }

    @Test
    void clearedBatchTakesBlocksAnew() {
        TransferBatch batch = new TransferBatch().add(1, 2, 3).clear();

        assertThat(batch.bytes()).isZero();
        assertThat(batch.add(4, 5, 6).localAddress(0)).isEqualTo(4);
    }

    @Test
    void refusesToBeChangedWhileATransferOfItIsUnderWay() throws Exception {
        try (PosterRig rig = new PosterRig(PosterRig.Shape.of(1)).filled(1)) {
            TransferBatch batch = rig.scattered(20, 16);
            rig.device.hold();
            Transfer first = rig.write(batch);
            Transfer second = rig.write(batch, 1);

            assertThatIllegalStateException()
                    .isThrownBy(batch::clear)
                    .withMessageContaining("WRITE of 20 blocks, 320 bytes");
            assertThatIllegalStateException().isThrownBy(() -> batch.add(1, 2, 3));
            assertThatIllegalStateException()
                    .isThrownBy(() -> runs(batch, 1, new int[] {1}, new int[] {1}, 8));
            assertThat(batch.size()).isEqualTo(20);

            while (!first.isDone()) {
                rig.device.release(8);
                rig.poster.progress();
            }
            assertThat(second.isDone()).isFalse();
            assertThatIllegalStateException()
                    .as("the other still moves it")
                    .isThrownBy(batch::clear);
            rig.device.release();
            second.await();
            rig.assertTruthful(second);
            assertThat(batch.clear().add(1, 2, 3).size()).isEqualTo(1);
            assertThat(first).hasToString("WRITE of 20 blocks, 320 bytes");
        }
    }

    /** Well or not, and from the callback that tells the end. */
    @Test
    void canBeFilledAnewFromTheEndOfItsTransferOn() {
        for (boolean failing : new boolean[] {false, true}) {
            try (PosterRig rig = new PosterRig(PosterRig.Shape.of(2))) {
                TransferBatch batch = rig.scattered(20, 16);
                rig.device.hold();
                Transfer transfer = rig.write(batch);
                List<TransferBatch> cleared = new ArrayList<>();
                transfer.completion()
                        .whenComplete((done, failed) -> cleared.add(batch.clear().add(1, 2, 3)));
                if (failing) {
                    rig.poster.fail(FailureReason.PEER_LOST, "gone", null);
                }
                rig.device.release();
                PosterRig.finish(rig, transfer);

                assertThat(cleared).containsExactly(batch);
            }
        }
    }

    /** A batch that was refused, or came too late, is nobody's. */
    @Test
    void canBeChangedAfterItWasRefused() {
        try (PosterRig rig = new PosterRig(PosterRig.Shape.of(1))) {
            TransferBatch batch = new TransferBatch().add(1, 2, 3);
            assertThatIllegalArgumentException().isThrownBy(() -> rig.write(batch));
            TransferBatch late = rig.scattered(1, 16);
            rig.poster.fail(FailureReason.PEER_LOST, "gone", null);
            assertThatIllegalStateException().isThrownBy(() -> rig.write(late));

            assertThat(batch.clear().isEmpty()).isTrue();
            assertThat(late.clear().isEmpty()).isTrue();
        }
    }

    @Test
    void refusesNegativeLengths() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new TransferBatch().add(1, 2, -1))
                .withMessageContaining("block 0")
                .withMessageContaining("-1");
    }

    @Test
    void refusesRangesThatPassTheAddressSpaceOnEitherSide() {
        TransferBatch batch = new TransferBatch().add(1, 2, 3);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> batch.add(-8, 2, 16))
                .withMessageContaining("block 1")
                .withMessageContaining("0xfffffffffffffff8");
        assertThatIllegalArgumentException().isThrownBy(() -> batch.add(2, -8, 16));
        assertThat(batch.size()).isEqualTo(1);
    }

    @Test
    void takesRangesPastTheMiddleOfTheAddressSpace() {
        assertThat(new TransferBatch().add(Long.MAX_VALUE, Long.MIN_VALUE, 8).size()).isEqualTo(1);
    }

    @Test
    void refusesBlocksThatItDoesNotHold() {
        TransferBatch batch = new TransferBatch().add(1, 2, 3);

        assertThatThrownBy(() -> batch.length(1)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> batch.localAddress(-1))
                .isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    void refusesCapacitiesOutOfRange() {
        assertThatIllegalArgumentException().isThrownBy(() -> new TransferBatch(-1));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new TransferBatch(TransferBatch.MAX_BLOCKS + 1));
    }

    @Test
    void countsRunsOfBlocksAdjacentOnBothSides() {
        TransferBatch batch = new TransferBatch();
        assertThat(batch.runs()).isZero();
        batch.add(0, 100, 10).add(10, 110, 10).add(20, 200, 10).add(50, 210, 10);

        assertThat(batch.runs()).isEqualTo(3);
    }
}
