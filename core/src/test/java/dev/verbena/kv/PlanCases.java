package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.verbena.transfer.TransferBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.StreamSupport;

/** Runs one plan case per category: reads the inputs, plans, and compares in normal form. */
final class PlanCases {
    static final Map<String, Consumer<JsonNode>> CATEGORIES =
            Map.of(
                    "kv", PlanCases::kv,
                    "hisparse", PlanCases::hisparse,
                    "head-slice", PlanCases::headSlice,
                    "staged", PlanCases::staged,
                    "aux", PlanCases::aux,
                    "mamba", PlanCases::mamba,
                    "mamba-slice", PlanCases::mambaSlice);

    private PlanCases() {}

    private static void kv(JsonNode input) {
        int[] sources = ints(input, "src_pages");
        int[] destinations = ints(input, "dst_pages");
        int layers = input.get("layers").asInt();
        long[] itemBytes = longs(input, "item_lens");
        KvPools prefill = pools(input, "src_ptrs", itemBytes, countFor(sources));
        KvPools decode = pools(input, "dst_ptrs", itemBytes, countFor(destinations));
        KvPools prefillLayers = prefill.withLayerRange(0, layers);
        KvPools decodeLayers = decode.withLayerRange(0, layers);

        assertMoves(input, "moves", PagePlanner.plan(prefill, decode, sources, destinations));
        assertMoves(input, "moves", StatePlanner.plan(prefill, decode, sources, destinations));
        List<TransferBatch> batches =
                LayerPlanner.plan(prefillLayers, decodeLayers, sources, destinations);
        assertThat(batches).hasSize(layers);
        assertThat(NormalForm.of(batches)).isEqualTo(moves(input, "moves"));
    }

    private static void hisparse(JsonNode input) {
        int pageTokens = input.get("page_size").asInt();
        int[] pages = ints(input, "src_pages");
        int[] tokens = ints(input, "dst_tokens");
        int[] slice = ints(input, "page_slice");
        long[] pageBytes = longs(input, "item_lens");
        long[] tokenBytes = LongStream.of(pageBytes).map(bytes -> bytes / pageTokens).toArray();

        TransferBatch batch =
                HiSparsePlanner.plan(
                        pools(input, "src_ptrs", pageBytes, countFor(pages)),
                        pools(input, "dst_ptrs", tokenBytes, countFor(tokens)),
                        pageTokens,
                        new PageSlice(slice[0], slice[1]),
                        pages,
                        tokens);

        assertMoves(input, "moves", batch);
    }

    private static void headSlice(JsonNode input) {
        assertHeadSlice(input, "moves");
    }

    private static void assertHeadSlice(JsonNode input, String expected) {
        int[] sources = ints(input, "src_pages");
        int[] destinations = ints(input, "dst_pages");
        int layers = input.get("layers").asInt();
        int pageTokens = input.get("page_size").asInt();
        HeadSlice slice = slice(input);
        KvPools prefill = slicePools(input, "src", sources).withLayerRange(0, layers);
        KvPools decode = slicePools(input, "dst", destinations).withLayerRange(0, layers);

        TransferBatch batch =
                HeadSlicePlanner.plan(prefill, decode, pageTokens, slice, sources, destinations);
        List<TransferBatch> byLayer =
                HeadSlicePlanner.planLayers(
                        prefill, decode, pageTokens, slice, sources, destinations);

        assertMoves(input, expected, batch);
        assertThat(byLayer).hasSize(layers);
        assertThat(NormalForm.of(byLayer)).isEqualTo(moves(input, expected));
    }

    private static void staged(JsonNode input) {
        int[] sources = ints(input, "src_pages");
        int[] destinations = ints(input, "dst_pages");
        int pageTokens = input.get("page_size").asInt();
        int prefillRank = input.get("prefill_rank").asInt();
        RankMap ranks = ranks(input);
        HeadSlice slice = slice(input);
        KvPools prefill = slicePools(input, "src", sources);
        KvPools decode = slicePools(input, "dst", destinations);

        int writers = ranks.prefillRanksPerDecodeRank();
        long bytes = StagingPlanner.bytesPerRank(prefill, pageTokens, slice, sources.length);
        long offset = StagingPlanner.rankOffset(ranks, prefillRank, bytes);
        StagingArea near = new StagingArea(input.get("src_staging_ptr").asLong(), bytes);
        StagingArea far = new StagingArea(input.get("dst_staging_ptr").asLong(), writers * bytes);

        assertThat(writers).isEqualTo(input.get("writers").asInt());
        assertThat(bytes).isEqualTo(input.get("per_rank_bytes").asLong());
        assertThat(offset).isEqualTo(input.get("rank_offset").asLong());
        assertMoves(
                input, "gather", StagingPlanner.gather(prefill, pageTokens, slice, sources, near));
        assertMoves(input, "moves", StagingPlanner.bulk(near, far, offset, bytes));
        assertMoves(
                input,
                "scatter",
                StagingPlanner.scatter(decode, pageTokens, slice, destinations, far, offset));
        assertHeadSlice(input, "end_to_end");
    }

