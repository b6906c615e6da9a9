package dev.verbena.bindings;

import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;

/**
 * What each thread keeps between native calls: the {@code errno} of its last one, and eight bytes
 * for an out parameter. Allocated at a thread's first call and freed with the thread; virtual
 * threads have their own, as they may move to another carrier between the call and the question.
 */
final class ThreadState {
    private static final StructLayout CAPTURED = Linker.Option.captureStateLayout();
    private static final long ERRNO = CAPTURED.byteOffset(PathElement.groupElement("errno"));

    private static final ThreadLocal<ThreadState> CURRENT =
            ThreadLocal.withInitial(ThreadState::new);

    private final MemorySegment captured;
    private final MemorySegment scratch;

    private ThreadState() {
        Arena arena = Arena.ofAuto();
        captured = arena.allocate(CAPTURED);
        scratch = arena.allocate(MemoryLayout.sequenceLayout(1, ValueLayout.JAVA_LONG));
    }

    /** The segment that a capturing call writes {@code errno} to. */
    static MemorySegment capture() {
        return CURRENT.get().captured;
    }

    /** Eight bytes, aligned to eight, good until this thread's next call of this class. */
    static MemorySegment scratch() {
        return CURRENT.get().scratch;
    }

    static int errno() {
        return capture().get(ValueLayout.JAVA_INT, ERRNO);
    }

    static void errno(int value) {
        capture().set(ValueLayout.JAVA_INT, ERRNO, value);
    }

    /**
     * Folds the conventions of calls that return a status into one: 0, or a positive errno value,
     * which {@link #errno()} then tells too. A bare -1 means that errno has the value; a provider
     * that returns -1 and sets nothing is taken to mean what -1 says, EPERM.
     */
    static int status(int result) {
        if (result == 0) {
            return 0;
        }
        int error = result;
        if (result == -1) {
            error = Math.max(errno(), Errno.EPERM);
        } else if (result < 0) {
            error = -result;
        }
        errno(error);
        return error;
    }

    /** For calls that return a number, or -1 and errno: the number, or a negative errno value. */
    static int number(int result) {
        return result >= 0 ? result : -status(result);
    }
}
