package dev.verbena.transfer;

import org.junit.jupiter.api.Timeout;

/** The order of messages over TCP, beside its data connections. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class TcpMessageOrderTest extends MessageOrder {
    TcpMessageOrderTest() {
        super(TwoNodes.Transport.TCP);
    }
}
