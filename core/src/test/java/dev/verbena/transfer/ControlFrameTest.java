package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.SequenceInputStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Frames go through unchanged, and any other bytes are told apart by what they look like. */
final class ControlFrameTest {
    private static final int LIMIT = 1024;

    @ParameterizedTest
    @ValueSource(ints = {0, 1, LIMIT})
    void readsWhatWasWritten(int payloadBytes) throws IOException {
        byte[] payload = new byte[payloadBytes];
        new Random(payloadBytes).nextBytes(payload);

        for (byte kind = ControlFrame.HELLO; kind <= ControlFrame.GOODBYE; kind++) {
            ControlFrame frame = new ControlFrame(kind, payload);

            assertThat(read(bytes(frame))).isEqualTo(frame);
        }
    }

    @Test
    void writesTheHeaderOfTheDocumentation() throws IOException {
        ControlFrame frame = new ControlFrame(ControlFrame.MESSAGE, new byte[] {0x55});

        assertThat(HexFormat.of().formatHex(bytes(frame)))
                .isEqualTo("5652424e01060000" + "0000000155");
    }

    @Test
    void readsFramesInARow() throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ControlFrame first = ControlFrame.ofWords(ControlFrame.MESSAGE, "one");
        ControlFrame second = ControlFrame.ofWords(ControlFrame.GOODBYE, "two");
        first.write(out);
        second.write(out);

        InputStream in = new ByteArrayInputStream(out.toByteArray());

        assertThat(ControlFrame.read(in, LIMIT)).isEqualTo(first);
        assertThat(ControlFrame.read(in, LIMIT)).isEqualTo(second);
        assertThatThrownBy(() -> ControlFrame.read(in, LIMIT))
                .isInstanceOf(EOFException.class)
                .hasMessageContaining("closed");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "474554202f20485454502f312e31 | HTTP request",
                "505249202a20485454502f322e30 | HTTP request",
                "485454502f312e3120343030     | HTTP response",
                "160301020001000001fc         | TLS",
                "15030100020228               | TLS",
                "5353482d322e30               | SSH",
                "deadbeef                     | garbage that begins with 0xdeadbeef",
                "5652424e02010000             | cut short",
                "5652424e0201000000000000     | another version of Verbena: it speaks protocol 2",
                "5652424e0100000000000000     | kind 0",
                "5652424e0109000000000000     | kind 9",
                "5652424e0101000100000000     | garbage",
                "5652424e0101000000000401     | a HELLO frame of 1025 bytes, where the limit is"
                        + " 1024",
                "5652424e01010000ffffffff     | a HELLO frame of 4294967295 bytes",
                "5652424e010100000000000401   | HELLO cut short, 1 of 4 bytes",
                "5652                         | cut short, 2 of 4 bytes",
            })
    void saysWhatStrangeBytesLookLike(String hex, String message) {
        assertThatThrownBy(() -> read(HexFormat.of().parseHex(hex)))
                .isInstanceOfAny(ControlProtocolException.class, EOFException.class)
                .hasMessageContaining(message);
    }

    @Test
    void judgesAStrangerWithoutWaitingForAWholeHeader() {
        InputStream neverMore =
                new InputStream() {
                    @Override
                    public int read() {
                        throw new AssertionError("a fifth byte was asked for");
                    }

                    @Override
                    public int read(byte[] bytes, int offset, int length) {
                        return read();
                    }
                };
        InputStream fourBytesThenNeverMore =
                new SequenceInputStream(
                        new ByteArrayInputStream("GET ".getBytes(StandardCharsets.US_ASCII)),
                        neverMore);

        assertThatThrownBy(() -> ControlFrame.read(fourBytesThenNeverMore, LIMIT))
                .isInstanceOf(ControlProtocolException.class);
    }

    @Test
    void takesMemoryForBytesThatArriveOnlyAndNotForThoseAnnounced() {
        // No JVM has an array of so many bytes: to allocate what is announced would fail at once.
        byte[] header = HexFormat.of().parseHex("5652424e010600007fffffff");

        assertThatThrownBy(() ->
                        ControlFrame.read(
                                new BufferedInputStream(new ByteArrayInputStream(header)),
                                Integer.MAX_VALUE))
                .isInstanceOf(EOFException.class)
                .hasMessageContaining("0 of 2147483647");
    }

    @Test
    void refusesAKindThatThereIsNot() {
        assertThatThrownBy(() -> new ControlFrame((byte) 9, new byte[0]))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void makesWordsFitForOneLineOfALog() {
        ControlFrame frame =
                ControlFrame.ofWords(ControlFrame.GOODBYE, "no\nroom\u001b[31m \u00e4");

        assertThat(frame.words()).isEqualTo("no?room?[31m \u00e4");
        assertThat(ControlFrame.ofWords(ControlFrame.GOODBYE, "").words()).contains("no reason");
        assertThat(ControlFrame.ofWords(ControlFrame.GOODBYE, "x".repeat(9999)).words())
                .hasSize(503)
                .endsWith("...");
        assertThat(
                        new ControlFrame(
                                        ControlFrame.GOODBYE,
                                        "y".repeat(9999).getBytes(StandardCharsets.UTF_8))
                                .words())
                .hasSizeLessThan(600);
    }

    /** Whatever bytes come, reading gives a frame or an IOException, and nothing else. */
    @Test
    void survivesMutatedBytes() throws IOException {
        byte[] hello =
                bytes(new ControlFrame(ControlFrame.HELLO, ControlPeers.hello("n").encode()));
        ControlMutations.forEach(
                hello,
                20_000,
                bytes -> {
                    try {
                        assertThat(read(bytes).payload().length).isLessThanOrEqualTo(LIMIT);
                    } catch (ControlProtocolException | EOFException expected) {
                        assertThat(expected).hasMessageNotContaining("null");
                    }
                });
    }

    private static byte[] bytes(ControlFrame frame) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        frame.write(out);
        return out.toByteArray();
    }

    private static ControlFrame read(byte[] bytes) throws IOException {
        return ControlFrame.read(new ByteArrayInputStream(bytes), LIMIT);
    }
}
