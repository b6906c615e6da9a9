package dev.verbena.transfer;

import dev.verbena.memory.Pool;
import dev.verbena.memory.RemotePool;
import dev.verbena.verbs.Access;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Transfers over TCP, which need no device. The time limit is a guard against hanging. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class TcpTransferTest extends NodeTransfers {
    TcpTransferTest() {
        super(TwoNodes.Transport.TCP);
    }

    @Test
    void aMillionBlocksGoInOneBatch() throws Exception {
        int blocks = 1 << 20;
        try (TwoNodes nodes = TwoNodes.of(TwoNodes.Transport.TCP, 2)) {
            Pool here = nodes.source("here", 8L * blocks, 7);
            Pool there = nodes.target("there", 16L * blocks);
            Peer peer = nodes.connect();
            RemotePool remote = peer.awaitPool("there", SOON);
            TransferBatch batch = gathered(here, remote, blocks, 8);

            peer.write(batch).await();

            TwoNodes.assertSame(batch, here, there);
        }
    }

    /** Each side's sockets are full of what the other should take: neither waits for the other. */
    @Test
    void writesAndReadsBothWaysAtOnceDoNotLockUp() throws Exception {
        int bytes = 64 << 20;
        try (TwoNodes nodes = TwoNodes.of(TwoNodes.Transport.TCP, 1)) {
            Pool here = nodes.source("here", bytes, 1);
            Pool there = nodes.target("there", bytes);
            Pool back =
                    nodes.near()
                            .registry()
                            .allocate("back", bytes, Access.REMOTE_WRITE, Access.REMOTE_READ);
            Pool mine = TwoNodes.fill(nodes.far().registry().allocate("mine", bytes), 2);
            Pool sink = nodes.far().registry().allocate("sink", bytes, Access.LOCAL_WRITE);
            Peer far = nodes.connect();
            Peer near = nodes.accepted();
            int half = bytes / 2;
            TransferBatch out =
                    new TransferBatch()
                            .add(here.address(), far.awaitPool("there", SOON).address(), bytes);
            TransferBatch in =
                    new TransferBatch()
                            .add(mine.address(), near.awaitPool("back", SOON).address(), half);
            TransferBatch fetch =
                    new TransferBatch()
                            .add(
                                    sink.address(),
                                    near.awaitPool("back", SOON).address() + half,
                                    half);

            Transfer writing = far.write(out);
            Transfer answering = near.write(in);
            Transfer fetching = near.read(fetch);
            writing.await();
            answering.await();
            fetching.await();

            TwoNodes.assertSame(out, here, there);
            TwoNodes.assertSame(in, mine, back);
            TwoNodes.assertSame(fetch, sink, back);
        }
    }
}
