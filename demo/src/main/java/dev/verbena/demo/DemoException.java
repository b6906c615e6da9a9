package dev.verbena.demo;

import org.jspecify.annotations.Nullable;

/** The demo cannot go on, for a reason that the message tells its user in full. */
final class DemoException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    DemoException(String message) {
        this(message, null);
    }

    DemoException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
