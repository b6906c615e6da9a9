package dev.verbena.transfer;

import java.io.IOException;
import java.io.Serial;

/** The bytes on a control connection are not what the protocol allows. The message says why. */
final class ControlProtocolException extends IOException {
    @Serial private static final long serialVersionUID = 1;

    ControlProtocolException(String message) {
        super(message);
    }

    ControlProtocolException(String message, Throwable cause) {
        super(message, cause);
    }
}
