package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.transfer.TransferBatch;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/**
 * Category 8, byte by byte and in both directions: every row of every group goes from the rank that
 * holds it to the rank that holds it, and the ranks that face a decode rank fill its state exactly.
 */
class MambaSlicePlannerTest {
    private static final int[] SIZES = {1, 2, 4, 8};
    private static final MambaTensor CONV = MambaTensor.of(2, 8, 8, 16);
    private static final KvPools PREFILL =
            KvPools.of(new long[] {1000}, new long[] {32}, new int[] {3});
    private static final KvPools DECODE =
            KvPools.of(new long[] {5000}, new long[] {16}, new int[] {2});
    private static final RankPair RANKS = new RankPair(2, 1, 4, 2);

    @Test
    void movesTheRowsThatBothRanksHold() {
        Seeds.forEach(
                3000,
                random -> {
                    Sides sides = new Sides(random);
                    int prefillRank = random.nextInt(sides.prefillSize);
                    int decodeRank = random.nextInt(sides.decodeSize);

                    ByteMap moved = sides.plan(prefillRank, decodeRank);

                    moved.assertSame(sides.model(prefillRank, decodeRank));
                });
    }

    @Test
    void fillsTheStateOfADecodeRankFromTheRanksThatFaceIt() {
        Seeds.forEach(
                1000,
                random -> {
                    Sides sides = new Sides(random);
                    int decodeRank = random.nextInt(sides.decodeSize);
                    RankMap ranks = RankMap.of(sides.prefillSize, sides.decodeSize, 1);

                    ByteMap moved = new ByteMap();
                    for (int prefillRank : ranks.prefillRanksOf(decodeRank)) {
                        moved.add(sides.plan(prefillRank, decodeRank));
                    }

                    long bytes = 0;
                    for (MambaTensor tensor : sides.tensors) {
                        bytes += tensor.itemBytes(sides.decodeSize);
                    }
                    assertThat(moved.bytes()).isEqualTo(bytes);
                });
    }

    @Test
    void plansABlockPerGroup() {
        TransferBatch batch = plan(List.of(CONV), RANKS, new int[] {1}, new int[] {1});

        assertThat(NormalForm.blocks(batch))
                .containsExactly(
                        new NormalForm.Move(1032, 5016, 4),
                        new NormalForm.Move(1040, 5020, 4),
                        new NormalForm.Move(1048, 5024, 8));
    }

    @Test
    void refusesAnyNumberOfStatesButOne() {
        assertThatThrownBy(() -> plan(List.of(CONV), RANKS, new int[] {0, 1}, new int[] {0}))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("prefillStates has 2 entries: a request has exactly one Mamba state");
        assertThatThrownBy(() -> plan(List.of(CONV), RANKS, new int[] {0}, new int[0]))
                .hasMessage("decodeStates has 0 entries: a request has exactly one Mamba state");
    }

    @Test
    void refusesAStateOutsideItsTensor() {
        assertThatThrownBy(() -> plan(List.of(CONV), RANKS, new int[] {0}, new int[] {2}))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("decodeStates[0] = 2 is outside 0..1: decode pool 0 holds 2 items");
    }

