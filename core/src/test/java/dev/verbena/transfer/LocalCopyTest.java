package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import dev.verbena.memory.PoolDouble;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Copies within a node move the right bytes and no others, or refuse before the first byte. */
class LocalCopyTest {
    private static final int BYTES = 8 << 20;
    private static final long NOWHERE = 0x10;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment source = arena.allocate(BYTES);
    private final MemorySegment staging = arena.allocate(BYTES);
    private final Pool sourcePool = PoolDouble.over("kv", source);
    private final Pool stagingPool = PoolDouble.over("staging", staging);

    /** The source is in two regions, so that blocks over their edge are met too. */
    private final AddressMap<Pool> map =
            AddressMap.of(
                    List.of(
                            new AddressMap.Entry<>(source.address(), BYTES / 2, 1, sourcePool),
                            new AddressMap.Entry<>(
                                    source.address() + BYTES / 2, BYTES / 2, 2, sourcePool),
                            new AddressMap.Entry<>(staging.address(), BYTES, 3, stagingPool)));

    @AfterEach
    void free() {
        arena.close();
    }

    @Test
    void gathersAndScattersByteForByteWhetherFewOrManyBytes() {
        new Random(7).ints(BYTES).forEach(new Filler(source)::put);

        for (int slice : new int[] {1, 7, 64, 256, 4096}) {
            staging.fill((byte) 0);
            int stride = 2 * slice;
            int blocks = BYTES / stride;
            TransferBatch batch = new TransferBatch(blocks);
            for (int block = 0; block < blocks; block++) {
                batch.add(
                        source.address() + (long) block * stride,
                        staging.address() + (long) block * slice,
                        slice);
            }

            LocalCopy.run(batch, map);

            for (int block = 0; block < blocks; block++) {
                long from = (long) block * stride;
                long to = (long) block * slice;
                assertThat(
                                MemorySegment.mismatch(
                                        source, from, from + slice, staging, to, to + slice))
                        .as("block %d of %d bytes", block, slice)
                        .isEqualTo(-1);
            }
            long copied = (long) blocks * slice;
            assertThat(staging.asSlice(copied).mismatch(zeros(BYTES - copied)))
                    .as("bytes behind the last block of %d bytes", slice)
                    .isEqualTo(-1);
        }
        assertNothingHeld();
    }

