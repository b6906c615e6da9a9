package dev.verbena.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.verbs.Access;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/**
 * A descriptor comes back as it was sent, its bytes are those of the documented format, and
 * whatever a peer sends instead is refused in one way: {@link IllegalArgumentException}.
 */
class PoolDescriptorTest {
    private static final long SEED = 20260102;

    private static final PoolDescriptor DESCRIPTOR =
            new PoolDescriptor(
                    "kv",
                    7,
                    0x7f00_0000_1000L,
                    0x3000,
                    Set.of(Access.REMOTE_WRITE),
                    List.of(
                            new PoolDescriptor.Region(0x2000, 0x11223344),
                            new PoolDescriptor.Region(0x1000, -2)));

    @Test
    void comesBackAsItWasSent() {
        Random random = new Random(SEED);
        for (int round = 0; round < 500; round++) {
            PoolDescriptor sent = random(random);
            ByteBuffer buffer = ByteBuffer.allocate(sent.encodedBytes());
            sent.encode(buffer);
            assertThat(buffer.remaining()).isZero();

            assertThat(PoolDescriptor.decode(buffer.flip())).as("seed %d", SEED).isEqualTo(sent);
            assertThat(buffer.remaining()).isZero();
        }
    }

    @Test
    void hasTheDocumentedBytes() {
        String expected =
                "0001" // version
                        + "0000003c" // length of what follows
                        + "0000000000000007" // generation
                        + "00007f0000001000" // address
                        + "0000000000003000" // length
                        + "00000003" // local and remote write
                        + "0002" // length of the name
                        + "6b76"
                        + "00000002" // regions
                        + "0000000000002000"
                        + "11223344"
                        + "0000000000001000"
                        + "fffffffe";

        assertThat(HexFormat.of().formatHex(encoded(DESCRIPTOR))).isEqualTo(expected);
    }

    @Test
    void decodesSeveralInARow() {
        PoolDescriptor second = random(new Random(SEED));
        ByteBuffer buffer = ByteBuffer.allocate(DESCRIPTOR.encodedBytes() + second.encodedBytes());
        DESCRIPTOR.encode(buffer);
        second.encode(buffer);
        buffer.flip();

        assertThat(PoolDescriptor.decode(buffer)).isEqualTo(DESCRIPTOR);
        assertThat(PoolDescriptor.decode(buffer)).isEqualTo(second);
    }

    @Test
    void needsTheRoomItSays() {
        ByteBuffer small = ByteBuffer.allocate(DESCRIPTOR.encodedBytes() - 1);

        assertThatThrownBy(() -> DESCRIPTOR.encode(small))
                .isInstanceOf(BufferOverflowException.class);
    }

