package dev.verbena.verbs;

import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_ACCESS_REMOTE_READ;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_ACCESS_REMOTE_WRITE;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_WR_BIND_MW;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_WR_LOCAL_INV;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.bindings.Errno;
import dev.verbena.bindings.ibverbs.ibv_mr;
import dev.verbena.bindings.ibverbs.ibv_mw;
import dev.verbena.bindings.ibverbs.ibv_mw_bind_info;
import dev.verbena.bindings.ibverbs.ibv_send_wr;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * A window of type 2 is bound by a request that says which range, and each time with a new key;
 * what the device would answer by stopping the queue pair is refused before it is posted.
 */
class MemoryWindowTest {
    private static final long ADDRESS = 0x10000;
    private static final long LENGTH = 4096;
    private static final Set<Access> WRITE = Set.of(Access.REMOTE_WRITE);

    private final Arena arena = Arena.ofShared();
    private final VerbsDouble device = VerbsDouble.create();
    private final CompletionQueue queue = device.createCompletionQueue(16);
    private final QueuePair pair = device.createQueuePair(new QueuePairOptions(4, 1, 1, 1), queue);
    private final WorkCompletions completions = new WorkCompletions(8);
    private final MemorySegment mr = ibv_mr.allocate(arena);
    private final MemorySegment mw = ibv_mw.allocate(arena);
    private final MemoryRegion region = region(Access.WINDOW_BIND, Access.LOCAL_WRITE);
    private final MemoryWindow window;

    MemoryWindowTest() {
        ibv_mw.rkey(mw, 0x1234_56fe);
        window = MemoryWindow.wrap(mw);
    }

    @AfterEach
    void close() {
        pair.close();
        queue.close();
        completions.close();
        device.close();
        arena.close();
    }

    @Test
    void bindSaysTheRangeAndTheAccessAndTakesTheNextKey() {
        int key = window.bind(pair, 77, region, 100, 200, WRITE);

        // Only the lowest byte counts up.
        assertThat(key).isEqualTo(0x1234_56ff);
        assertThat(window.remoteKey()).isEqualTo(key);
        MemorySegment request = device.lastTaken(pair);
        assertThat(ibv_send_wr.opcode(request)).isEqualTo(IBV_WR_BIND_MW());
        MemorySegment bind = ibv_send_wr.bind_mw(request);
        assertThat(ibv_send_wr.bind_mw.mw(bind)).isEqualTo(mw);
        assertThat(ibv_send_wr.bind_mw.rkey(bind)).isEqualTo(key);
        MemorySegment range = ibv_send_wr.bind_mw.bind_info(bind);
        assertThat(ibv_mw_bind_info.mr(range)).isEqualTo(mr);
        assertThat(ibv_mw_bind_info.addr(range)).isEqualTo(ADDRESS + 100);
        assertThat(ibv_mw_bind_info.length(range)).isEqualTo(200);
        assertThat(ibv_mw_bind_info.mw_access_flags(range)).isEqualTo(IBV_ACCESS_REMOTE_WRITE());
        assertThat(queue.poll(completions)).isEqualTo(1);
        assertThat(completions.workRequestId(0)).isEqualTo(77);
    }

    @Test
    void unbindInvalidatesTheKeyAndTheNextBindHasAnother() {
        int first = window.bind(pair, 1, region, 0, LENGTH, Set.of(Access.REMOTE_READ));
        assertThat(queue.poll(completions)).isEqualTo(1);

        window.unbind(pair, 2);

        MemorySegment request = device.lastTaken(pair);
        assertThat(ibv_send_wr.opcode(request)).isEqualTo(IBV_WR_LOCAL_INV());
        assertThat(ibv_send_wr.invalidate_rkey(request)).isEqualTo(first);
        assertThat(queue.poll(completions)).isEqualTo(1);
        assertThat(completions.workRequestId(0)).isEqualTo(2);
        int second = window.bind(pair, 3, region, 0, LENGTH, Set.of(Access.REMOTE_READ));
        assertThat(second).isEqualTo(0x1234_5600);
        assertThat(
                        ibv_mw_bind_info.mw_access_flags(
                                ibv_send_wr.bind_mw.bind_info(
                                        ibv_send_wr.bind_mw(device.lastTaken(pair)))))
                .isEqualTo(IBV_ACCESS_REMOTE_READ());
    }

