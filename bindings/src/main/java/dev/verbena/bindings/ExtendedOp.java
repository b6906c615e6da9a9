package dev.verbena.bindings;

import dev.verbena.bindings.ibverbs.ibv_context;
import dev.verbena.bindings.ibverbs.verbs_context;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/**
 * One function of the extended context, and its handle (function, errno segment, C arguments),
 * linked when it is first called.
 *
 * <p>The extended context surrounds the classic one, which is its last member, and grows at its
 * front. So an entry lies at a fixed distance <em>before</em> the classic context in every version,
 * if the version at hand has it:
 *
 * <pre>{@code
 * [ newer entries | query_port ... create_srq_ex ... | sz | ibv_context ... abi_compat ]
 *                   ^ older than our header: absent         ^ what callers hold
 * }</pre>
 */
final class ExtendedOp {
    /** What {@code abi_compat} holds if there is an extended context around this one. */
    private static final long EXTENDED = -1L;

    private static final long ABI_COMPAT = ibv_context.abi_compat$offset();
    private static final long CONTEXT = verbs_context.context$offset();
    private static final long SZ = verbs_context.sz$offset() - CONTEXT;
    private static final long SIZEOF = verbs_context.sizeof();

    private final long offset;
    private final FunctionDescriptor descriptor;
    private @Nullable MethodHandle handle;

    /**
     * @param offset where {@code verbs_context} has the function pointer, in bytes
     * @param descriptor its signature, as generated
     */
    ExtendedOp(long offset, FunctionDescriptor descriptor) {
        this.offset = offset;
        this.descriptor = descriptor;
    }

    /**
     * Finds the function as {@code verbs_get_ctx_op} does in C: the context must carry the mark,
     * the struct must be large enough to reach back to the entry, and the entry must be set.
     *
     * @param context address of an {@code ibv_context}
     * @return the function, or {@code NULL}
     */
    MemorySegment in(long context) {
        if (Dispatch.pointer(context + ABI_COMPAT) != EXTENDED
                || Long.compareUnsigned(Dispatch.pointer(context + SZ), SIZEOF - offset) < 0) {
            return MemorySegment.NULL;
        }
        return Dispatch.function(context - CONTEXT + offset);
    }

    MethodHandle handle() {
        MethodHandle linked = handle;
        if (linked == null) {
            linked = Dispatch.capturing(descriptor);
            handle = linked;
        }
        return linked;
    }
}
