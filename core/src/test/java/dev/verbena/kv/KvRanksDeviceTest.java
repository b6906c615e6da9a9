package dev.verbena.kv;

import dev.verbena.transfer.NodeOptions;
import dev.verbena.verbs.DeviceTest;
import java.time.Duration;

/** Over RDMA, where an emulated processor takes its time to connect. */
@DeviceTest
class KvRanksDeviceTest extends KvRanksTest {
    @Override
    NodeOptions options() {
        return NodeOptions.onlyDevice().connectDeadline(Duration.ofSeconds(60));
    }
}
