package dev.verbena.kv;

import dev.verbena.transfer.TwoNodes;
import dev.verbena.verbs.DeviceTest;

/** Over RDMA. */
@DeviceTest
class KvSliceDeviceTest extends KvSliceTest {
    KvSliceDeviceTest() {
        super(TwoNodes.Transport.VERBS);
    }
}
