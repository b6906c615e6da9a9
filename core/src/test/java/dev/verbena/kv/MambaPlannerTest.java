package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.transfer.TransferBatch;
import org.junit.jupiter.api.Test;

/** Categories 6 and 7, byte by byte: one item of every buffer or tensor, and exactly one. */
class MambaPlannerTest {
    private static final KvPools PREFILL =
            KvPools.of(new long[] {1000, 2000}, new long[] {6, 9}, new int[] {4, 3});
    private static final KvPools DECODE =
            KvPools.of(new long[] {5000, 6000}, new long[] {6, 9}, new int[] {2, 4});

    @Test
    void movesOneStateOfEveryTensor() {
        Seeds.forEach(
                1000,
                random -> {
                    int pools = 1 + random.nextInt(5);
                    long[] itemBytes = RandomLayouts.itemBytes(random, pools, 20);
                    KvPools prefill =
                            RandomLayouts.pools(random, RandomLayouts.PREFILL_SPACE, itemBytes, 5);
                    KvPools decode =
                            RandomLayouts.pools(random, RandomLayouts.DECODE_SPACE, itemBytes, 5);
                    int from = random.nextInt(5);
                    int to = random.nextInt(5);

                    TransferBatch states =
                            MambaPlanner.plan(prefill, decode, new int[] {from}, new int[] {to});
                    TransferBatch aux = AuxPlanner.plan(prefill, decode, from, to);

                    ByteMap model = new ByteMap();
                    for (int pool = 0; pool < pools; pool++) {
                        model.copy(
                                prefill.base(pool) + from * itemBytes[pool],
                                decode.base(pool) + to * itemBytes[pool],
                                itemBytes[pool]);
                    }
                    ByteMap.of(states).assertSame(model);
                    ByteMap.of(aux).assertSame(model);
                    assertThat(states.size()).isEqualTo(pools);
                });
    }

    @Test
    void refusesAnyNumberOfStatesButOne() {
        assertThatThrownBy(() -> plan(new int[] {0, 1}, new int[] {0}))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("prefillStates has 2 entries: a request has exactly one Mamba state");
        assertThatThrownBy(() -> plan(new int[] {0}, new int[] {0, 1}))
                .hasMessage("decodeStates has 2 entries: a request has exactly one Mamba state");
        assertThatThrownBy(() -> plan(new int[0], new int[] {0}))
                .hasMessage("prefillStates has 0 entries: a request has exactly one Mamba state");
    }

    @Test
    void refusesAStateOutsideTheSmallestTensorOfEitherSide() {
        assertThatThrownBy(() -> plan(new int[] {3}, new int[] {0}))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("prefillStates[0] = 3 is outside 0..2: prefill pool 1 holds 3 items");
        assertThatThrownBy(() -> plan(new int[] {0}, new int[] {2}))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("decodeStates[0] = 2 is outside 0..1: decode pool 0 holds 2 items");
    }

    @Test
    void refusesTensorsOfDifferentLength() {
        KvPools other = KvPools.of(new long[] {5000, 6000}, new long[] {6, 8}, new int[] {2, 4});

        assertThatThrownBy(() -> MambaPlanner.plan(PREFILL, other, new int[] {0}, new int[] {0}))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "items of prefill pool 1 are 9 bytes, those of decode pool 1 are 8 bytes");
        assertThatThrownBy(() -> AuxPlanner.plan(PREFILL, other, 0, 0))
                .hasMessageContaining("items of prefill pool 1 are 9 bytes");
    }

    @Test
    void refusesAnAuxItemOutsideItsBuffer() {
        assertThatThrownBy(() -> AuxPlanner.plan(PREFILL, DECODE, -1, 0))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("prefillIndex = -1 is outside 0..2: prefill pool 1 holds 3 items");
        assertThatThrownBy(() -> AuxPlanner.plan(PREFILL, DECODE, 0, 2))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("decodeIndex = 2 is outside 0..1: decode pool 0 holds 2 items");
    }

    @Test
    void refusesAnotherNumberOfBuffers() {
        KvPools one = KvPools.of(new long[] {5000}, new long[] {6}, new int[] {2});

        assertThatThrownBy(() -> AuxPlanner.plan(PREFILL, one, 0, 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("the prefill side has 2 pools and the decode side 1");
    }

    private static TransferBatch plan(int[] prefillStates, int[] decodeStates) {
        return MambaPlanner.plan(PREFILL, DECODE, prefillStates, decodeStates);
    }
}
