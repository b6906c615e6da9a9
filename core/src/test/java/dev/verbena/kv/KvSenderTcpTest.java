package dev.verbena.kv;

import dev.verbena.transfer.TwoNodes;
import org.junit.jupiter.api.Timeout;

/** Over TCP, which needs no device. The time limit is a guard against hanging. */
@Timeout(value = 180, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class KvSenderTcpTest extends KvSenderTest {
    KvSenderTcpTest() {
        super(TwoNodes.Transport.TCP);
    }
}