    @Test
    void refusesEveryTruncation() {
        byte[] bytes = encoded(DESCRIPTOR);
        for (int length = 0; length < bytes.length; length++) {
            ByteBuffer cut = ByteBuffer.wrap(bytes, 0, length);
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> PoolDescriptor.decode(cut))
                    .withMessageContaining("cut short");
        }
    }

    @Test
    void refusesAnotherVersion() {
        byte[] bytes = encoded(DESCRIPTOR);
        bytes[1] = 2;

        assertThatIllegalArgumentException()
                .isThrownBy(() -> PoolDescriptor.decode(ByteBuffer.wrap(bytes)))
                .withMessageContaining("version 2");
    }

    /** Counts and lengths are where a bad peer would aim: each is set to the worst values. */
    @Test
    void refusesLengthsThatLie() {
        int[] offsetsOfInts = {2, 34 + 2 + 2};
        for (int offset : offsetsOfInts) {
            for (int lie : new int[] {-1, Integer.MIN_VALUE, Integer.MAX_VALUE, 0x15555556, 0}) {
                byte[] bytes = encoded(DESCRIPTOR);
                ByteBuffer.wrap(bytes).putInt(offset, lie);
                assertThatIllegalArgumentException()
                        .as("%d at %d", lie, offset)
                        .isThrownBy(() -> PoolDescriptor.decode(ByteBuffer.wrap(bytes)));
            }
        }
        for (int lie : new int[] {0, 1, 3, 0xffff}) {
            byte[] bytes = encoded(DESCRIPTOR);
            ByteBuffer.wrap(bytes).putShort(34, (short) lie);
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> PoolDescriptor.decode(ByteBuffer.wrap(bytes)));
        }
    }

    @Test
    void onlyRefusesWhateverBytesCome() {
        Random random = new Random(SEED);
        int refused = 0;
        for (int round = 0; round < 100_000; round++) {
            byte[] bytes = mutated(encoded(random(random)), random);
            try {
                PoolDescriptor decoded = PoolDescriptor.decode(ByteBuffer.wrap(bytes));
                assertThat(decoded.encodedBytes()).isLessThanOrEqualTo(3 * bytes.length);
            } catch (IllegalArgumentException expected) {
                refused++;
            } catch (RuntimeException | Error other) {
                throw new AssertionError(
                        "seed " + SEED + ": " + HexFormat.of().formatHex(bytes), other);
            }
        }
        assertThat(refused).as("mutations do damage").isGreaterThan(50_000);
    }

    @Test
    void refusesRegionsThatDoNotCoverThePool() {
        long[][] bad = {{}, {0x2000}, {0x2000, 0x1001}, {0x3000, 0}, {0x4000, -0x1000}, {-1}};
        for (long[] lengths : bad) {
            List<PoolDescriptor.Region> regions = new ArrayList<>();
            for (long length : lengths) {
                regions.add(new PoolDescriptor.Region(length, 1));
            }
            assertThatIllegalArgumentException()
                    .isThrownBy(
                            () -> new PoolDescriptor("kv", 1, 0x1000, 0x3000, Set.of(), regions))
                    .withMessageContaining("pool 'kv'");
        }
    }

    @Test
    void refusesRangesThatPassTheAddressSpace() {
        List<PoolDescriptor.Region> regions = List.of(new PoolDescriptor.Region(0x3000, 1));

        assertThatIllegalArgumentException()
                .isThrownBy(() -> new PoolDescriptor("kv", 1, -0x1000, 0x3000, Set.of(), regions))
                .withMessageContaining("passes the address space");
    }

    @Test
    void refusesNamesThatAreEmptyOrTooLong() {
        List<PoolDescriptor.Region> regions = List.of(new PoolDescriptor.Region(1, 1));
        for (String name : new String[] {"", "x".repeat(256), "\u00e4".repeat(128)}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> new PoolDescriptor(name, 1, 1, 1, Set.of(), regions))
                    .withMessageContaining("1..255 bytes");
        }
        new PoolDescriptor("\u00e4".repeat(127), 1, 1, 1, Set.of(), regions);
    }

    @Test
    void saysWhatAccessImplies() {
        assertThat(DESCRIPTOR.access())
                .containsExactlyInAnyOrder(Access.REMOTE_WRITE, Access.LOCAL_WRITE);
    }

    private static byte[] encoded(PoolDescriptor descriptor) {
        ByteBuffer buffer = ByteBuffer.allocate(descriptor.encodedBytes());
        descriptor.encode(buffer);
        return buffer.array();
    }

    private static PoolDescriptor random(Random random) {
        List<PoolDescriptor.Region> regions = new ArrayList<>();
        long length = 0;
        int count = 1 + random.nextInt(5);
        for (int i = 0; i < count; i++) {
            long part = 1 + random.nextLong(1L << 40);
            regions.add(new PoolDescriptor.Region(part, random.nextInt()));
            length += part;
        }
        String name =
                random.ints(1 + random.nextInt(20), 'a', 0x250)
                        .collect(
                                StringBuilder::new,
                                StringBuilder::appendCodePoint,
                                StringBuilder::append)
                        .toString();
        assertThat(name.getBytes(StandardCharsets.UTF_8)).hasSizeLessThan(256);
        return new PoolDescriptor(
                name,
                random.nextLong(),
                random.nextLong(Long.MAX_VALUE) << 1 & ~(0xffL << 56),
                length,
                Access.of(random.nextInt(256)),
                regions);
    }

    private static byte[] mutated(byte[] bytes, Random random) {
        int length = random.nextInt(4) == 0 ? random.nextInt(bytes.length + 9) : bytes.length;
        byte[] mutated = new byte[length];
        System.arraycopy(bytes, 0, mutated, 0, Math.min(length, bytes.length));
        int changes = random.nextInt(4);
        for (int i = 0; i < changes && length > 0; i++) {
            int at = random.nextInt(length);
            mutated[at] =
                    switch (random.nextInt(4)) {
                        case 0 -> (byte) random.nextInt();
                        case 1 -> (byte) 0xff;
                        case 2 -> 0;
                        default -> (byte) (mutated[at] ^ 1 << random.nextInt(8));
                    };
        }
        return mutated;
    }
}
