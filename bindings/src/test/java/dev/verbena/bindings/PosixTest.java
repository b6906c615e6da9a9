package dev.verbena.bindings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Waiting and waking work on real file descriptors, and errno belongs to the thread that failed.
 */
class PosixTest {
    private static final int NOT_A_FILE = 1_000_000;

    private final Arena arena = Arena.ofConfined();
    private final int fd = Posix.eventFd();

    @AfterEach
    void close() {
        assertThat(Posix.close(fd)).isZero();
        arena.close();
    }

    @Test
    void pollSeesAnEventAndATimeout() {
        MemorySegment fds = Posix.pollFds(arena, 1);
        Posix.pollFd(fds, 0, fd, Posix.POLLIN);

        assertThat(Posix.poll(fds, 1, 0)).isZero();
        assertThat(Posix.eventFdAdd(fd, 5)).isZero();
        assertThat(Posix.poll(fds, 1, 1_000)).isEqualTo(1);
        assertThat(Posix.polledEvents(fds, 0)).isEqualTo(Posix.POLLIN);
        assertThat(Posix.eventFdTake(fd)).isEqualTo(5);
        assertThat(Posix.poll(fds, 1, 0)).isZero();
    }

    @Test
    void pollReportsTheRightOneOfSeveral() {
        int other = Posix.eventFd();
        MemorySegment fds = Posix.pollFds(arena, 3);
        Posix.pollFd(fds, 0, -1, Posix.POLLIN);
        Posix.pollFd(fds, 1, fd, Posix.POLLIN);
        Posix.pollFd(fds, 2, other, Posix.POLLIN);
        assertThat(Posix.eventFdAdd(other, 1)).isZero();

        assertThat(Posix.poll(fds, 3, 0)).isEqualTo(1);

        assertThat(Posix.polledEvents(fds, 0)).isZero();
        assertThat(Posix.polledEvents(fds, 1)).isZero();
        assertThat(Posix.polledEvents(fds, 2)).isEqualTo(Posix.POLLIN);
        assertThat(Posix.close(other)).isZero();
    }

    @Test
    void pollMarksWhatIsNoFile() {
        MemorySegment fds = Posix.pollFds(arena, 1);
        Posix.pollFd(fds, 0, NOT_A_FILE, Posix.POLLIN);

        assertThat(Posix.poll(fds, 1, 0)).isEqualTo(1);
        assertThat(Posix.polledEvents(fds, 0)).isEqualTo(Posix.POLLNVAL);
    }

    @Test
    void pollRefusesAnArrayThatIsTooShort() {
        MemorySegment fds = Posix.pollFds(arena, 1);

        assertThatThrownBy(() -> Posix.poll(fds, 2, 0))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("2 entries in an array of 8 bytes");
    }

    @Test
    void anotherThreadWakesTheOneThatPolls() throws Exception {
        MemorySegment fds = Posix.pollFds(arena, 1);
        Posix.pollFd(fds, 0, fd, Posix.POLLIN);
        Thread waker = Thread.ofVirtual().start(() -> assertThat(Posix.eventFdAdd(fd, 1)).isZero());

        assertThat(Posix.poll(fds, 1, 10_000)).isEqualTo(1);

        waker.join();
    }

    @Test
    void anEmptyCounterSaysTryAgain() {
        assertThat(Posix.eventFdTake(fd)).isEqualTo(-Errno.EAGAIN);
        assertThat(VerbsCalls.errno()).isEqualTo(Errno.EAGAIN);
    }

    @Test
    void aBadFileDescriptorIsAnErrnoValueEverywhere() {
        assertThat(Posix.close(NOT_A_FILE)).isEqualTo(Errno.EBADF);
        assertThat(Posix.setNonBlocking(NOT_A_FILE)).isEqualTo(Errno.EBADF);
        assertThat(Posix.eventFdAdd(NOT_A_FILE, 1)).isEqualTo(Errno.EBADF);
        assertThat(Posix.eventFdTake(NOT_A_FILE)).isEqualTo(-Errno.EBADF);
    }

    @Test
    void aFileDescriptorCanBeMadeNonBlocking() {
        assertThat(Posix.setNonBlocking(fd)).isZero();
    }

    @Test
    void limitsAreTold() {
        assertThat(Posix.memoryLockLimitBytes()).isPositive();
        assertThat(Posix.pageSizeBytes()).isGreaterThanOrEqualTo(4096);
        assertThat(Integer.bitCount(Posix.pageSizeBytes())).isEqualTo(1);
    }

    /** All threads fail at the same time, each in its own way, and then ask. */
    @Test
    void errnoBelongsToTheThreadThatFailed() throws Exception {
        failTogether(Executors.newFixedThreadPool(8));
    }

    @Test
    void errnoBelongsToTheVirtualThreadThatFailed() throws Exception {
        failTogether(Executors.newVirtualThreadPerTaskExecutor());
    }

    private void failTogether(ExecutorService threads) throws Exception {
        CyclicBarrier failed = new CyclicBarrier(8);
        try (threads) {
            List<Future<Integer>> told = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                boolean empty = i % 2 == 0;
                Callable<Integer> failing =
                        () -> {
                            long _ = Posix.eventFdTake(empty ? fd : NOT_A_FILE);
                            failed.await();
                            return VerbsCalls.errno();
                        };
                told.add(threads.submit(failing));
            }
            for (int i = 0; i < 8; i++) {
                assertThat(told.get(i).get()).isEqualTo(i % 2 == 0 ? Errno.EAGAIN : Errno.EBADF);
            }
        }
    }
}
