package dev.verbena.verbs;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.verbena.verbs.WorkRequests.Operation;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A peer reaches memory by a window as far as its access goes, and until it is unbound. */
@DeviceTest
class BoundWindowsTest {
    private static final int OFFSET = 8192;
    private static final int LENGTH = 4096;

    private final TwoQueuePairs pairs = TwoQueuePairs.open();
    private final MemoryRegion region =
            pairs.domain.register(pairs.farMemory, Set.of(Access.WINDOW_BIND, Access.LOCAL_WRITE));

    @AfterEach
    void close() {
        region.close();
        pairs.close();
    }

    @Test
    void peersReachTheWindowUntilItIsUnbound() {
        for (int type : new int[] {1, 2}) {
            pairs.farMemory.fill((byte) 0);
            try (MemoryWindow window = pairs.domain.allocateMemoryWindow(type)) {
                int before = window.remoteKey();
                int key = bind(window, Access.REMOTE_WRITE);
                assertThat(key).isNotEqualTo(before).isEqualTo(window.remoteKey());

                assertThat(write(key, OFFSET + LENGTH - 100)).isEqualTo("7 SUCCESS");
                assertThat(
                                pairs.farMemory
                                        .asSlice(OFFSET + LENGTH - 100, 100)
                                        .mismatch(pairs.nearMemory.asSlice(0, 100)))
                        .isEqualTo(-1);

                window.unbind(pairs.far, 41);
                assertThat(pairs.await(1)).containsExactly("41 SUCCESS");
                assertThat(write(key, OFFSET)).isEqualTo("7 REMOTE_ACCESS");
                assertThat(pairs.farMemory.asSlice(OFFSET, 100).toArray(JAVA_BYTE))
                        .containsOnly((byte) 0);

                reconnect();
                int next = bind(window, Access.REMOTE_WRITE);
                assertThat(next).isNotEqualTo(key);
                assertThat(write(next, OFFSET)).isEqualTo("7 SUCCESS");
            }
        }
    }

    /** Of access only: soft-RoCE holds peers to the range of the region, not to the window's. */
    @Test
    void peersDoNothingThatTheWindowDoesNotAllow() {
        for (int type : new int[] {1, 2}) {
            try (MemoryWindow window = pairs.domain.allocateMemoryWindow(type)) {
                int key = bind(window, Access.REMOTE_READ);
                assertThat(write(key, OFFSET)).isEqualTo("7 REMOTE_ACCESS");
            }
            reconnect();
        }
        assertThat(pairs.farMemory.toArray(JAVA_BYTE)).containsOnly((byte) 0);
    }

    @Test
    void regionUnderAWindowIsNotDeregistered() {
        MemoryRegion under =
                pairs.domain.register(
                        pairs.farMemory, Set.of(Access.WINDOW_BIND, Access.LOCAL_WRITE));
        try (MemoryWindow window = pairs.domain.allocateMemoryWindow(2)) {
            window.bind(pairs.far, 40, under, 0, LENGTH, Set.of(Access.REMOTE_WRITE));
            assertThat(pairs.await(1)).containsExactly("40 SUCCESS");

            assertThatExceptionOfType(VerbsException.class)
                    .isThrownBy(under::close)
                    .withMessageContaining("free the memory windows");
        }
        under.close();
    }

    private int bind(MemoryWindow window, Access access) {
        int key = window.bind(pairs.far, 40, region, OFFSET, LENGTH, Set.of(access));
        assertThat(pairs.await(1)).containsExactly("40 SUCCESS");
        return key;
    }

    /** Writes a hundred bytes by a key, and tells how it ended. */
    private String write(int key, long farOffset) {
        pairs.write(0, 0, farOffset, 100, true);
        pairs.ring.fill(0, 7, Operation.WRITE, region.address() + farOffset, key, 1, true);
        pairs.near.post(pairs.ring, 0, 1);
        return pairs.await(1).getFirst();
    }

    private void reconnect() {
        for (QueuePair pair : new QueuePair[] {pairs.near, pairs.far}) {
            pair.modify(QueuePairState.RESET, new QueuePairAttributes());
        }
        pairs.connect();
    }
}
