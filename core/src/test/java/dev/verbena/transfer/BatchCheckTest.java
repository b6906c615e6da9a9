package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import dev.verbena.memory.PoolDescriptor;
import dev.verbena.memory.PoolDouble;
import dev.verbena.memory.RemotePool;
import dev.verbena.verbs.Access;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/**
 * A batch is checked whole: whichever block is wrong, and wherever it is, the batch is refused with
 * that block's number and the reason, and no pool stays held. Of three blocks each in turn is bad.
 */
class BatchCheckTest {
    private static final long LOCAL = 0x10_000;
    private static final long READ_ONLY = 0x20_000;
    private static final long REMOTE = 0x90_000;
    private static final long REMOTE_WRITE_ONLY = 0xa0_000;
    private static final int BYTES = 0x1000;
    private static final int BLOCKS = 3;

    private final Pool local = PoolDouble.at("kv", LOCAL, BYTES, Access.LOCAL_WRITE);
    private final Pool readOnly = PoolDouble.at("weights", READ_ONLY, BYTES);

    /** Two regions, so that ranges over the edge between them are met too. */
    private final AddressMap<Pool> localMap =
            AddressMap.of(
                    List.of(
                            new AddressMap.Entry<>(LOCAL, BYTES / 2, 1, local),
                            new AddressMap.Entry<>(LOCAL + BYTES / 2, BYTES / 2, 2, local),
                            new AddressMap.Entry<>(READ_ONLY, BYTES, 3, readOnly)));

    private final AddressMap<RemotePool> remoteMap =
            RemotePool.map(
                    List.of(
                            remote("pages", REMOTE, Access.REMOTE_WRITE, Access.REMOTE_READ),
                            remote("slots", REMOTE_WRITE_ONLY, Access.REMOTE_WRITE)));

    @Test
    void holdsEachPoolOnceAndReleasesIt() {
        TransferBatch batch =
                new TransferBatch()
                        .add(LOCAL, REMOTE, 8)
                        .add(READ_ONLY, REMOTE + 100, 8)
                        .add(LOCAL + BYTES / 2 - 4, REMOTE + 200, 8)
                        .add(LOCAL + BYTES / 2, REMOTE + 300, 8);

        List<Pool> held = check(batch, Direction.WRITE).holdPools();

        assertThat(held).containsExactlyInAnyOrder(local, readOnly);
        assertThatIllegalStateException().isThrownBy(() -> PoolDouble.close(local));
        assertThatIllegalStateException().isThrownBy(() -> PoolDouble.close(readOnly));
        BatchCheck.release(held);
        assertNothingHeld();
    }

    @Test
    void anEmptyBatchHoldsNothing() {
        assertThat(check(new TransferBatch(), Direction.WRITE).holdPools()).isEmpty();
    }

    @Test
    void rangesMayReachTheLastByteAndCrossRegions() {
        TransferBatch batch = new TransferBatch().add(LOCAL, REMOTE, BYTES);

        BatchCheck.release(check(batch, Direction.READ).holdPools());
    }

    @Test
    void refusesALocalAddressOutsideAllPools() {
        refuses(Direction.WRITE, LOCAL - 1, REMOTE, 1, "local address", "no registered pool");
        refuses(Direction.WRITE, LOCAL + BYTES, REMOTE, 1, "local address");
        refuses(Direction.WRITE, 0, REMOTE, 1, "local address");
        refuses(Direction.WRITE, Long.MIN_VALUE, REMOTE, 1, "local address");
    }

    @Test
    void refusesALocalRangeThatPassesItsPool() {
        refuses(Direction.WRITE, LOCAL + BYTES - 7, REMOTE, 8, "local range", "pool 'kv'");
        refuses(Direction.WRITE, LOCAL, REMOTE, 1L << 62, "local range");
    }

    @Test
    void refusesARemoteAddressOutsideAllPools() {
        refuses(Direction.WRITE, LOCAL, REMOTE - 1, 1, "remote address", "peer offers");
        refuses(Direction.READ, LOCAL, 0, 1, "remote address");
    }

