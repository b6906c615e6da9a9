package dev.verbena.transfer;

import dev.verbena.verbs.Access;
import dev.verbena.verbs.WorkRequests;

/** Which way a transfer moves bytes. */
public enum Direction {
    /** From local memory to the peer's. The peer's pool must grant {@link Access#REMOTE_WRITE}. */
    WRITE(WorkRequests.Operation.WRITE, Access.REMOTE_WRITE),
    /**
     * From the peer's memory to local memory. The peer's pool must grant {@link
     * Access#REMOTE_READ}, the local one {@link Access#LOCAL_WRITE}.
     */
    READ(WorkRequests.Operation.READ, Access.REMOTE_READ);

    private final WorkRequests.Operation operation;
    private final Access remoteAccess;

    Direction(WorkRequests.Operation operation, Access remoteAccess) {
        this.operation = operation;
        this.remoteAccess = remoteAccess;
    }

    WorkRequests.Operation operation() {
        return operation;
    }

    Access remoteAccess() {
        return remoteAccess;
    }
}
