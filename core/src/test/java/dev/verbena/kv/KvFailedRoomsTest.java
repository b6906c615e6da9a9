package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Set;
import org.junit.jupiter.api.Test;

/** Each rank that was missing is told once, of its own side, for a while; memory is bounded. */
class KvFailedRoomsTest {
    private static final KvLayout LAYOUT = new KvLayout.Latent(1, 8, 1, 4);
    private static final TensorParallel FOUR = new TensorParallel(4, 1);

    private final KvFailedRooms rooms = new KvFailedRooms();

    @Test
    void tellsEachMissingRankOnce() {
        rooms.add(7, FOUR, Set.of(1, 3), "gone", 0);

        assertThat(rooms.take(7, rank(FOUR, 0), -1, 1)).isNull();
        assertThat(rooms.take(8, rank(FOUR, 1), -1, 1)).isNull();
        assertThat(rooms.take(7, rank(new TensorParallel(2, 1), 1), -1, 1)).isNull();
        assertThat(rooms.take(7, rank(FOUR, 1), -1, 1)).isEqualTo("gone");
        assertThat(rooms.take(7, rank(FOUR, 1), -1, 1)).isNull();
        assertThat(rooms.count()).isOne();
        assertThat(rooms.take(7, rank(FOUR, 3), -1, 1)).isEqualTo("gone");
        assertThat(rooms.count()).isZero();
    }

    @Test
    void doesNotRememberRoomsThatAllHaveAnnounced() {
        rooms.add(7, FOUR, Set.of(), "gone", 0);

        assertThat(rooms.count()).isZero();
    }

    @Test
    void doesNotTellWhoHasConnectedSince() {
        rooms.add(7, FOUR, Set.of(1), "gone", 5);

        assertThat(rooms.take(7, rank(FOUR, 1), 6, 7)).isNull();
        assertThat(rooms.take(7, rank(FOUR, 1), 5, 7)).isEqualTo("gone");
    }

    @Test
    void forgetsAfterAWhile() {
        long late = KvFailedRooms.KEPT_NANOS + 1;
        rooms.add(7, FOUR, Set.of(1, 2), "gone", 0);

        assertThat(rooms.take(7, rank(FOUR, 1), -1, late - 1)).isEqualTo("gone");
        assertThat(rooms.take(7, rank(FOUR, 2), -1, late)).isNull();

        rooms.add(8, FOUR, Set.of(1), "gone", late);
        assertThat(rooms.count()).isOne();
    }

    @Test
    void forgetsTheOldestOfTooMany() {
        for (int room = 0; room <= KvFailedRooms.MAX_ROOMS; room++) {
            rooms.add(room, FOUR, Set.of(1), "gone", room);
        }

        assertThat(rooms.count()).isEqualTo(KvFailedRooms.MAX_ROOMS);
        assertThat(rooms.take(0, rank(FOUR, 1), -1, 0)).isNull();
        assertThat(rooms.take(1, rank(FOUR, 1), -1, 0)).isEqualTo("gone");
    }

    private static KvCache rank(TensorParallel ranks, int rank) {
        return KvCache.of(LAYOUT, LAYOUT.pools(0, 8)).rank(ranks, rank);
    }
}
