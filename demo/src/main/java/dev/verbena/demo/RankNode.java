package dev.verbena.demo;

import dev.verbena.memory.Pool;
import dev.verbena.transfer.Node;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.verbs.Access;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Locale;

/**
 * One rank of a side: its node, its cache, and the memory of that.
 *
 * @param node of the rank, closed with it
 * @param cache what is where
 * @param pool the memory, registered
 */
record RankNode(Node node, RankCache cache, Pool pool) implements AutoCloseable {
    /** Opens a rank. */
    static RankNode open(NodeOptions options, Job job, Job.Side side, int rank) throws IOException {
        RankCache cache = RankCache.of(job, side, rank);
        Node node = Node.open(options.name(side.name().toLowerCase(Locale.ROOT) + "-" + rank));
        try {
            // A prefill rank grants nothing to peers.
            Access access = side == Job.Side.DECODE ? Access.REMOTE_WRITE : Access.LOCAL_WRITE;
            Pool pool = node.registry().allocate("cache", cache.lengthBytes(), access);
            return new RankNode(node, cache, pool);
        } catch (RuntimeException failure) {
            node.close();
            throw failure;
        }
    }

    MemorySegment memory() {
        return pool.segment();
    }

    @Override
    public void close() {
        node.close();
    }
}
