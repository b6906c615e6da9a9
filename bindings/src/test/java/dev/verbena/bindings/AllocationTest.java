package dev.verbena.bindings;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.bindings.ibverbs.ibv_send_wr;
import dev.verbena.bindings.ibverbs.ibv_wc;
import dev.verbena.bindings.testing.AllocationCounter;
import dev.verbena.bindings.testing.DriverDouble;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * The data path allocates nothing once it is compiled. The driver is a native function that does
 * nothing, as a function in Java would allocate its own arguments.
 */
class AllocationTest {
    private static final int CALLS_PER_ROUND = 20_000;

    private final DriverDouble driver = new DriverDouble();
    private final MemorySegment qp = driver.newQp();
    private final MemorySegment cq = driver.newCq(16);
    private final MemorySegment wr = ibv_send_wr.allocate(driver.arena());
    private final MemorySegment badWr = driver.arena().allocate(ValueLayout.ADDRESS);
    private final MemorySegment wc = ibv_wc.allocateArray(16, driver.arena());
    private final long qpAddress = qp.address();
    private final long cqAddress = cq.address();
    private final long wrAddress = wr.address();
    private final long badWrAddress = badWr.address();
    private final long wcAddress = wc.address();
    private int sum;
    private byte[] garbage = {};

    AllocationTest() {
        driver.useNativeNoOp();
    }

    @AfterEach
    void close() {
        driver.close();
        assertThat(sum).isZero();
    }

    @Test
    void theCounterCountsWhatIsAllocated() {
        assertThat(bytesOnceWarm(Long.MAX_VALUE, () -> garbage = new byte[100]))
                .isGreaterThan(100L * 1_000);
        assertThat(garbage).hasSize(100);
    }

    @Test
    void postingByAddressAllocatesNothing() {
        assertThat(
                        bytesOnceWarm(
                                0,
                                () -> {
                                    sum +=
                                            VerbsInline.ibv_post_send(
                                                    qpAddress, wrAddress, badWrAddress);
                                    sum +=
                                            VerbsInline.ibv_post_recv(
                                                    qpAddress, wrAddress, badWrAddress);
                                }))
                .isZero();
    }

    @Test
    void postingBySegmentAllocatesNothing() {
        assertThat(bytesOnceWarm(0, () -> sum += VerbsInline.ibv_post_send(qp, wr, badWr)))
                .isZero();
    }

    @Test
    void pollingByAddressAllocatesNothing() {
        assertThat(bytesOnceWarm(0, () -> sum += VerbsInline.ibv_poll_cq(cqAddress, 16, wcAddress)))
                .isZero();
    }

    @Test
    void pollingBySegmentAllocatesNothing() {
        assertThat(bytesOnceWarm(0, () -> sum += VerbsInline.ibv_poll_cq(cq, 16, wc))).isZero();
    }

    @Test
    void armingAllocatesNothing() {
        assertThat(bytesOnceWarm(0, () -> sum += VerbsInline.ibv_req_notify_cq(cqAddress, 0)))
                .isZero();
    }

    @Test
    void waitingAllocatesNothing() {
        MemorySegment fds = Posix.pollFds(driver.arena(), 1);
        Posix.pollFd(fds, 0, -1, Posix.POLLIN);

        assertThat(bytesOnceWarm(0, () -> sum += Posix.poll(fds, 1, 0))).isZero();
    }

    @Test
    void wakingAllocatesNothing() {
        int fd = Posix.eventFd();

        assertThat(
                        bytesOnceWarm(
                                0,
                                () -> {
                                    sum += Posix.eventFdAdd(fd, 1);
                                    sum += (int) Posix.eventFdTake(fd) - 1;
                                }))
                .isZero();
        assertThat(Posix.close(fd)).isZero();
    }

    private static long bytesOnceWarm(long enough, Runnable code) {
        return AllocationCounter.bytesOnceWarm(CALLS_PER_ROUND, enough, code);
    }
}
