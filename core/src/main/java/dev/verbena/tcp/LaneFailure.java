package dev.verbena.tcp;

import dev.verbena.verbs.CompletionStatus;

/** A lane cannot go on: the oldest work request fails with a status, as that of a device would. */
final class LaneFailure extends Exception {
    private static final long serialVersionUID = 1;

    private final CompletionStatus status;

    LaneFailure(CompletionStatus status, String message) {
        super(message);
        this.status = status;
    }

    CompletionStatus status() {
        return status;
    }
}
