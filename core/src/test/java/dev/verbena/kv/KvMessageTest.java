package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/**
 * A message comes out as it went in, and bytes that are none are refused without harm: cut short at
 * every length, with every byte changed, and at random.
 */
class KvMessageTest {
    private static final KvPools POOLS =
            KvPools.of(new long[] {0x1000, 0x9000}, new long[] {64, 32}, new int[] {8, 16});

    private static final List<KvMessage> MESSAGES =
            List.of(
                    new KvMessage.Pools(POOLS),
                    new KvMessage.Pools(POOLS.withLayers(3, 4)),
                    new KvMessage.Announce(-7, 42, new int[] {5, 0, 1 << 20}),
                    new KvMessage.Abort(8, -1, "too late"),
                    new KvMessage.Failed(9, 3, "\u00fcber"),
                    new KvMessage.Ended(Long.MIN_VALUE, Integer.MIN_VALUE));

    @Test
    void decodesWhatWasEncoded() {
        assertThat(decode(MESSAGES.get(3).encode())).isEqualTo(MESSAGES.get(3));
        assertThat(decode(MESSAGES.get(4).encode())).isEqualTo(MESSAGES.get(4));
        assertThat(decode(MESSAGES.get(5).encode())).isEqualTo(MESSAGES.get(5));

        KvMessage.Announce announce = (KvMessage.Announce) decode(MESSAGES.get(2).encode());
        assertThat(announce.room()).isEqualTo(-7);
        assertThat(announce.token()).isEqualTo(42);
        assertThat(announce.pages()).containsExactly(5, 0, 1 << 20);
    }

    @Test
    void decodesPoolsWithAndWithoutLayers() {
        KvPools plain = ((KvMessage.Pools) decode(MESSAGES.get(0).encode())).pools();
        KvPools layered = ((KvMessage.Pools) decode(MESSAGES.get(1).encode())).pools();

        assertThat(plain.hasLayers()).isFalse();
        assertThat(plain.size()).isEqualTo(2);
        assertThat(plain.base(1)).isEqualTo(0x9000);
        assertThat(plain.itemBytes(1)).isEqualTo(32);
        assertThat(plain.itemCount(1)).isEqualTo(16);
        assertThat(layered.hasLayers()).isTrue();
        assertThat(layered.layer(1)).isEqualTo(4);
    }

    @Test
    void cutsTextsThatNobodyWouldRead() {
        KvMessage.Failed failed =
                (KvMessage.Failed) decode(new KvMessage.Failed(1, 2, "x".repeat(1 << 20)).encode());

        assertThat(failed.reason()).hasSize(KvMessage.MAX_TEXT_BYTES);
    }

    @Test
    void refusesMessagesThatAreCutShort() {
        for (KvMessage message : MESSAGES) {
            byte[] whole = message.encode();
            boolean endsInText =
                    message instanceof KvMessage.Abort || message instanceof KvMessage.Failed;
            int needed = endsInText ? 1 + KvMessage.ROOM_BYTES : whole.length;
            for (int length = 0; length < needed; length++) {
                ByteBuffer cut = ByteBuffer.wrap(whole, 0, length);
                assertThatIllegalArgumentException()
                        .as("%s, %d bytes", message, length)
                        .isThrownBy(() -> KvMessage.decode(cut));
            }
        }
    }

    @Test
    void refusesCountsThatDoNotMatchTheBytes() {
        for (int count : new int[] {-1, 2, 4, KvMessage.MAX_PAGES + 1, Integer.MAX_VALUE}) {
            byte[] bytes = MESSAGES.get(2).encode();
            ByteBuffer.wrap(bytes).putInt(13, count);
            assertThatIllegalArgumentException().isThrownBy(() -> decode(bytes));
        }
        for (int count : new int[] {-1, 1, 3, KvMessage.MAX_POOLS + 1, Integer.MIN_VALUE}) {
            byte[] bytes = MESSAGES.get(0).encode();
            ByteBuffer.wrap(bytes).putInt(2, count);
            assertThatIllegalArgumentException().isThrownBy(() -> decode(bytes));
        }
    }

    @Test
    void refusesKindsThatItDoesNotKnow() {
        for (int kind : new int[] {0, 6, -1}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> decode(new byte[] {(byte) kind, 0, 0, 0, 0, 0, 0, 0, 0}))
                    .withMessageContaining("unknown kind " + kind);
        }
    }

    /** Whatever comes, it is a message or an {@link IllegalArgumentException}. */
    @Test
    void garbageIsAMessageOrRefused() {
        Random random = new Random(1);
        for (int round = 0; round < 100_000; round++) {
            byte[] bytes = MESSAGES.get(random.nextInt(MESSAGES.size())).encode();
            for (int change = random.nextInt(4); change >= 0; change--) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
            }
            try {
                assertThat(decode(bytes)).isNotNull();
            } catch (IllegalArgumentException refused) {
                assertThat(refused).hasMessageMatching("(?s).+");
            }
        }
    }

    private static KvMessage decode(byte[] bytes) {
        return KvMessage.decode(ByteBuffer.wrap(bytes));
    }
}