    @Test
    void refusesARemoteRangeThatPassesItsPool() {
        refuses(Direction.WRITE, LOCAL, REMOTE + BYTES - 7, 8, "remote range", "'pages'");
    }

    @Test
    void refusesToReadFromAPoolThatDoesNotGrantIt() {
        refuses(Direction.READ, LOCAL, REMOTE_WRITE_ONLY, 8, "'slots'", "REMOTE_READ");
    }

    @Test
    void refusesToReadIntoAPoolThatTheDeviceMayNotWrite() {
        refuses(Direction.READ, READ_ONLY, REMOTE, 8, "'weights'", "cannot be written");
    }

    /** The access of a pool is looked up where the pool changes: also back to one seen before. */
    @Test
    void checksAccessAlsoWhereBlocksAlternateBetweenPools() {
        TransferBatch batch =
                new TransferBatch()
                        .add(LOCAL, REMOTE, 8)
                        .add(LOCAL, REMOTE + 8, 8)
                        .add(LOCAL, REMOTE_WRITE_ONLY, 8);

        assertThatIllegalArgumentException()
                .isThrownBy(() -> check(batch, Direction.READ).holdPools())
                .withMessageContaining("block 2 of 3");
    }

    @Test
    void aClosedPoolLeavesNoOtherHeld() {
        PoolDouble.close(readOnly);
        TransferBatch batch =
                new TransferBatch().add(LOCAL, REMOTE, 8).add(READ_ONLY, REMOTE + 8, 8);

        assertThatIllegalStateException()
                .isThrownBy(() -> check(batch, Direction.WRITE).holdPools())
                .withMessageContaining("weights");
        assertThatCode(() -> PoolDouble.close(local)).doesNotThrowAnyException();
    }

    @Test
    void listsRefusalsUpToALimit() {
        TransferBatch batch = new TransferBatch();
        for (int i = 0; i < 10; i++) {
            batch.add(i % 2 == 0 ? LOCAL : 0, REMOTE, 8);
        }

        assertThat(check(batch, Direction.WRITE).refusals(3))
                .extracting(TransferPlan.Refusal::block)
                .containsExactly(1, 3, 5);
    }

    /** Puts the bad block at each place among good ones. */
    private void refuses(
            Direction direction, long local, long remote, long length, String... reasons) {
        for (int bad = 0; bad < BLOCKS; bad++) {
            TransferBatch batch = new TransferBatch();
            for (int block = 0; block < BLOCKS; block++) {
                if (block == bad) {
                    batch.add(local, remote, length);
                } else {
                    batch.add(LOCAL + 16 * block, REMOTE + 16 * block, 8);
                }
            }
            BatchCheck check = check(batch, direction);
            assertThatIllegalArgumentException()
                    .isThrownBy(check::holdPools)
                    .withMessageContaining("block " + bad + " of " + BLOCKS)
                    .withMessageContaining("nothing of the batch was posted")
                    .satisfies(e -> assertThat(e.getMessage()).contains(reasons));
            assertThat(check.refusals(5)).hasSize(1);
            assertThat(check.refusals(5).getFirst().block()).isEqualTo(bad);
            assertThat(check.refusals(5).getFirst().reason()).contains(reasons);
        }
        assertNothingHeld();
    }

    private void assertNothingHeld() {
        for (Pool pool : List.of(local, readOnly)) {
            assertThatIllegalStateException().isThrownBy(pool::release);
        }
    }

    private BatchCheck check(TransferBatch batch, Direction direction) {
        return new BatchCheck(batch, direction, localMap, remoteMap);
    }

    private static RemotePool remote(String name, long address, Access... access) {
        return new RemotePool(
                new PoolDescriptor(
                        name,
                        1,
                        address,
                        BYTES,
                        Set.of(access),
                        List.of(new PoolDescriptor.Region(BYTES, 9))));
    }
}