    private static void aux(JsonNode input) {
        int source = input.get("src_index").asInt();
        int destination = input.get("dst_index").asInt();
        long[] itemBytes = longs(input, "item_lens");

        TransferBatch batch =
                AuxPlanner.plan(
                        pools(input, "src_ptrs", itemBytes, source + 1),
                        pools(input, "dst_ptrs", itemBytes, destination + 1),
                        source,
                        destination);

        assertMoves(input, "moves", batch);
    }

    private static void mamba(JsonNode input) {
        int source = input.get("src_index").asInt();
        int destination = input.get("dst_index").asInt();
        long[] itemBytes = longs(input, "item_lens");

        TransferBatch batch =
                MambaPlanner.plan(
                        pools(input, "src_ptrs", itemBytes, source + 1),
                        pools(input, "dst_ptrs", itemBytes, destination + 1),
                        new int[] {source},
                        new int[] {destination});

        assertMoves(input, "moves", batch);
    }

    private static void mambaSlice(JsonNode input) {
        int source = input.get("src_index").asInt();
        int destination = input.get("dst_index").asInt();
        RankPair ranks =
                new RankPair(
                        input.get("prefill_tp").asInt(),
                        input.get("prefill_rank").asInt(),
                        input.get("decode_tp").asInt(),
                        input.get("decode_rank").asInt());
        List<MambaTensor> tensors = new ArrayList<>();
        for (JsonNode tensor : input.get("tensors")) {
            MambaTensor described =
                    MambaTensor.of(tensor.get("row_bytes").asLong(), ints(tensor, "groups"));
            assertThat(described.itemBytes(ranks.prefillSize()))
                    .isEqualTo(tensor.get("src_dim").asLong() * described.rowBytes());
            assertThat(described.itemBytes(ranks.decodeSize()))
                    .isEqualTo(tensor.get("dst_dim").asLong() * described.rowBytes());
            tensors.add(described);
        }

        TransferBatch batch =
                MambaSlicePlanner.plan(
                        pools(input, "src_ptrs", longs(input, "src_item_lens"), source + 1),
                        pools(input, "dst_ptrs", longs(input, "dst_item_lens"), destination + 1),
                        tensors,
                        ranks,
                        new int[] {source},
                        new int[] {destination});

        assertMoves(input, "moves", batch);
    }

    private static RankMap ranks(JsonNode input) {
        return RankMap.of(
                input.get("prefill_tp").asInt(),
                input.get("decode_tp").asInt(),
                input.get("total_kv_heads").asInt());
    }

    private static HeadSlice slice(JsonNode input) {
        return ranks(input)
                .slice(input.get("prefill_rank").asInt(), input.get("decode_rank").asInt());
    }

    private static KvPools slicePools(JsonNode input, String side, int[] pages) {
        long[] itemBytes = new long[input.get(side + "_ptrs").size()];
        Arrays.fill(itemBytes, input.get(side + "_item_len").asLong());
        return pools(input, side + "_ptrs", itemBytes, countFor(pages));
    }

    private static KvPools pools(JsonNode input, String bases, long[] itemBytes, int count) {
        int[] counts = new int[itemBytes.length];
        Arrays.fill(counts, count);
        return KvPools.of(longs(input, bases), itemBytes, counts);
    }

    /** Cases do not say how large a pool is: just large enough for its indices. */
    private static int countFor(int[] items) {
        return IntStream.of(items).max().orElse(0) + 1;
    }

    private static void assertMoves(JsonNode input, String field, TransferBatch batch) {
        assertThat(NormalForm.of(batch)).as(field).isEqualTo(moves(input, field));
    }

    private static List<NormalForm.Move> moves(JsonNode input, String field) {
        List<NormalForm.Move> moves = new ArrayList<>();
        for (JsonNode move : input.get(field)) {
            moves.add(
                    new NormalForm.Move(
                            move.get(0).asLong(), move.get(1).asLong(), move.get(2).asLong()));
        }
        return moves;
    }

    private static int[] ints(JsonNode input, String field) {
        return StreamSupport.stream(input.get(field).spliterator(), false)
                .mapToInt(JsonNode::intValue)
                .toArray();
    }

    private static long[] longs(JsonNode input, String field) {
        return StreamSupport.stream(input.get(field).spliterator(), false)
                .mapToLong(JsonNode::longValue)
                .toArray();
    }
}
