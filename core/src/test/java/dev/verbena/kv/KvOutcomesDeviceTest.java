package dev.verbena.kv;

import dev.verbena.transfer.NodeOptions;
import dev.verbena.transfer.PosterOptions;
import dev.verbena.verbs.DeviceTest;
import java.time.Duration;

/** Over RDMA. */
@DeviceTest
class KvOutcomesDeviceTest extends KvOutcomesTest {
    @Override
    NodeOptions options() {
        return NodeOptions.onlyDevice()
                .poster(PosterOptions.defaults().withProgressDeadline(Duration.ofSeconds(20)));
    }
}
