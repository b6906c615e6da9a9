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
        WrongPage wrong = new WrongPage(3, 4, "layer 3, K, page 4", "byte 5");
        return Stream.of(
                new DemoMessage.Begin(new Job(ModelShape.DEEPSEEK_V3, 100, -7)),
                new DemoMessage.Checksums(3, List.of(1, -1, 0x12345678)),
                new DemoMessage.Checked(64),
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
        byte[] bytes = new DemoMessage.Begin(new Job(ModelShape.DEEPSEEK_V3, 1, 0)).encode();
        int tokensAt = bytes.length - Long.BYTES - Integer.BYTES;

        ByteBuffer message = ByteBuffer.wrap(bytes).putInt(tokensAt, Integer.MAX_VALUE);

        assertThatThrownBy(() -> DemoMessage.decode(message))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("2147483647 tokens");
    }

    @Test
    void checksumsOfAnotherRequestAreRefused() {
        PageChecksums checksums = new PageChecksums(2, 3);

        assertThatThrownBy(() -> checksums.put(new DemoMessage.Checksums(2, List.of(1, 2, 3))))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> checksums.put(new DemoMessage.Checksums(0, List.of(1, 2, 3, 4))))
                .isInstanceOf(IllegalArgumentException.class);
    }
}
