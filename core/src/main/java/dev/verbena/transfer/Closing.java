package dev.verbena.transfer;

import org.jspecify.annotations.Nullable;

/** Closes several things, each of them whatever the others throw. */
final class Closing {
    private @Nullable Throwable first;

    /** Closes one thing, or runs what else belongs to the closing. */
    Closing then(Runnable step) {
        try {
            step.run();
        } catch (RuntimeException | Error failure) {
            if (first == null) {
                first = failure;
            } else {
                first.addSuppressed(failure);
            }
        }
        return this;
    }

    /** Throws the first failure, with the others attached, if there was one. */
    void end() {
        switch (first) {
            case null -> {}
            case Error error -> throw error;
            case RuntimeException failure -> throw failure;
            default -> throw new IllegalStateException(first);
        }
    }
}
