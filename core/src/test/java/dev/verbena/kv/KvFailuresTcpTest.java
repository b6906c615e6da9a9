package dev.verbena.kv;

import dev.verbena.kv.KvGroup.Shape;
import dev.verbena.transfer.NodeOptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Over TCP, which needs no device. The time limit is a guard against hanging. */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class KvFailuresTcpTest extends KvFailures {
    @Override
    NodeOptions options() {
        return NodeOptions.tcp();
    }

    @Test
    void oneToOne() throws Exception {
        enumerate(Shape.of(1, 1), false);
    }

    @Test
    void twoToOne() throws Exception {
        enumerate(Shape.of(2, 1), false);
    }

    @Test
    void oneToTwo() throws Exception {
        enumerate(Shape.of(1, 2), false);
    }

    @Test
    void twoToOneThroughStaging() throws Exception {
        enumerate(Shape.of(2, 1), true);
    }

    @Test
    void oneToTwoThroughStaging() throws Exception {
        enumerate(Shape.of(1, 2), true);
    }
}
