package dev.verbena.bindings;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/**
 * An exported function of libibverbs: its name, its signature, and a method handle that is linked
 * when the function is first called. Thus a function that an old library lacks hurts only its
 * caller.
 *
 * <p>The handle takes the segment for {@code errno} first, then the C arguments.
 */
final class NativeCall {
    private static final Linker.Option ERRNO = Linker.Option.captureCallState("errno");

    private final String name;
    private final FunctionDescriptor descriptor;

    /** Set at most to equal handles by threads that race, so it needs no lock. */
    private @Nullable MethodHandle handle;

    private NativeCall(String name, FunctionDescriptor descriptor) {
        this.name = name;
        this.descriptor = descriptor;
    }

    static NativeCall returning(MemoryLayout result, String name, MemoryLayout... arguments) {
        return new NativeCall(name, FunctionDescriptor.of(result, arguments));
    }

    static NativeCall returningNothing(String name, MemoryLayout... arguments) {
        return new NativeCall(name, FunctionDescriptor.ofVoid(arguments));
    }

    String name() {
        return name;
    }

    FunctionDescriptor descriptor() {
        return descriptor;
    }

    /**
     * @throws VerbsUnavailableException if the library, or this function of it, is not there
     */
    MethodHandle handle() {
        MethodHandle linked = handle;
        if (linked == null) {
            linked =
                    Linker.nativeLinker()
                            .downcallHandle(VerbsLibrary.symbol(name), descriptor, ERRNO);
            handle = linked;
        }
        return linked;
    }

    /**
     * Passes on what a method handle threw. Native code throws nothing, so that is a Java error or
     * a runtime exception, for instance about a segment that is closed.
     */
    static RuntimeException rethrow(Throwable thrown) {
        if (thrown instanceof Error error) {
            throw error;
        }
        if (thrown instanceof RuntimeException exception) {
            throw exception;
        }
        throw new AssertionError("a native call threw a checked exception", thrown);
    }
}
