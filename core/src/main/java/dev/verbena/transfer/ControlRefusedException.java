package dev.verbena.transfer;

import java.io.IOException;
import java.io.Serial;

/** The peer does not want this connection. The message carries the peer's own words. */
final class ControlRefusedException extends IOException {
    @Serial private static final long serialVersionUID = 1;

    ControlRefusedException(String message) {
        super(message);
    }
}
