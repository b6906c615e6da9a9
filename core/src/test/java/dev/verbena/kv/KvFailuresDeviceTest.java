package dev.verbena.kv;

import dev.verbena.kv.KvGroup.Shape;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.verbs.DeviceTest;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/**
 * Over RDMA, where an emulated processor takes its time to connect. The other shapes run over TCP.
 */
@DeviceTest
class KvFailuresDeviceTest extends KvFailures {
    @Override
    NodeOptions options() {
        return NodeOptions.onlyDevice().connectDeadline(Duration.ofSeconds(60));
    }

    @Test
    void oneToOne() throws Exception {
        enumerate(Shape.of(1, 1), false);
    }

    @Test
    void twoToOneThroughStaging() throws Exception {
        enumerate(Shape.of(2, 1), true);
    }
}
