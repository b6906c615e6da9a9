package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.transfer.TransferBatch;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * Categories 1, 2 and 4 share one map of pages: each is held to the model byte by byte, on layouts
 * small enough to enumerate, with pools in any order and item lengths that differ.
 */
class PagePlannerTest {
    private static final KvPools PREFILL = new KvLayout.Latent(2, 5, 2, 1).pools(1000, 8);
    private static final KvPools DECODE = new KvLayout.Latent(2, 5, 2, 1).pools(5000, 6);

    @Test
    void movesEveryByteOfEveryPage() {
        Seeds.forEach(
                4000,
                random -> {
                    Layout layout = Layout.random(random);

                    ByteMap.of(layout.plan()).assertSame(layout.model());
                });
    }

    @Test
    void plansTheSameLayerByLayer() {
        Seeds.forEach(
                2000,
                random -> {
                    Layout layout = Layout.random(random);

                    List<TransferBatch> batches =
                            LayerPlanner.plan(
                                    layout.prefill, layout.decode, layout.sources, layout.targets);

                    assertThat(batches).hasSize(layout.layers);
                    for (int layer = 0; layer < layout.layers; layer++) {
                        ByteMap.of(batches.get(layer)).assertSame(layout.modelOfLayer(layer));
                    }
                });
    }

    @Test
    void plansStatePagesTheSameWay() {
        Seeds.forEach(
                1000,
                random -> {
                    Layout layout = Layout.random(random);

                    TransferBatch batch =
                            StatePlanner.plan(
                                    layout.prefill, layout.decode, layout.sources, layout.targets);

                    ByteMap.of(batch).assertSame(layout.model());
                });
    }

    @Test
    void boundsThePagesOfABatch() {
        Seeds.forEach(
                2000,
                random -> {
                    Layout layout = Layout.random(random);
                    int bound = 1 + random.nextInt(7);

                    List<TransferBatch> batches =
                            PagePlanner.planBounded(
                                    layout.prefill,
                                    layout.decode,
                                    layout.sources,
                                    layout.targets,
                                    bound);

                    ByteMap.of(batches).assertSame(layout.model());
                    assertThat(batches).hasSize((layout.sources.length + bound - 1) / bound);
                    assertThat(batches).noneMatch(TransferBatch::isEmpty);
                });
    }

    @Test
    void leavesNoTwoBlocksOfAPoolThatCouldBeOne() {
        Seeds.forEach(
                2000,
                random -> {
                    Layout layout = Layout.random(random);
                    TransferBatch batch = layout.plan();
                    int runs = batch.size() / layout.prefill.size();

                    for (int pool = 0; pool < layout.prefill.size(); pool++) {
                        List<NormalForm.Move> blocks =
                                NormalForm.blocks(batch).subList(pool * runs, (pool + 1) * runs);
                        assertThat(NormalForm.merged(blocks)).isEqualTo(blocks);
                        assertThat(blocks).extracting(NormalForm.Move::destination).isSorted();
                    }
                });
    }

    @Test
    void joinsPagesThatBothSidesHandedOutInDescendingOrder() {
        TransferBatch batch =
                PagePlanner.plan(PREFILL, DECODE, new int[] {4, 3, 2}, new int[] {5, 4, 3});

        assertThat(NormalForm.blocks(batch))
                .containsExactly(
                        new NormalForm.Move(1020, 5030, 30), new NormalForm.Move(1100, 5090, 30));
    }

    @Test
    void fillsABatchAfterTheBlocksItHolds() {
        TransferBatch batch = new TransferBatch().add(1, 2, 3);

        PagePlanner.fill(batch, PREFILL, DECODE, new int[] {7}, new int[] {0});
        StatePlanner.fill(batch, PREFILL, DECODE, new int[] {7}, new int[] {1});

        assertThat(NormalForm.blocks(batch))
                .containsExactly(
                        new NormalForm.Move(1, 2, 3),
                        new NormalForm.Move(1070, 5000, 10),
                        new NormalForm.Move(1150, 5060, 10),
                        new NormalForm.Move(1070, 5010, 10),
                        new NormalForm.Move(1150, 5070, 10));
    }

    @Test
    void leavesTheBatchAloneWhenItRefuses() {
        TransferBatch batch = new TransferBatch();

        assertThatThrownBy(() ->
                        PagePlanner.fill(
                                batch, PREFILL, DECODE, new int[] {0, 1}, new int[] {0, 6}))
                .isInstanceOf(IndexOutOfBoundsException.class);

        assertThat(batch.isEmpty()).isTrue();
    }

