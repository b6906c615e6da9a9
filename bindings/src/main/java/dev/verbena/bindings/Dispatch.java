package dev.verbena.bindings;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * Calls through function pointers that lie in native structs, which is all that the functions do
 * that C inlines.
 *
 * <p>The handles take the function's address first, so one handle serves every device; as constants
 * they are compiled into their callers, and the segments made on the way never reach the heap.
 */
final class Dispatch {
    /** All of memory: plain loads at any address, without a segment for each struct. */
    private static final MemorySegment MEMORY = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private static final Linker LINKER = Linker.nativeLinker();
    private static final Linker.Option ERRNO = Linker.Option.captureCallState("errno");

    private Dispatch() {}

    /** Loads a pointer, 8 bytes aligned to 8. A bad address ends the process. */
    static long pointer(long address) {
        return MEMORY.get(ValueLayout.JAVA_LONG, address);
    }

    /** Loads a function pointer; {@code NULL} if the struct holds none. */
    static MemorySegment function(long address) {
        return MemorySegment.ofAddress(pointer(address));
    }

    /**
     * Every object of libibverbs, save the context itself, starts with a pointer to its context.
     */
    static long contextOf(MemorySegment object) {
        return pointer(object.address());
    }

    /** A handle (function, C arguments). */
    static MethodHandle handle(FunctionDescriptor descriptor) {
        return LINKER.downcallHandle(descriptor);
    }

    /** A handle (function, errno segment, C arguments). */
    static MethodHandle capturing(FunctionDescriptor descriptor) {
        return LINKER.downcallHandle(descriptor, ERRNO);
    }

    /** A handle (address of the function as a long, C arguments). */
    static MethodHandle byAddress(FunctionDescriptor descriptor) {
        try {
            MethodHandle ofAddress =
                    MethodHandles.lookup()
                            .findStatic(
                                    MemorySegment.class,
                                    "ofAddress",
                                    MethodType.methodType(MemorySegment.class, long.class));
            return MethodHandles.filterArguments(handle(descriptor), 0, ofAddress);
        } catch (ReflectiveOperationException impossible) {
            throw new LinkageError("MemorySegment.ofAddress is public", impossible);
        }
    }

    /** A view of the struct that a pointer leads to, whatever size the caller's segment has. */
    static MemorySegment view(MemorySegment pointer, long sizeBytes) {
        return pointer.byteSize() < sizeBytes ? pointer.reinterpret(sizeBytes) : pointer;
    }

    /** A result pointer with the size of its struct, or {@code NULL}. */
    static MemorySegment sized(MemorySegment pointer, long sizeBytes) {
        return pointer.address() == 0 ? MemorySegment.NULL : pointer.reinterpret(sizeBytes);
    }

    /**
     * The status of a data path call, which does not capture errno: 0 or a positive errno value.
     */
    static int positive(int status) {
        return status < 0 ? -status : status;
    }
}
