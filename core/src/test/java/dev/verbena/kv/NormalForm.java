package dev.verbena.kv;

import dev.verbena.transfer.TransferBatch;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** Blocks sorted by destination, neighbours that are contiguous on both sides merged. */
final class NormalForm {
    /** One stretch of bytes to move. */
    record Move(long source, long destination, long bytes) {
        boolean joins(Move next) {
            return source + bytes == next.source && destination + bytes == next.destination;
        }

        Move joined(Move next) {
            return new Move(source, destination, bytes + next.bytes);
        }
    }

    private NormalForm() {}

    static List<Move> of(TransferBatch batch) {
        return of(List.of(batch));
    }

    static List<Move> of(List<TransferBatch> batches) {
        List<Move> moves = new ArrayList<>();
        for (TransferBatch batch : batches) {
            moves.addAll(blocks(batch));
        }
        moves.sort(Comparator.comparingLong(Move::destination));
        return merged(moves);
    }

    static List<Move> blocks(TransferBatch batch) {
        List<Move> blocks = new ArrayList<>();
        for (int i = 0; i < batch.size(); i++) {
            blocks.add(new Move(batch.localAddress(i), batch.remoteAddress(i), batch.length(i)));
        }
        return blocks;
    }

    static List<Move> merged(List<Move> moves) {
        List<Move> merged = new ArrayList<>();
        for (Move move : moves) {
            if (!merged.isEmpty() && merged.getLast().joins(move)) {
                merged.add(merged.removeLast().joined(move));
            } else {
                merged.add(move);
            }
        }
        return merged;
    }
}
