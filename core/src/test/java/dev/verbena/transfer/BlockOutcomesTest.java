package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.transfer.BlockOutcomes.Range;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/**
 * A block is done unless a record says otherwise, and unknown wins over not done, in whichever
 * order they come. The ranges say the same as the single blocks. Against an array of outcomes, with
 * so few blocks that records overlap all the time.
 */
class BlockOutcomesTest {
    private static final int BLOCKS = 20;

    @Test
    void allBlocksAreDoneAtFirst() {
        BlockOutcomes outcomes = new BlockOutcomes(3);

        assertThat(outcomes.of(2)).isEqualTo(BlockOutcome.DONE);
        assertThat(outcomes.notDone()).isEmpty();
    }

    @Test
    void rangesJoinNeighboursOfOneOutcome() {
        BlockOutcomes outcomes = new BlockOutcomes(10);
        outcomes.notDone(2, 4);
        outcomes.notDone(4, 8);
        outcomes.unknown(5, 6);
        outcomes.unknown(9, 10);

        assertThat(outcomes.notDone())
                .containsExactly(
                        new Range(2, 5, BlockOutcome.NOT_DONE),
                        new Range(5, 6, BlockOutcome.UNKNOWN),
                        new Range(6, 8, BlockOutcome.NOT_DONE),
                        new Range(9, 10, BlockOutcome.UNKNOWN));
    }

    @Test
    void emptyRecordsChangeNothing() {
        BlockOutcomes outcomes = new BlockOutcomes(3);
        outcomes.notDone(1, 1);
        outcomes.unknown(2, 0);

        assertThat(outcomes.notDone()).isEmpty();
    }

    @Test
    void refusesBlocksThatTheBatchDoesNotHave() {
        BlockOutcomes outcomes = new BlockOutcomes(3);

        assertThatThrownBy(() -> outcomes.of(3)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> outcomes.of(-1)).isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    void saysWhatAnArrayOfOutcomesSays() {
        for (long seed = 0; seed < 2000; seed++) {
            Random random = new Random(seed);
            BlockOutcomes outcomes = new BlockOutcomes(BLOCKS);
            BlockOutcome[] model = new BlockOutcome[BLOCKS];
            Arrays.fill(model, BlockOutcome.DONE);
            for (int record = random.nextInt(6); record > 0; record--) {
                int first = random.nextInt(BLOCKS);
                int end = first + random.nextInt(BLOCKS - first + 1);
                boolean unknown = random.nextBoolean();
                if (unknown) {
                    outcomes.unknown(first, end);
                } else {
                    outcomes.notDone(first, end);
                }
                for (int i = first; i < end; i++) {
                    model[i] =
                            unknown || model[i] == BlockOutcome.UNKNOWN
                                    ? BlockOutcome.UNKNOWN
                                    : BlockOutcome.NOT_DONE;
                }
            }

            BlockOutcome[] single = new BlockOutcome[BLOCKS];
            BlockOutcome[] ranges = new BlockOutcome[BLOCKS];
            Arrays.setAll(single, outcomes::of);
            Arrays.fill(ranges, BlockOutcome.DONE);
            List<Range> notDone = outcomes.notDone();
            notDone.forEach(r -> Arrays.fill(ranges, r.firstBlock(), r.endBlock(), r.outcome()));
            assertThat(single).as("seed %d", seed).isEqualTo(model);
            assertThat(ranges).as("seed %d", seed).isEqualTo(model);
        }
    }
}
