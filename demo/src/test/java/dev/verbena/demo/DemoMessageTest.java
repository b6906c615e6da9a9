package dev.verbena.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class DemoMessageTest {
    static Stream<DemoMessage> messages() {
        WrongItem wrong = new WrongItem("layer 3, K, page 4", "byte 5");
        return Stream.of(
                new DemoMessage.Begin(new Job(Scenario.MAIN.withTokens(100), -7)),
                new DemoMessage.Ready(List.of(7471, 65535)),
                new DemoMessage.Checksums(1, 3, List.of(1, -1, 0x12345678)),
                new DemoMessage.Checked(),
                new DemoMessage.Trace(new TraceShape(ModelShape.DEEPSEEK_V3, 4, 64, -1)),
                new DemoMessage.Replay(3, List.of(1L, -1L)),
                DemoMessage.Replay.END,
                new DemoMessage.Expecting(8),
                new DemoMessage.Verdict(8192, 0, null),
                new DemoMessage.Verdict(8192, 1, wrong));
    }

    @ParameterizedTest
    @MethodSource("messages")
    void readsWhatItWrote(DemoMessage message) {
        assertThat(DemoMessage.decode(ByteBuffer.wrap(message.encode()))).isEqualTo(message);
    }

    @ParameterizedTest
    @MethodSource("messages")
    void refusesWhatIsCutShort(DemoMessage message) {
        byte[] whole = message.encode();

        for (int length = 0; length < whole.length; length++) {
            ByteBuffer part = ByteBuffer.wrap(Arrays.copyOf(whole, length));
            assertThatThrownBy(() -> DemoMessage.decode(part))
                    .isInstanceOf(IllegalArgumentException.class);
        }
    }

    @ParameterizedTest
    @MethodSource("messages")
    void refusesBytesLeftOver(DemoMessage message) {
        byte[] whole = message.encode();
        ByteBuffer more = ByteBuffer.wrap(Arrays.copyOf(whole, whole.length + 1));

        assertThatThrownBy(() -> DemoMessage.decode(more))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void refusesJobsThatNobodyCouldServe() {
        byte[] bytes = new DemoMessage.Begin(new Job(Scenario.MAIN.withTokens(1), 0)).encode();
        int tokensAt = bytes.length - Long.BYTES - Integer.BYTES;

        ByteBuffer message = ByteBuffer.wrap(bytes).putInt(tokensAt, Integer.MAX_VALUE);

        assertThatThrownBy(() -> DemoMessage.decode(message))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("2147483647 tokens");
    }

    @Test
    void checksumsOfAnotherRequestAreRefused() {
        Job job = new Job(Scenario.MAIN.withTokens(33), 1);
        Checksums checksums = new Checksums(RankCache.of(job, Job.Side.PREFILL, 0));
        DemoMessage.Checksums fits = new DemoMessage.Checksums(0, 2, List.of(4, 5, 6));

        checksums.put(fits);

        assertThat(checksums.get(2, 1)).isEqualTo(5);
        assertThat(checksums.message(0, 2)).isEqualTo(fits);
        assertThatThrownBy(() -> checksums.put(new DemoMessage.Checksums(0, 2, List.of(1))))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("pool 2 with 1 items");
        assertThatThrownBy(() -> checksums.put(new DemoMessage.Checksums(0, 1000, List.of(1))))
                .isInstanceOf(IllegalArgumentException.class);
    }
}
