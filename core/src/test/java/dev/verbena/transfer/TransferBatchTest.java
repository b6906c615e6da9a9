package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

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
