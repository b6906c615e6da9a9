package dev.verbena.transfer;

import dev.verbena.verbs.DeviceTest;

/** The order of messages beside a real device. */
@DeviceTest
final class MessageOrderTest extends MessageOrder {
    MessageOrderTest() {
        super(TwoNodes.Transport.VERBS);
    }
}
