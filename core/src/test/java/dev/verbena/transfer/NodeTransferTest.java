package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.memory.Pool;
import dev.verbena.memory.RemotePool;
import dev.verbena.verbs.DeviceTest;
import org.junit.jupiter.api.Test;

/** Transfers over a real device. */
@DeviceTest
class NodeTransferTest extends NodeTransfers {
    NodeTransferTest() {
        super(TwoNodes.Transport.VERBS);
    }

    /**
     * In a quarter of a million work requests, as a gap at the peer follows each four blocks. A
     * slot of 384 bytes for each would be 96 MB, and the smallest of objects for each block 16 MB:
     * the bounds are half of that.
     */
    @Test
    void aMillionBlocksGoInOneBatchAndTakeNoMemory() throws Exception {
        int blocks = 1 << 20;
        int block = 8;
        try (TwoNodes nodes = TwoNodes.of(2)) {
            Pool here = nodes.source("here", (long) blocks * block, 7);
            Pool there = nodes.target("there", (long) blocks * block * 2);
            Peer peer = nodes.connect();
            RemotePool remote = peer.awaitPool("there", SOON);
            TransferBatch batch = gathered(here, remote, blocks, block);
            TransferPlan plan = peer.plan(batch);
            assertThat(plan.scatterGatherEntries()).isEqualTo(blocks);
            assertThat(plan.workRequests()).isEqualTo(blocks / 4);
            // Compiles what is hot, and touches what is touched at all.
            peer.write(gathered(here, remote, blocks / 4, block)).await();

            MemoryWatch watch = new MemoryWatch();
            Transfer transfer = peer.write(batch);
            long done = 0;
            while (!transfer.poll()) {
                if (transfer.bytesDone() - done > batch.bytes() / 32) {
                    done = transfer.bytesDone();
                    watch.look();
                }
            }

            assertThat(watch.allocated()).isLessThan(8L * blocks);
            TwoNodes.assertSame(batch, here, there);
            assertThat(watch.looks()).as("all along its way").isGreaterThan(20);
            assertThat(watch.residentGrowth()).isLessThan(blocks / 4 * (128 + 16 * 16) / 2);
        }
    }
}
