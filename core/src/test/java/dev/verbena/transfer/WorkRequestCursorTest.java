package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import dev.verbena.memory.PoolDescriptor;
import dev.verbena.memory.PoolDouble;
import dev.verbena.memory.RemotePool;
import dev.verbena.transfer.BatchModel.Piece;
import dev.verbena.transfer.BatchModel.Request;
import dev.verbena.verbs.Access;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/**
 * Work requests are exactly those that a walk over single bytes finds: each byte once and in order,
 * no edge of a region crossed on either side, no limit passed, and no cut where none is needed.
 *
 * <p>Regions are of tens of bytes and blocks of up to as many, so that every batch meets edges;
 * twelve thousand seeds give each pair of limits about a hundred of them.
 */
class WorkRequestCursorTest {
    private static final int SEEDS = 12_000;
    private static final long LOCAL = 0x1000;
    private static final long REMOTE = 0x9000;
    private static final int LOCAL_KEY = 7;
    private static final int REMOTE_KEY = 8;

    @Test
    void findsWhatAWalkOverSingleBytesFinds() {
        long requests = 0;
        for (long seed = 0; seed < SEEDS; seed++) {
            RandomBatches random = new RandomBatches(seed);
            int maxSge = 1 + (int) (seed % 8);
            long maxMessage = 1 + seed / 8 % 70;

            List<Request> found = BatchModel.requests(cursor(random, maxSge, maxMessage));

            assertThat(found)
                    .as("seed %d", seed)
                    .isEqualTo(
                            BatchModel.requests(
                                    random.batch,
                                    random.localMap,
                                    random.remoteMap,
                                    maxSge,
                                    maxMessage));
            requests += found.size();
        }
        assertThat(requests).as("requests compared").isGreaterThan(9L * SEEDS);
    }

    @Test
    void findsTheRestAgainFromWhereverARequestBegins() {
        for (long seed = 0; seed < SEEDS / 20; seed++) {
            RandomBatches random = new RandomBatches(seed);
            int maxSge = 1 + (int) (seed % 8);
            long maxMessage = 1 + seed / 8 % 70;
            List<Request> all = BatchModel.requests(cursor(random, maxSge, maxMessage));
            WorkRequestCursor cursor = cursor(random, maxSge, maxMessage);
            BatchModel.requests(cursor);
            for (int i = all.size() - 1; i >= 0; i--) {
                cursor.seek(all.get(i).firstBlock(), all.get(i).offset());

                assertThat(BatchModel.requests(cursor))
                        .as("seed %d from %d", seed, i)
                        .isEqualTo(all.subList(i, all.size()));
            }
        }
    }

    /** What is taken at once must be what would be found one by one. */
    @Test
    void singlesAreRequestsOfOneBlockAndOnePiece() {
        int counted = 0;
        for (long seed = 0; seed < 2000; seed++) {
            RandomBatches random = new RandomBatches(seed);
            int maxSge = 1 + (int) (seed % 3);
            long maxMessage = 1 + seed % 40;
            WorkRequestCursor cursor = cursor(random, maxSge, maxMessage);
            WorkRequestCursor ahead = cursor(random, maxSge, maxMessage);
            do {
                int block = cursor.block();
                int limit = (int) (seed % 7);
                int singles = cursor.singles(limit, 64);
                assertThat(singles).isLessThanOrEqualTo(limit);
                assertThat(cursor.singleBytes()).isLessThanOrEqualTo(64);
                ahead.seek(block, cursor.offset());
                long bytes = 0;
                for (int i = 0; i < singles; i++) {
                    assertThat(ahead.next()).isTrue();
                    assertThat(ahead.firstBlock()).isEqualTo(block + i);
                    assertThat(ahead.firstOffset()).isZero();
                    assertThat(ahead.offset()).isZero();
                    assertThat(ahead.block()).isEqualTo(block + i + 1);
                    assertThat(ahead.pieces()).isEqualTo(1);
                    assertThat(ahead.pieceKey(0))
                            .isEqualTo(
                                    random.localMap.key(
                                            random.localMap.find(
                                                    random.batch.localAddress(block))));
                    assertThat(ahead.remoteKey())
                            .isEqualTo(
                                    random.remoteMap.key(
                                            random.remoteMap.find(
                                                    random.batch.remoteAddress(block))));
                    bytes += ahead.bytes();
                }
                assertThat(cursor.singleBytes()).isEqualTo(bytes);
                counted += singles;
            } while (cursor.next());
        }
        assertThat(counted).as("there were some").isGreaterThan(500);
    }

