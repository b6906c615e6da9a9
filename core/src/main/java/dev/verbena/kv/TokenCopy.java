package dev.verbena.kv;

import dev.verbena.transfer.TransferBatch;

/**
 * Copies a part of every token between two pools whose tokens differ in length: a stride, an offset
 * into the token and a length, the same for all tokens.
 *
 * @param sourceTokenBytes from one token to the next in the source pool
 * @param sourceOffsetBytes where the part begins in a source token
 * @param destinationTokenBytes from one token to the next in the destination pool
 * @param destinationOffsetBytes where the part begins in a destination token
 * @param partBytes length of the part
 */
record TokenCopy(
        long sourceTokenBytes,
        long sourceOffsetBytes,
        long destinationTokenBytes,
        long destinationOffsetBytes,
        long partBytes) {

    /** Number of blocks for the runs of pages in one pool. */
    long blocks(IndexRuns runs, int pageTokens) {
        if (partBytes == 0) {
            return 0;
        }
        return isDense() ? runs.count() : (long) runs.items() * pageTokens;
    }

    /** Adds a block per token, or per run where the part is the whole token on both sides. */
    void addTo(
            TransferBatch batch,
            IndexRuns runs,
            int pageTokens,
            long sourceBase,
            long destinationBase) {
        if (isDense()) {
            runs.addTo(batch, sourceBase, destinationBase, sourceTokenBytes * pageTokens);
            return;
        }
        for (int run = 0; run < runs.count(); run++) {
            long firstSource = (long) runs.source(run) * pageTokens;
            long firstDestination = (long) runs.destination(run) * pageTokens;
            long tokens = (long) runs.length(run) * pageTokens;
            long source = sourceBase + firstSource * sourceTokenBytes + sourceOffsetBytes;
            long destination =
                    destinationBase
                            + firstDestination * destinationTokenBytes
                            + destinationOffsetBytes;
            for (long token = 0; token < tokens; token++) {
                batch.add(source, destination, partBytes);
                source += sourceTokenBytes;
                destination += destinationTokenBytes;
            }
        }
    }

    private boolean isDense() {
        return partBytes == sourceTokenBytes && partBytes == destinationTokenBytes;
    }
}
