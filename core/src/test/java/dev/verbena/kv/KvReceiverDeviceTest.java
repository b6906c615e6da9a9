package dev.verbena.kv;

import dev.verbena.transfer.TwoNodes;
import dev.verbena.verbs.DeviceTest;

/** Over RDMA. */
@DeviceTest
class KvReceiverDeviceTest extends KvReceiverTest {
    KvReceiverDeviceTest() {
        super(TwoNodes.Transport.VERBS);
    }
}
