package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;

/** A cache refuses what contradicts itself, by name, and slots that are not of it. */
class KvCacheTest {
    private static final KvLayout HEADS = new KvLayout.Heads(2, 4, 8, 2, 16);
    private static final KvPools POOLS = HEADS.pools(0x1000, 8);
    private static final KvCache CACHE = KvCache.of(HEADS, POOLS);

    @Test
    void isOneRankThatHoldsAllHeadsUnlessToldOtherwise() {
        assertThat(CACHE.tensorParallel()).isEqualTo(new TensorParallel(1, 4));
        assertThat(CACHE.rank()).isZero();
        assertThat(CACHE.stateNames()).isEmpty();
        assertThat(CACHE.auxBuffers()).isEmpty();
    }

    @Test
    void refusesPoolsThatAreNotOfTheLayout() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KvCache.of(new KvLayout.Heads(3, 4, 8, 2, 16), POOLS))
                .withMessageContaining("4 pools")
                .withMessageContaining("3 layers x 2");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KvCache.of(new KvLayout.Heads(2, 3, 8, 2, 16), POOLS))
                .withMessageContaining("not divisible into 16 tokens x 3 heads");
    }

    @Test
    void refusesRanksThatHoldOtherHeads() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> CACHE.rank(new TensorParallel(4, 8), 0))
                .withMessageContaining("KV has 4 heads, and each rank has 2");
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> CACHE.rank(new TensorParallel(2, 8), 2))
                .withMessageContaining("rank 2 is outside 0..1");
        assertThat(CACHE.rank(new TensorParallel(2, 8), 1).rank()).isOne();

        KvLayout twoHeads = new KvLayout.Heads(1, 2, 8, 2, 4);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> CACHE.pageState("swa", twoHeads, twoHeads.pools(0, 4)))
                .withMessageContaining("state 'swa' has 2 heads, and each rank has 4");
        KvLayout fourHeads = new KvLayout.Heads(1, 4, 8, 2, 4);
        KvCache withState = CACHE.pageState("swa", fourHeads, fourHeads.pools(0, 4));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> withState.rank(new TensorParallel(4, 8), 0));
    }

    @Test
    void refusesStatesThatCannotBeTold() {
        KvPools slots = pools(1);
        KvCache named = CACHE.mambaState("mamba", slots);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> named.mambaState("mamba", slots))
                .withMessageContaining("state 'mamba' already");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> CACHE.mambaState("", slots))
                .withMessageContaining("0 bytes");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> CACHE.mambaState("x".repeat(256), slots))
                .withMessageContaining("256 bytes");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> CACHE.mambaState("mamba", pools(2), MambaTensor.of(4, 8)))
                .withMessageContaining("2 pools and 1 tensors");
        KvCache full = CACHE;
        for (int i = 0; i < KvCache.MAX_STATES; i++) {
            full = full.mambaState("state " + i, slots);
        }
        KvCache all = full;
        assertThatIllegalArgumentException()
                .isThrownBy(() -> all.mambaState("one more", slots))
                .withMessageContaining("at most 64 states");
    }

    @Test
    void refusesMorePoolsThanAMessageHolds() {
        KvPools most = pools(KvCache.MAX_POOLS - POOLS.size());
        KvCache full = CACHE.aux(most);

        assertThat(full.auxBuffers()).contains(most);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> full.mambaState("mamba", pools(1)))
                .withMessageContaining("65537 pools");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> CACHE.aux(pools(KvCache.MAX_POOLS - POOLS.size() + 1)));
    }

    private static KvPools pools(int count) {
        long[] bases = new long[count];
        long[] itemBytes = new long[count];
        int[] items = new int[count];
        for (int i = 0; i < count; i++) {
            bases[i] = 0x100000 + 32L * i;
            itemBytes[i] = 8;
            items[i] = 4;
        }
        return KvPools.of(bases, itemBytes, items);
    }
}
