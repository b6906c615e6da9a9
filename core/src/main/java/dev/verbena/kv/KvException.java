package dev.verbena.kv;

import org.jspecify.annotations.Nullable;

/**
 * A request that failed, on this side or the other; the message says on which and why. When it is
 * thrown the request has ended on this side.
 */
public final class KvException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    KvException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
