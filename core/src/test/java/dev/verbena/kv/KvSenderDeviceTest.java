package dev.verbena.kv;

import dev.verbena.transfer.TwoNodes;
import dev.verbena.verbs.DeviceTest;

/** Over RDMA. */
@DeviceTest
class KvSenderDeviceTest extends KvSenderTest {
    KvSenderDeviceTest() {
        super(TwoNodes.Transport.VERBS);
    }
}