    @Test
    void cutsARunWhereABoundFalls() {
        List<TransferBatch> batches =
                PagePlanner.planBounded(
                        PREFILL, DECODE, new int[] {0, 1, 2, 6}, new int[] {1, 2, 3, 0}, 3);

        assertThat(NormalForm.blocks(batches.get(0)))
                .containsExactly(
                        new NormalForm.Move(1060, 5000, 10),
                        new NormalForm.Move(1000, 5010, 20),
                        new NormalForm.Move(1140, 5060, 10),
                        new NormalForm.Move(1080, 5070, 20));
        assertThat(NormalForm.blocks(batches.get(1)))
                .containsExactly(
                        new NormalForm.Move(1020, 5030, 10), new NormalForm.Move(1100, 5090, 10));
    }

    /**
     * Random pools, sometimes of one prefill pipeline stage, and the pairs as the test made them.
     */
    private static final class Layout {
        final KvPools prefill;
        final KvPools decode;
        final int[] decodePools;
        final int[] sources;
        final int[] targets;
        final int layers;

        private Layout(
                KvPools prefill, KvPools decode, int[] decodePools, int layers, int[][] lists) {
            this.prefill = prefill;
            this.decode = decode;
            this.decodePools = decodePools;
            this.layers = layers;
            this.sources = lists[0];
            this.targets = lists[1];
        }

        static Layout random(Random random) {
            int poolsPerLayer = 1 + random.nextInt(2);
            int layers = 1 + random.nextInt(3);
            int items = 1 + random.nextInt(12);
            int length = RandomLayouts.length(random, items);
            int[][] lists = {
                RandomLayouts.sources(random, length, items),
                RandomLayouts.distinct(random, length, items)
            };
            return random.nextBoolean()
                    ? byPosition(random, poolsPerLayer * layers, items, lists)
                    : stage(random, poolsPerLayer, layers, items, lists);
        }

        private static Layout byPosition(Random random, int pools, int items, int[][] lists) {
            long[] itemBytes = RandomLayouts.itemBytes(random, pools, 6);
            return new Layout(
                    RandomLayouts.pools(random, RandomLayouts.PREFILL_SPACE, itemBytes, items),
                    RandomLayouts.pools(random, RandomLayouts.DECODE_SPACE, itemBytes, items),
                    IntStream.range(0, pools).toArray(),
                    pools,
                    lists);
        }

        /** The decode side has further layers before and behind: all K, then all V. */
        private static Layout stage(
                Random random, int poolsPerLayer, int layers, int items, int[][] lists) {
            int before = random.nextInt(3);
            int all = before + layers + random.nextInt(3);
            int firstId = random.nextInt(1000);
            long[] decodeBytes = RandomLayouts.itemBytes(random, all * poolsPerLayer, 6);
            int[] decodePools = new int[layers * poolsPerLayer];
            Arrays.setAll(decodePools, p -> p / layers * all + before + p % layers);
            long[] prefillBytes =
                    IntStream.of(decodePools).mapToLong(p -> decodeBytes[p]).toArray();
            return new Layout(
                    RandomLayouts.pools(random, RandomLayouts.PREFILL_SPACE, prefillBytes, items)
                            .withLayerRange(firstId + before, layers),
                    RandomLayouts.pools(random, RandomLayouts.DECODE_SPACE, decodeBytes, items)
                            .withLayerRange(firstId, all),
                    decodePools,
                    layers,
                    lists);
        }

        TransferBatch plan() {
            return PagePlanner.plan(prefill, decode, sources, targets);
        }

        ByteMap model() {
            ByteMap map = new ByteMap();
            for (int layer = 0; layer < layers; layer++) {
                map.add(modelOfLayer(layer));
            }
            return map;
        }

        /** K and V of a layer: every so many pools one. */
        ByteMap modelOfLayer(int layer) {
            ByteMap map = new ByteMap();
            for (int pool = layer; pool < decodePools.length; pool += layers) {
                long bytes = prefill.itemBytes(pool);
                for (int i = 0; i < sources.length; i++) {
                    long source = prefill.base(pool) + sources[i] * bytes;
                    map.copy(source, decode.base(decodePools[pool]) + targets[i] * bytes, bytes);
                }
            }
            return map;
        }
    }
}
