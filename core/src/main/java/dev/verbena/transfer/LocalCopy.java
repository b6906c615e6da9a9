package dev.verbena.transfer;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Copies the blocks of a batch within this node's memory, by the processor: from the local address
 * of each to its "remote" one, which here is local too. Gathers and scatters staging areas.
 *
 * <p>All blocks are looked up before the first byte is copied, and the pools are held meanwhile. A
 * block is one {@link MemorySegment#copy}; many bytes are shared out over the processors.
 */
final class LocalCopy {
    /** Less than this is not worth another thread: about a fifth of a millisecond. */
    private static final long BYTES_A_TASK = 1 << 20;

    private final TransferBatch batch;
    private final AddressMap<Pool> pools;

    /** By entry of the map: the memory of those that the batch touches. */
    private final @Nullable MemorySegment[] memory;

    private LocalCopy(TransferBatch batch, AddressMap<Pool> pools) {
        this.batch = batch;
        this.pools = pools;
        this.memory = new MemorySegment[pools.size()];
    }

    /** Copies, as {@link Node#copy} says. */
    static void run(TransferBatch batch, AddressMap<Pool> pools) {
        new LocalCopy(batch, pools).run();
    }

    private void run() {
        List<Pool> held = check();
        try {
            int tasks = tasks();
            if (tasks == 1) {
                copy(0, batch.size());
            } else {
                long blocks = batch.size();
                IntStream.range(0, tasks)
                        .parallel()
                        .forEach(task ->
                                copy(
                                        (int) (blocks * task / tasks),
                                        (int) (blocks * (task + 1) / tasks)));
            }
        } finally {
            BatchCheck.release(held);
        }
    }

    /** Looks up all blocks and holds the pools they touch. */
    private List<Pool> check() {
        BitSet touched = new BitSet(pools.size());
        long[] sources = batch.localAddresses();
        long[] destinations = batch.remoteAddresses();
        long[] lengths = batch.lengths();
        int size = batch.size();
        // The regions that held the last block, so that most blocks need no look-up; none yet.
        long sourceStart = 0;
        long sourceBytes = 0;
        long destinationStart = 0;
        long destinationBytes = 0;
        for (int block = 0; block < size; block++) {
            long source = sources[block];
            long destination = destinations[block];
            long length = lengths[block];
            if (!isWithin(source - sourceStart, length, sourceBytes)
                    || !isWithin(destination - destinationStart, length, destinationBytes)) {
                int from = entry(block, "source", source, length);
                int to = entry(block, "destination", destination, length);
                checkWritable(block, to);
                touched.set(from);
                touched.set(to);
                sourceStart = pools.start(from);
                sourceBytes = pools.end(from) - sourceStart;
                destinationStart = pools.start(to);
                destinationBytes = pools.end(to) - destinationStart;
            }
            if (Math.abs(source - destination) < length) {
                throw refusal(block, "its source and its destination overlap");
            }
        }
        return BatchCheck.hold(pools, touched);
    }

    private static boolean isWithin(long offset, long length, long bytes) {
        return offset >= 0 && offset <= bytes - length;
    }

    private int entry(int block, String side, long address, long length) {
        int entry = pools.find(address);
        if (entry < 0) {
            throw refusal(block, "its " + side + " is in no registered pool");
        }
        if (!pools.covers(entry, address, length)) {
            throw refusal(block, "its " + side + " passes the end of " + pools.owner(entry));
        }
        if (memory[entry] == null) {
            memory[entry] = segment(block, pools.owner(entry));
        }
        return entry;
    }

    private MemorySegment segment(int block, Pool pool) {
        MemorySegment segment;
        try {
            segment = pool.segment();
        } catch (IllegalStateException noSegment) {
            throw refusal(block, "the processor cannot reach it: " + noSegment.getMessage());
        }
        if (!segment.isAccessibleBy(Thread.currentThread())) {
            throw refusal(block, pool + " is memory of another thread's arena");
        }
        return segment;
    }

    private void checkWritable(int block, int to) {
        MemorySegment destination = memory[to];
        if (destination != null && destination.isReadOnly()) {
            throw refusal(block, pools.owner(to) + " is read-only");
        }
    }

    private IllegalArgumentException refusal(int block, String reason) {
        return new IllegalArgumentException(
                "block %d of %d (from 0x%x to 0x%x, %d bytes) is refused: %s; nothing was copied"
                        .formatted(
                                block,
                                batch.size(),
                                batch.localAddress(block),
                                batch.remoteAddress(block),
                                batch.length(block),
                                reason));
    }

    /** One, if the memory is one thread's own. */
    private int tasks() {
        long wanted = Math.min(batch.bytes() / BYTES_A_TASK, batch.size());
        if (wanted < 2) {
            return 1;
        }
        // Any other thread stands for those of the common pool.
        Thread other = Thread.ofVirtual().unstarted(() -> {});
        for (MemorySegment segment : memory) {
            if (segment != null && !segment.isAccessibleBy(other)) {
                return 1;
            }
        }
        return (int) Math.min(wanted, 4L * Runtime.getRuntime().availableProcessors());
    }

    private void copy(int firstBlock, int endBlock) {
        long[] sources = batch.localAddresses();
        long[] destinations = batch.remoteAddresses();
        long[] lengths = batch.lengths();
        // The memory that held the last block.
        MemorySegment source = MemorySegment.NULL;
        MemorySegment destination = MemorySegment.NULL;
        long sourceStart = 0;
        long destinationStart = 0;
        for (int block = firstBlock; block < endBlock; block++) {
            long length = lengths[block];
            if (!isWithin(sources[block] - sourceStart, length, source.byteSize())) {
                source = memoryAt(sources[block]);
                sourceStart = source.address();
            }
            if (!isWithin(destinations[block] - destinationStart, length, destination.byteSize())) {
                destination = memoryAt(destinations[block]);
                destinationStart = destination.address();
            }
            MemorySegment.copy(
                    source,
                    sources[block] - sourceStart,
                    destination,
                    destinations[block] - destinationStart,
                    length);
        }
    }

    private MemorySegment memoryAt(long address) {
        int entry = pools.find(address);
        MemorySegment segment = entry < 0 ? null : memory[entry];
        if (segment == null) {
            throw new IllegalStateException("the batch was changed while it was copied");
        }
        return segment;
    }
}