    @Test
    void blocksAdjacentOnBothSidesAreOnePiece() {
        TransferBatch batch =
                new TransferBatch().add(LOCAL, REMOTE, 10).add(LOCAL + 10, REMOTE + 10, 5);

        assertThat(requests(batch, 4, 100)).containsExactly(request(0, 0, piece(0, 15)));
    }

    @Test
    void blocksAdjacentAtThePeerOnlyShareARequest() {
        TransferBatch batch =
                new TransferBatch().add(LOCAL, REMOTE, 10).add(LOCAL + 50, REMOTE + 10, 5);

        assertThat(requests(batch, 4, 100))
                .containsExactly(request(0, 0, piece(0, 10), piece(50, 5)));
    }

    @Test
    void blocksAdjacentOnThisSideOnlyAreRequestsOfTheirOwn() {
        TransferBatch batch =
                new TransferBatch().add(LOCAL, REMOTE, 10).add(LOCAL + 10, REMOTE + 50, 5);

        List<Request> found = requests(batch, 4, 100);

        assertThat(found).hasSize(2);
        assertThat(found.get(1).remoteAddress()).isEqualTo(REMOTE + 50);
    }

    @Test
    void aRequestTakesAsManyPiecesAsAreAllowed() {
        TransferBatch batch = new TransferBatch();
        for (int i = 0; i < 5; i++) {
            batch.add(LOCAL + 20 * i, REMOTE + 4 * i, 4);
        }

        assertThat(requests(batch, 2, 100))
                .extracting(r -> r.pieces().size())
                .containsExactly(2, 2, 1);
    }

    @Test
    void aBlockLongerThanAMessageIsSplit() {
        TransferBatch batch = new TransferBatch().add(LOCAL, REMOTE, 25);

        assertThat(requests(batch, 4, 10))
                .containsExactly(
                        request(0, 0, piece(0, 10)),
                        request(10, 10, piece(10, 10)),
                        request(20, 20, piece(20, 5)));
    }

    @Test
    void anEmptyBatchHasNoRequest() {
        WorkRequestCursor cursor =
                new WorkRequestCursor(new TransferBatch(), localMap(), remoteMap(), 4, 100);

        assertThat(cursor.atEnd()).isTrue();
        assertThat(cursor.next()).isFalse();
    }

    @Test
    void saysWhereTheNextRequestBegins() {
        TransferBatch batch = new TransferBatch().add(LOCAL, REMOTE, 25).add(LOCAL + 90, REMOTE, 5);
        WorkRequestCursor cursor = new WorkRequestCursor(batch, localMap(), remoteMap(), 4, 10);

        cursor.next();
        assertThat(cursor.block()).isZero();
        assertThat(cursor.offset()).isEqualTo(10);
        cursor.next();
        cursor.next();
        assertThat(cursor.block()).isEqualTo(1);
        assertThat(cursor.offset()).isZero();
        cursor.next();
        assertThat(cursor.atEnd()).isTrue();
    }

    private static WorkRequestCursor cursor(RandomBatches random, int maxSge, long maxMessage) {
        return new WorkRequestCursor(
                random.batch, random.localMap, random.remoteMap, maxSge, maxMessage);
    }

    private static List<Request> requests(TransferBatch batch, int maxSge, long maxMessage) {
        return BatchModel.requests(
                new WorkRequestCursor(batch, localMap(), remoteMap(), maxSge, maxMessage));
    }

    private static Request request(long remoteOffset, long blockOffset, Piece... pieces) {
        return new Request(REMOTE + remoteOffset, REMOTE_KEY, List.of(pieces), 0, blockOffset);
    }

    private static Piece piece(long offset, long length) {
        return new Piece(LOCAL + offset, length, LOCAL_KEY);
    }

    private static AddressMap<Pool> localMap() {
        Pool pool = PoolDouble.at("local", LOCAL, 100);
        return AddressMap.of(List.of(new AddressMap.Entry<>(LOCAL, 100, LOCAL_KEY, pool)));
    }

    private static AddressMap<RemotePool> remoteMap() {
        return RemotePool.map(
                List.of(
                        new RemotePool(
                                new PoolDescriptor(
                                        "remote",
                                        1,
                                        REMOTE,
                                        100,
                                        Set.of(Access.REMOTE_WRITE),
                                        List.of(new PoolDescriptor.Region(100, REMOTE_KEY))))));
    }
}
