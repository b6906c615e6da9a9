package dev.verbena.transfer;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;

/**
 * What is known of the blocks of a failed transfer: which are not done, which unknown; the rest is
 * done. Filled while the transfer's work requests end, read afterwards.
 */
public final class BlockOutcomes {
    /**
     * Consecutive blocks with one outcome.
     *
     * @param firstBlock index of the first
     * @param endBlock index behind the last
     * @param outcome what is known of each
     */
    public record Range(int firstBlock, int endBlock, BlockOutcome outcome) {}

    private final int blocks;
    private final BitSet notDone = new BitSet();
    private final BitSet unknown = new BitSet();

    BlockOutcomes(int blocks) {
        this.blocks = blocks;
    }

    /** Records blocks that no byte was moved of, unless another work request says otherwise. */
    void notDone(int firstBlock, int endBlock) {
        notDone.set(firstBlock, Math.max(firstBlock, endBlock));
    }

    /** Records blocks of which bytes may have been moved. */
    void unknown(int firstBlock, int endBlock) {
        unknown.set(firstBlock, Math.max(firstBlock, endBlock));
    }

    /**
     * Says what is known of a block.
     *
     * @param block index in the batch
     * @return its outcome
     * @throws IndexOutOfBoundsException if the batch has no such block
     */
    public BlockOutcome of(int block) {
        Objects.checkIndex(block, blocks);
        if (unknown.get(block)) {
            return BlockOutcome.UNKNOWN;
        }
        return notDone.get(block) ? BlockOutcome.NOT_DONE : BlockOutcome.DONE;
    }

    /**
     * Lists the blocks that are not known to be done.
     *
     * @return ranges in ascending order, neighbours of one outcome joined
     */
    public List<Range> notDone() {
        BitSet either = (BitSet) notDone.clone();
        either.or(unknown);
        List<Range> ranges = new ArrayList<>();
        int block = either.nextSetBit(0);
        while (block >= 0) {
            BlockOutcome outcome = of(block);
            int end = either.nextClearBit(block);
            int change =
                    outcome == BlockOutcome.UNKNOWN
                            ? unknown.nextClearBit(block)
                            : unknown.nextSetBit(block);
            if (change >= 0 && change < end) {
                end = change;
            }
            ranges.add(new Range(block, end, outcome));
            block = either.nextSetBit(end);
        }
        return ranges;
    }
}
