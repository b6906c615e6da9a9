package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.Test;

/**
 * A message comes out as it went in, and bytes that are none are refused without harm: cut short at
 * every length, with every byte changed, and at random.
 */
class KvMessageTest {
    private static final KvPools POOLS =
            KvPools.of(new long[] {0x1000, 0x9000}, new long[] {64, 32}, new int[] {8, 16});

    private static final KvCache CACHE =
            KvCache.of(new KvLayout.Heads(1, 2, 4, 2, 2), POOLS.withLayers(3, 3))
                    .rank(new TensorParallel(4, 8), 3)
                    .pageState("swa", new KvLayout.Latent(1, 4, 2, 4), pools(0x20000))
                    .mambaState("plain", pools(0x30000))
                    .mambaState(
                            "\u00fcber", pools(0x40000).withLayers(3), MambaTensor.of(4, 8, 16, 8))
                    .aux(pools(0x50000));

    private static final List<KvMessage> MESSAGES =
            List.of(
                    new KvMessage.Side(CACHE, Optional.of(new StagingArea(0x60000, 4096)), true),
                    new KvMessage.Side(
                            KvCache.of(new KvLayout.Latent(2, 16, 1, 2), POOLS),
                            Optional.empty(),
                            false),
                    new KvMessage.Announce(
                            -7, 42, true, new int[] {5, 0, 1 << 20}, new int[][] {{1, 2}, {}}, 8),
                    KvMessage.Announce.dummy(1, -5),
                    new KvMessage.Abort(8, -1, "too late"),
                    new KvMessage.Assigned(1, 2, 3, 1L << 40, 5, -6),
                    new KvMessage.Watermark(Long.MAX_VALUE),
                    new KvMessage.Failed(9, 3, "\u00fcber"),
                    new KvMessage.Ended(Long.MIN_VALUE, Integer.MIN_VALUE),
                    new KvMessage.Stage(1, 2, 3, 4, 5, 1L << 40),
                    new KvMessage.Aux(4, 5, new byte[] {1, -1, 0}));

    @Test
    void encodesWhatItDecoded() {
        for (KvMessage message : MESSAGES) {
            byte[] bytes = message.encode();
            assertThat(decode(bytes).encode()).as("%s", message).isEqualTo(bytes);
            assertThat(decode(bytes)).hasSameClassAs(message);
        }
    }

    @Test
    void decodesWhatWasEncoded() {
        for (int i : new int[] {4, 5, 6, 7, 8, 9}) {
            assertThat(decode(MESSAGES.get(i).encode())).isEqualTo(MESSAGES.get(i));
        }
        KvMessage.Announce announce = (KvMessage.Announce) decode(MESSAGES.get(2).encode());
        assertThat(announce.room()).isEqualTo(-7);
        assertThat(announce.token()).isEqualTo(42);
        assertThat(announce.needed()).isTrue();
        assertThat(announce.pages()).containsExactly(5, 0, 1 << 20);
        assertThat(announce.states()).isDeepEqualTo(new int[][] {{1, 2}, {}});
        assertThat(announce.auxSlot()).isEqualTo(8);
        assertThat(announce.slotCount()).isEqualTo(5);
        KvMessage.Aux aux = (KvMessage.Aux) decode(MESSAGES.get(10).encode());
        assertThat(aux.bytes()).containsExactly(1, -1, 0);
    }

    @Test
    void decodesACache() {
        KvMessage.Side side = (KvMessage.Side) decode(MESSAGES.get(0).encode());
        KvCache cache = side.cache();

        assertThat(side.auxByMessage()).isTrue();
        assertThat(side.ring()).contains(new StagingArea(0x60000, 4096));
        assertThat(cache.layout()).isEqualTo(CACHE.layout());
        assertThat(cache.tensorParallel()).isEqualTo(new TensorParallel(4, 8));
        assertThat(cache.rank()).isEqualTo(3);
        assertThat(cache.stateNames()).containsExactly("swa", "plain", "\u00fcber");
        assertThat(cache.pools().layer(1)).isEqualTo(3);
        assertThat(((KvState.Pages) cache.states().get(0)).layout())
                .isEqualTo(new KvLayout.Latent(1, 4, 2, 4));
        assertThat(((KvState.Mamba) cache.states().get(1)).tensors()).isEmpty();
        MambaTensor tensor = ((KvState.Mamba) cache.states().get(2)).tensors().getFirst();
        assertThat(tensor.rowBytes()).isEqualTo(4);
        assertThat(tensor.groupRows(1)).isEqualTo(16);
        assertThat(cache.auxBuffers().orElseThrow().base(0)).isEqualTo(0x50000);
    }