    @Test
    void refusesWhatWouldStopTheQueuePair() {
        long[][] outside = {{0, LENGTH + 1}, {LENGTH, 1}, {-1, 1}, {1, -1}};
        for (long[] range : outside) {
            assertThatThrownBy(() -> window.bind(pair, 1, region, range[0], range[1], WRITE))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> window.bind(pair, 1, region, 0, 0, WRITE))
                .withMessageContaining("0 bytes");
        for (Set<Access> access :
                Set.of(Set.<Access>of(), Set.of(Access.LOCAL_WRITE), Set.of(Access.ON_DEMAND))) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> window.bind(pair, 1, region, 0, LENGTH, access))
                    .withMessageContaining("needs a length and some of");
        }
        for (MemoryRegion strict :
                new MemoryRegion[] {
                    region(), region(Access.REMOTE_WRITE), region(Access.WINDOW_BIND)
                }) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> window.bind(pair, 1, strict, 0, LENGTH, WRITE))
                    .withMessageContaining("register it with WINDOW_BIND and LOCAL_WRITE");
        }
        assertThatIllegalStateException()
                .isThrownBy(() -> window.unbind(pair, 1))
                .withMessageContaining("not bound");
        assertThat(device.accepted()).isZero();

        window.bind(pair, 1, region(Access.WINDOW_BIND), 0, LENGTH, Set.of(Access.REMOTE_READ));
        assertThatIllegalStateException()
                .isThrownBy(() -> window.bind(pair, 2, region, 0, LENGTH, WRITE))
                .withMessageContaining("unbind it before");
        assertThat(device.accepted()).isEqualTo(1);
    }

    @Test
    void refusesRegionsAndQueuePairsOfAnotherDomain() {
        ibv_mr.pd(mr, MemorySegment.ofAddress(0x40));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> window.bind(pair, 1, region, 0, LENGTH, WRITE))
                .withMessageContaining("another protection domain");
        ibv_mw.pd(mw, MemorySegment.ofAddress(0x40));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> window.bind(pair, 1, region, 0, LENGTH, WRITE))
                .withMessageContaining("queue pair");
        assertThat(device.accepted()).isZero();
    }

    @Test
    void bindThatIsNotPostedLeavesTheKey() {
        device.acceptOnly(0, Errno.ENOMEM);

        assertThatExceptionOfType(VerbsException.class)
                .isThrownBy(() -> window.bind(pair, 1, region, 0, LENGTH, WRITE))
                .withMessageContaining("ibv_post_send failed: ENOMEM");

        assertThat(window.remoteKey()).isEqualTo(0x1234_56fe);
        assertThat(window.bind(pair, 1, region, 0, LENGTH, WRITE)).isEqualTo(0x1234_56ff);
    }

    /** A driver follows the pointer to the region, and would end the JVM. */
    @Test
    void refusesRegionsThatAreClosed() {
        MemoryRegion closed = region(Access.WINDOW_BIND, Access.LOCAL_WRITE);
        window.bind(pair, 1, closed, 0, LENGTH, WRITE);
        closed.lifetime().close(() -> {});

        assertThatIllegalStateException()
                .isThrownBy(() -> window.unbind(pair, 2))
                .withMessageContaining("memory region 0x10000+4096 is closed");
        assertThatIllegalStateException()
                .isThrownBy(() ->
                        MemoryWindow.wrap(ibv_mw.allocate(arena))
                                .bind(pair, 3, closed, 0, LENGTH, WRITE));
        assertThat(device.accepted()).isEqualTo(1);
    }

    @Test
    void refusesClosedQueuePairs() {
        QueuePair closed = device.createQueuePair(new QueuePairOptions(4, 1, 1, 1), queue);
        closed.close();

        assertThatIllegalStateException()
                .isThrownBy(() -> window.bind(closed, 1, region, 0, LENGTH, WRITE));
        assertThat(window.remoteKey()).isEqualTo(0x1234_56fe);
    }

    private MemoryRegion region(Access... access) {
        return MemoryRegion.wrap(mr, ADDRESS, LENGTH, Set.of(access));
    }
}
