package dev.verbena.kv;

import dev.verbena.transfer.NodeOptions;
import org.junit.jupiter.api.Timeout;

/** Over TCP, which needs no device. The time limit is a guard against hanging. */
@Timeout(value = 180, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class KvOutcomesTcpTest extends KvOutcomesTest {
    @Override
    NodeOptions options() {
        return NodeOptions.tcp();
    }
}