    @Test
    void decodesPoolsWithAndWithoutLayers() {
        KvPools plain = ((KvMessage.Side) decode(MESSAGES.get(1).encode())).cache().pools();

        assertThat(plain.hasLayers()).isFalse();
        assertThat(plain.size()).isEqualTo(2);
        assertThat(plain.base(1)).isEqualTo(0x9000);
        assertThat(plain.itemBytes(1)).isEqualTo(32);
        assertThat(plain.itemCount(1)).isEqualTo(16);
    }

    @Test
    void refusesAnotherVersion() {
        byte[] bytes = MESSAGES.get(0).encode();
        ByteBuffer.wrap(bytes).putShort(1, (short) 7);

        assertThatIllegalArgumentException()
                .isThrownBy(() -> decode(bytes))
                .withMessageContaining("version 7")
                .withMessageContaining("this side " + KvMessage.VERSION);
    }

    @Test
    void refusesBytesBehindAMessage() {
        for (KvMessage message : MESSAGES) {
            byte[] whole = message.encode();
            if (!endsInText(message)) {
                assertThatIllegalArgumentException()
                        .as("%s", message)
                        .isThrownBy(() -> decode(Arrays.copyOf(whole, whole.length + 1)));
            }
        }
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
            int needed = endsInText(message) ? 1 + Long.BYTES + Integer.BYTES : whole.length;
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
        int pages = 1 + Long.BYTES + Integer.BYTES + 1 + Integer.BYTES;
        for (int count : new int[] {-1, 2, 6, KvMessage.MAX_SLOTS + 1, Integer.MAX_VALUE}) {
            byte[] bytes = MESSAGES.get(2).encode();
            assertThat(ByteBuffer.wrap(bytes).getInt(pages)).isEqualTo(3);
            ByteBuffer.wrap(bytes).putInt(pages, count);
            assertThatIllegalArgumentException().isThrownBy(() -> decode(bytes));
        }
        int pools = 1 + Short.BYTES + 1 + 4 * Integer.BYTES + 1;
        for (int count : new int[] {-1, 1, 3, KvCache.MAX_POOLS + 1, Integer.MIN_VALUE}) {
            byte[] bytes = MESSAGES.get(1).encode();
            assertThat(ByteBuffer.wrap(bytes).getInt(pools)).isEqualTo(2);
            ByteBuffer.wrap(bytes).putInt(pools, count);
            assertThatIllegalArgumentException().isThrownBy(() -> decode(bytes));
        }
    }

    @Test
    void refusesMoreSlotsThanARequestHas() {
        int half = KvMessage.MAX_SLOTS / 2;
        KvMessage most =
                new KvMessage.Announce(1, 2, true, new int[half], new int[][] {new int[half]}, -1);
        KvMessage more =
                new KvMessage.Announce(
                        1, 2, true, new int[half], new int[][] {new int[half + 1]}, -1);

        assertThat(decode(most.encode())).isNotNull();
        assertThatIllegalArgumentException().isThrownBy(() -> decode(more.encode()));
    }

    @Test
    void refusesKindsThatItDoesNotKnow() {
        for (int kind : new int[] {0, 10, -1}) {
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

    private static boolean endsInText(KvMessage message) {
        return message instanceof KvMessage.Abort || message instanceof KvMessage.Failed;
    }

    private static KvPools pools(long base) {
        return KvPools.of(new long[] {base}, new long[] {32}, new int[] {4});
    }

    private static KvMessage decode(byte[] bytes) {
        return KvMessage.decode(ByteBuffer.wrap(bytes));
    }
}
