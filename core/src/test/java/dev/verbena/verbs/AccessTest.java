package dev.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.bindings.ibverbs.ibverbs_constants;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Access becomes the flags of the header, with what devices demand beside it, and back. */
class AccessTest {
    private static final Map<Access, Integer> BITS =
            Map.of(
                    Access.LOCAL_WRITE, ibverbs_constants.IBV_ACCESS_LOCAL_WRITE(),
                    Access.REMOTE_WRITE, ibverbs_constants.IBV_ACCESS_REMOTE_WRITE(),
                    Access.REMOTE_READ, ibverbs_constants.IBV_ACCESS_REMOTE_READ(),
                    Access.REMOTE_ATOMIC, ibverbs_constants.IBV_ACCESS_REMOTE_ATOMIC(),
                    Access.WINDOW_BIND, ibverbs_constants.IBV_ACCESS_MW_BIND(),
                    Access.ON_DEMAND, ibverbs_constants.IBV_ACCESS_ON_DEMAND(),
                    Access.HUGE_PAGES, ibverbs_constants.IBV_ACCESS_HUGETLB(),
                    Access.RELAXED_ORDERING, ibverbs_constants.IBV_ACCESS_RELAXED_ORDERING());

    @Test
    void flagsAreThoseOfTheHeaderPlusLocalWriteForRemoteWriters() {
        for (Access access : Access.values()) {
            boolean implies = access == Access.REMOTE_WRITE || access == Access.REMOTE_ATOMIC;
            int expected = BITS.get(access) | (implies ? BITS.get(Access.LOCAL_WRITE) : 0);
            assertThat(Access.flags(Set.of(access))).isEqualTo(expected);
        }
    }

    @Test
    void noAccessHasNoFlag() {
        assertThat(Access.flags(Set.of())).isZero();
        assertThat(Access.of(0)).isEmpty();
    }

    @Test
    void everySetComesBackWithWhatItImplies() {
        for (int bits = 0; bits < 1 << Access.values().length; bits++) {
            Set<Access> set = EnumSet.noneOf(Access.class);
            for (Access access : Access.values()) {
                if ((bits & 1 << access.ordinal()) != 0) {
                    set.add(access);
                }
            }
            Set<Access> back = Access.of(Access.flags(set));
            if (set.contains(Access.REMOTE_WRITE) || set.contains(Access.REMOTE_ATOMIC)) {
                set.add(Access.LOCAL_WRITE);
            }
            assertThat(back).isEqualTo(set);
        }
    }

    @Test
    void leavesOutBitsItDoesNotKnow() {
        assertThat(Access.of(1 << 30)).isEmpty();
        assertThat(Access.of(-1)).containsExactlyInAnyOrder(Access.values());
    }

    /** A remote write bit without the local one is refused by devices, so it is no access. */
    @Test
    void remoteWriteWithoutLocalWriteIsNone() {
        assertThat(Access.of(ibverbs_constants.IBV_ACCESS_REMOTE_WRITE())).isEmpty();
    }
}