    @Test
    void refusesAnItemLengthThatIsNotThatOfTheRows() {
        MambaTensor other = MambaTensor.of(2, 8, 8, 8);

        assertThatThrownBy(() -> plan(List.of(other), RANKS, new int[] {0}, new int[] {0}))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "items of prefill pool 0 are 32 bytes, its rows at TP size 2 are 24 bytes");
        assertThatThrownBy(() ->
                        plan(List.of(CONV), new RankPair(2, 0, 8, 0), new int[] {0}, new int[] {0}))
                .hasMessage(
                        "items of decode pool 0 are 16 bytes, its rows at TP size 8 are 8 bytes");
    }

    @Test
    void refusesAGroupThatATpSizeDoesNotDivide() {
        MambaTensor odd = MambaTensor.of(2, 8, 8, 18);

        assertThatThrownBy(() -> odd.itemBytes(4))
                .hasMessage("group 2 has 18 rows, not divisible by TP size 4");
        KvPools prefill = KvPools.of(new long[] {0}, new long[] {34}, new int[] {1});
        assertThatThrownBy(() ->
                        MambaSlicePlanner.plan(
                                prefill, DECODE, List.of(odd), RANKS, new int[] {0}, new int[] {0}))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "tensor of decode pool 0: group 2 has 18 rows, not divisible by TP size 4");
    }

    @Test
    void refusesAnotherNumberOfTensors() {
        assertThatThrownBy(() -> plan(List.of(), RANKS, new int[] {0}, new int[] {0}))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("tensors has 0 entries for 1 prefill pools");
    }

    @Test
    void refusesAnImpossibleTensor() {
        assertThatThrownBy(() -> MambaTensor.of(0, 1))
                .hasMessage("rowBytes is 0, must be at least 1");
        assertThatThrownBy(() -> MambaTensor.of(1))
                .hasMessage("number of groups is 0, must be at least 1");
        assertThatThrownBy(() -> MambaTensor.of(1, 4, -4))
                .hasMessage("rows of group 1 is -4, must be at least 1");
        assertThatThrownBy(() -> MambaTensor.of(1L << 62, 4))
                .hasMessageContaining("bytes of the tensor: 4611686018427387904 x 4");
    }

    private static TransferBatch plan(
            List<MambaTensor> tensors, RankPair ranks, int[] prefillStates, int[] decodeStates) {
        return MambaSlicePlanner.plan(PREFILL, DECODE, tensors, ranks, prefillStates, decodeStates);
    }

    /** Random tensors, with the pools of any rank of either side. */
    private static final class Sides {
        final int prefillSize;
        final int decodeSize;
        final List<MambaTensor> tensors = new ArrayList<>();
        final int prefillState;
        final int decodeState;

        Sides(Random random) {
            prefillSize = SIZES[random.nextInt(SIZES.length)];
            decodeSize = SIZES[random.nextInt(SIZES.length)];
            int largest = Math.max(prefillSize, decodeSize);
            for (int i = 1 + random.nextInt(3); i > 0; i--) {
                int[] groups = new int[1 + random.nextInt(3)];
                for (int group = 0; group < groups.length; group++) {
                    groups[group] = largest * (1 + random.nextInt(3));
                }
                tensors.add(MambaTensor.of(1 + random.nextInt(4), groups));
            }
            prefillState = random.nextInt(4);
            decodeState = random.nextInt(4);
        }

        ByteMap plan(int prefillRank, int decodeRank) {
            return ByteMap.of(
                    MambaSlicePlanner.plan(
                            pools(RandomLayouts.PREFILL_SPACE, prefillSize, prefillRank),
                            pools(RandomLayouts.DECODE_SPACE, decodeSize, decodeRank),
                            tensors,
                            new RankPair(prefillSize, prefillRank, decodeSize, decodeRank),
                            new int[] {prefillState},
                            new int[] {decodeState}));
        }

        ByteMap model(int prefillRank, int decodeRank) {
            ByteMap model = new ByteMap();
            KvPools prefill = pools(RandomLayouts.PREFILL_SPACE, prefillSize, prefillRank);
            KvPools decode = pools(RandomLayouts.DECODE_SPACE, decodeSize, decodeRank);
            for (int i = 0; i < tensors.size(); i++) {
                MambaTensor tensor = tensors.get(i);
                int[] prefillRows = rows(tensor, prefillSize, prefillRank);
                int[] decodeRows = rows(tensor, decodeSize, decodeRank);
                for (int p = 0; p < prefillRows.length; p++) {
                    for (int d = 0; d < decodeRows.length; d++) {
                        if (prefillRows[p] == decodeRows[d]) {
                            model.copy(
                                    row(prefill, i, prefillState, p, tensor.rowBytes()),
                                    row(decode, i, decodeState, d, tensor.rowBytes()),
                                    tensor.rowBytes());
                        }
                    }
                }
            }
            return model;
        }

        /** Which rows of the whole tensor a rank holds, in its order. */
        private static int[] rows(MambaTensor tensor, int size, int rank) {
            List<Integer> rows = new ArrayList<>();
            int first = 0;
            for (int group = 0; group < tensor.groupCount(); group++) {
                int share = tensor.groupRows(group) / size;
                for (int i = 0; i < share; i++) {
                    rows.add(first + rank * share + i);
                }
                first += tensor.groupRows(group);
            }
            return rows.stream().mapToInt(Integer::intValue).toArray();
        }

        private static long row(KvPools pools, int pool, int state, int row, long rowBytes) {
            return pools.base(pool) + state * pools.itemBytes(pool) + row * rowBytes;
        }

        private KvPools pools(long space, int size, int rank) {
            long[] bases = new long[tensors.size()];
            long[] itemBytes = new long[bases.length];
            int[] counts = new int[bases.length];
            for (int pool = 0; pool < bases.length; pool++) {
                bases[pool] = space + ((long) rank << 32) + ((long) pool << 20);
                itemBytes[pool] = tensors.get(pool).itemBytes(size);
                counts[pool] = 4;
            }
            return KvPools.of(bases, itemBytes, counts);
        }
    }
}