    @Test
    void aBlockMayCrossTheRegionsOfItsPool() {
        source.fill((byte) 5);

        LocalCopy.run(batch(source.address() + BYTES / 2 - 4, staging.address(), 8), map);

        assertThat(staging.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(0x0505050505050505L);
    }

    @Test
    void anEmptyBatchCopiesNothing() {
        LocalCopy.run(new TransferBatch(), map);

        assertNothingHeld();
    }

    @Test
    void refusesTheWholeBatchForOneBlockAndNamesIt() {
        source.fill((byte) 1);
        refuses(NOWHERE, staging.address(), 1, "source is in no registered pool");
        refuses(source.address(), NOWHERE, 1, "destination is in no registered pool");
        refuses(source.address() + 1, staging.address(), BYTES, "source passes the end");
        refuses(source.address(), staging.address() + 1, BYTES, "destination passes the end");
        refuses(source.address(), source.address() + 7, 8, "overlap");
        refuses(source.address() + BYTES / 2, source.address() + BYTES / 2 - 1, 2, "overlap");
    }

    /** The region that held one block is tried first for the next: by its edges, to the byte. */
    @Test
    void aBlockBehindOneThatFitsIsCheckedToTheByte() {
        long sourceEnd = source.address() + BYTES;
        long stagingEnd = staging.address() + BYTES;
        for (int length : new int[] {2, 8}) {
            refuses(sourceEnd - length + 1, staging.address(), length, "source passes the end");
            refuses(source.address(), stagingEnd - length + 1, length, "destination passes the");
            refuses(source.address() - 1, staging.address(), length, "its source ");
            refuses(source.address(), staging.address() - 1, length, "its destination ");
            LocalCopy.run(
                    batch(sourceEnd - 8, stagingEnd - 8, 8)
                            .add(sourceEnd - length, stagingEnd - length, length)
                            .add(source.address(), staging.address(), length),
                    map);
        }
        assertNothingHeld();
    }

    @Test
    void blocksThatGoToAndFroBetweenPoolsAreCopiedFromAndToTheRightOnes() {
        new Random(8).ints(BYTES).forEach(new Filler(source)::put);
        MemorySegment[] from = {source, source.asSlice(BYTES / 2)};
        MemorySegment third = arena.allocate(BYTES);
        MemorySegment[] to = {staging, third};
        AddressMap<Pool> pools =
                AddressMap.of(
                        List.of(
                                entry(sourcePool),
                                entry(stagingPool),
                                entry(PoolDouble.over("third", third))));
        TransferBatch batch = new TransferBatch();
        for (int block = 0; block < 8; block++) {
            batch.add(
                    from[block % 2].address() + block * 64L,
                    to[block / 2 % 2].address() + block * 64L,
                    64);
        }

        LocalCopy.run(batch, pools);

        for (int block = 0; block < 8; block++) {
            long at = block * 64L;
            assertThat(from[block % 2].asSlice(at, 64).mismatch(to[block / 2 % 2].asSlice(at, 64)))
                    .as("block %d", block)
                    .isEqualTo(-1);
            assertThat(to[1 - block / 2 % 2].asSlice(at, 64).mismatch(zeros(64)))
                    .as("the other pool at block %d", block)
                    .isEqualTo(-1);
        }
    }

    @Test
    void refusesMemoryThatTheThreadCannotReachOrWrite() {
        MemorySegment readOnly = arena.allocate(64).asReadOnly();
        Pool constants = PoolDouble.over("constants", readOnly);
        Pool device = PoolDouble.at("gpu", 0x7000_0000_0000L, 64);
        try (Arena confined = Arena.ofConfined()) {
            Pool own = PoolDouble.over("own", confined.allocate(64));
            AddressMap<Pool> pools =
                    AddressMap.of(List.of(entry(constants), entry(device), entry(own)));

            refuses(pools, own.address(), constants.address(), "read-only");
            refuses(pools, device.address(), own.address(), "has no segment");
            assertThatCode(() -> LocalCopy.run(batch(constants.address(), own.address(), 8), pools))
                    .doesNotThrowAnyException();
            CompletableFuture.runAsync(() ->
                            refuses(
                                    pools,
                                    constants.address(),
                                    own.address(),
                                    "another thread's arena"))
                    .join();
        }
    }

    @Test
    void manyBytesOfOneThreadsMemoryAreCopiedByThatThread() {
        try (Arena confined = Arena.ofConfined()) {
            MemorySegment mine = confined.allocate(BYTES);
            mine.fill((byte) 3);
            Pool own = PoolDouble.over("own", mine);
            AddressMap<Pool> pools = AddressMap.of(List.of(entry(own), entry(stagingPool)));
            TransferBatch batch = new TransferBatch();
            for (int offset = 0; offset < BYTES; offset += 4096) {
                batch.add(mine.address() + offset, staging.address() + offset, 4096);
            }

            LocalCopy.run(batch, pools);

            assertThat(staging.mismatch(mine)).isEqualTo(-1);
        }
    }

    /** What can be found out before is not left to the copy, which would be half done by then. */
    @Test
    void aReadOnlyDestinationIsFoundBeforeTheFirstByte() {
        Pool constants = PoolDouble.over("constants", arena.allocate(64).asReadOnly());
        AddressMap<Pool> pools =
                AddressMap.of(List.of(entry(sourcePool), entry(stagingPool), entry(constants)));
        source.fill((byte) 1);

        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        LocalCopy.run(
                                batch(source.address(), staging.address(), 8)
                                        .add(source.address(), constants.address(), 8),
                                pools))
                .withMessageContaining("block 1 of 2")
                .withMessageContaining("read-only");
        assertThat(staging.mismatch(zeros(BYTES))).as("bytes copied").isEqualTo(-1);
    }

    @Test
    void aClosedPoolIsNeitherCopiedToNorFrom() {
        PoolDouble.close(stagingPool);

        assertThatIllegalStateException()
                .isThrownBy(() -> LocalCopy.run(batch(source.address(), staging.address(), 8), map))
                .withMessageContaining("staging");
        assertThatIllegalStateException()
                .isThrownBy(() -> LocalCopy.run(batch(staging.address(), source.address(), 8), map))
                .withMessageContaining("staging");
        assertThatCode(() -> PoolDouble.close(sourcePool)).doesNotThrowAnyException();
    }

    private void refuses(long from, long to, long length, String reason) {
        staging.fill((byte) 0);
        TransferBatch batch =
                new TransferBatch()
                        .add(source.address(), staging.address() + 64, 8)
                        .add(from, to, length);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LocalCopy.run(batch, map))
                .withMessageContaining("block 1 of 2")
                .withMessageContaining(reason)
                .withMessageContaining("nothing was copied");
        assertThat(staging.mismatch(zeros(BYTES))).as("bytes copied").isEqualTo(-1);
    }

    private static void refuses(AddressMap<Pool> pools, long from, long to, String reason) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LocalCopy.run(batch(from, to, 8), pools))
                .withMessageContaining(reason);
    }

    private static TransferBatch batch(long from, long to, long length) {
        return new TransferBatch().add(from, to, length);
    }

    private static AddressMap.Entry<Pool> entry(Pool pool) {
        return new AddressMap.Entry<>(pool.address(), pool.lengthBytes(), 1, pool);
    }

    private MemorySegment zeros(long bytes) {
        return arena.allocate(bytes);
    }

    private void assertNothingHeld() {
        assertThatCode(() -> PoolDouble.close(sourcePool)).doesNotThrowAnyException();
        assertThatCode(() -> PoolDouble.close(stagingPool)).doesNotThrowAnyException();
    }

    /** Fills a segment with the low bytes of numbers. */
    private static final class Filler {
        private final MemorySegment segment;
        private long offset;

        Filler(MemorySegment segment) {
            this.segment = segment;
        }

        void put(int value) {
            segment.set(ValueLayout.JAVA_BYTE, offset++, (byte) value);
        }
    }
}
