package dev.verbena.bindings;

import org.jspecify.annotations.Nullable;

/**
 * Says that libibverbs, or one function of it, cannot be used on this machine, and what to do about
 * it.
 *
 * <p>Unchecked, as a program that needs RDMA can seldom go on without it; one that can asks {@link
 * VerbsLibrary#isAvailable()} first.
 */
public final class VerbsUnavailableException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    VerbsUnavailableException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
