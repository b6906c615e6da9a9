package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.memory.PoolDescriptor;
import dev.verbena.tcp.LaneToken;
import dev.verbena.verbs.Gid;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A hello goes through unchanged, and bytes that are none are refused without harm. */
final class HelloTest {
    private static final Gid.Address GID = ControlPeers.gid("fe800000000000000000000000000001");

    @Test
    void decodesWhatWasEncoded() {
        Hello hello = ControlPeers.hello("decode-0 \u00fc");

        assertThat(Hello.decode(hello.encode())).isEqualTo(hello);
    }

    @Test
    void decodesTheLimits() {
        List<Hello.Endpoint> most =
                Collections.nCopies(256, new Hello.Endpoint(0xffffff, 0xffffff));
        Hello largest =
                new Hello(
                        "n".repeat(255),
                        -1,
                        new Hello.Rdma(false, GID, 65535, 4096, 255, most),
                        List.of());
        Hello smallest =
                new Hello(
                        "n",
                        0,
                        new Hello.Rdma(true, GID, 0, 256, 0, List.of(new Hello.Endpoint(0, 0))),
                        List.of());

        assertThat(Hello.decode(largest.encode())).isEqualTo(largest);
        assertThat(Hello.decode(smallest.encode())).isEqualTo(smallest);
    }

    @Test
    void decodesTheDataConnectionsOfTcp() {
        List<LaneToken> most = Collections.nCopies(256, new LaneToken(-1, 1));
        Hello largest = new Hello("n", 1, new Hello.Tcp(65535, most), List.of());
        Hello smallest =
                new Hello("n", 1, new Hello.Tcp(0, List.of(new LaneToken(0, 0))), List.of());

        assertThat(Hello.decode(largest.encode())).isEqualTo(largest);
        assertThat(Hello.decode(smallest.encode())).isEqualTo(smallest);
    }

    @Test
    void refusesTcpNumbersOutOfRange() {
        List<LaneToken> one = List.of(LaneToken.random());
        List<LaneToken> tooMany = Collections.nCopies(257, LaneToken.random());

        assertThatThrownBy(() -> new Hello.Tcp(65536, one)).hasMessageContaining("65536");
        assertThatThrownBy(() -> new Hello.Tcp(-1, one)).hasMessageContaining("-1");
        assertThatThrownBy(() -> new Hello.Tcp(1, List.of())).hasMessageContaining("lanes");
        assertThatThrownBy(() -> new Hello.Tcp(1, tooMany)).hasMessageContaining("257");
    }

    @Test
    void decodesPoolsAlone() {
        List<PoolDescriptor> pools =
                List.of(ControlPeers.pool("a", 1), ControlPeers.pool("b", 500));

        assertThat(Hello.decodePools(Hello.encodePools(pools))).isEqualTo(pools);
        assertThat(Hello.decodePools(Hello.encodePools(List.of()))).isEmpty();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "-1 | 4096 | 1 | LID is -1",
                "65536 | 4096 | 1 | LID is 65536",
                "0 | 128 | 1 | MTU is 128",
                "0 | 8192 | 1 | MTU is 8192",
                "0 | 1500 | 1 | not a power of two",
                "0 | 4096 | 256 | reads as responder is 256",
                "0 | 4096 | -1 | reads as responder is -1",
            })
    void refusesNumbersOutOfRange(int lid, int mtu, int reads, String message) {
        List<Hello.Endpoint> one = List.of(new Hello.Endpoint(1, 1));

        assertThatThrownBy(() -> new Hello.Rdma(true, GID, lid, mtu, reads, one))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(message);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "line\nbreak", "\ud800 alone"})
    void refusesNamesThatCannotBeShownOrSent(String name) {
        assertThatThrownBy(() -> ControlPeers.hello(name))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("name");
    }

    @Test
    void refusesANameOfMoreThan255Bytes() {
        assertThatThrownBy(() -> ControlPeers.hello("\u00fc".repeat(128)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("256, outside 1..255");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 257})
    void refusesTooFewAndTooManyQueuePairs(int count) {
        List<Hello.Endpoint> queuePairs = Collections.nCopies(count, new Hello.Endpoint(1, 1));

        assertThatThrownBy(() -> new Hello.Rdma(true, GID, 0, 4096, 1, queuePairs))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("queue pairs");
    }

    @ParameterizedTest
    @CsvSource({"-1, 0", "16777216, 0", "0, -1", "0, 16777216"})
    void refusesNumbersOfMoreThan24Bits(int number, int psn) {
        assertThatThrownBy(() -> new Hello.Endpoint(number, psn))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("outside 0..16777215");
    }

    @Test
    void refusesEveryTruncation() {
        byte[] whole = ControlPeers.hello("node").encode();

        for (int length = 0; length < whole.length; length++) {
            byte[] cut = Arrays.copyOf(whole, length);
            assertThatThrownBy(() -> Hello.decode(cut))
                    .isInstanceOf(IllegalArgumentException.class);
        }
    }

    @Test
    void refusesTrailingBytes() {
        byte[] hello = ControlPeers.hello("node").encode();
        byte[] pools = Hello.encodePools(List.of(ControlPeers.pool("a", 1)));

        assertThatThrownBy(() -> Hello.decode(Arrays.copyOf(hello, hello.length + 1)))
                .hasMessageContaining("1 bytes follow");
        assertThatThrownBy(() -> Hello.decodePools(Arrays.copyOf(pools, pools.length + 3)))
                .hasMessageContaining("3 bytes follow");
    }

    @Test
    void refusesMorePoolsThanTheBytesCouldHold() {
        byte[] twoBillionPools = ByteBuffer.allocate(64).putInt(Integer.MAX_VALUE).array();

        assertThatThrownBy(() -> Hello.decodePools(twoBillionPools))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("number of pools");
    }

    /** Whatever bytes come: a hello that can be sent again, or an IllegalArgumentException. */
    @Test
    void survivesMutatedBytes() {
        List<byte[]> decoded = new ArrayList<>();
        ControlMutations.forEach(
                ControlPeers.hello("node").encode(),
                20_000,
                bytes -> {
                    try {
                        Hello hello = Hello.decode(bytes);
                        assertThat(Hello.decode(hello.encode())).isEqualTo(hello);
                        decoded.add(bytes);
                    } catch (IllegalArgumentException expected) {
                        assertThat(expected).hasMessageNotContaining("null");
                    }
                });

        assertThat(decoded)
                .as("mutations that still decode: the others alone prove little")
                .isNotEmpty();
    }

    @Test
    void survivesMutatedPools() {
        ControlMutations.forEach(
                Hello.encodePools(List.of(ControlPeers.pool("a", 2), ControlPeers.pool("b", 1))),
                20_000,
                bytes -> {
                    try {
                        Hello.encodePools(Hello.decodePools(bytes));
                    } catch (IllegalArgumentException expected) {
                        assertThat(expected).hasMessageNotContaining("null");
                    }
                });
    }
}
