package dev.verbena.demo;

import dev.verbena.kv.KvCache;
import dev.verbena.kv.KvLayout;
import dev.verbena.kv.KvPools;
import dev.verbena.kv.KvSlots;
import dev.verbena.kv.MambaTensor;
import dev.verbena.kv.TensorParallel;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The cache of one rank: its pools one behind the other from an offset of 0, what each item of them
 * is of the whole model, and where the request lives in them.
 *
 * <p>Immutable once made.
 */
final class RankCache {
    private static final int MAMBA_SLOTS = 2;
    private static final int AUX_SLOTS = 16;

    /** First token and log probabilities, as engines hand them over with the KV. */
    private static final long[] AUX_BYTES = {64, 256, 1024};

    /** What a pool holds. */
    enum Kind {
        /** Pages of the layers with full attention. */
        KV,
        /** Pages of the sliding layers. */
        SLIDING,
        /** State of gated delta nets. */
        MAMBA,
        /** Auxiliary data. */
        AUX
    }

    /** A stretch of a unit as the whole model has it, which this rank holds. */
    private record Extent(long first, long length) {}

    /**
     * One pool.
     *
     * @param kind of what it holds
     * @param label for messages
     * @param number of the pool in the whole model
     * @param offset of its first byte
     * @param itemCount items that it has room for
     * @param unitsPerItem tokens of a page, or 1
     * @param unitBytes of one of them on this rank
     * @param pieceBytes of a head or a row, of which a unit has one or more
     * @param slots items that are the request's, in its order
     */
    record PoolPart(
            Kind kind,
            String label,
            int number,
            long offset,
            int itemCount,
            int unitsPerItem,
            long unitBytes,
            long pieceBytes,
            List<Integer> slots) {
        long itemBytes() {
            return unitBytes * unitsPerItem;
        }

        long itemOffset(int item) {
            return offset + itemBytes() * item;
        }
    }

    private final Job job;
    private final Job.Side side;
    private final TensorParallel tp;
    private final int rank;
    private final List<PoolPart> parts = new ArrayList<>();
    private final List<List<Extent>> extents = new ArrayList<>();
    private long lengthBytes;

    private RankCache(Job job, Job.Side side, int rank) {
        this.job = job;
        this.side = side;
        this.tp = job.tensorParallel(side);
        this.rank = rank;
        int pageTokens = job.pageTokens(side);
        ModelShape model = job.scenario().model();
        int[] pages = pages(job.pages(side), job.cachePages(side), 0);
        addLayers(Kind.KV, "", layout(), job.cachePages(side), pages);
        model.slidingLayout(tp.headsPerRank(), pageTokens)
                .ifPresent(layout -> {
                    int[] window = pages(job.windowPages(), windowPages(), 1);
                    addLayers(Kind.SLIDING, "sliding ", layout, windowPages(), window);
                });
        for (int layer = 0; layer < model.deltaNetLayers(); layer++) {
            addMamba("convolution of delta net " + layer, ModelShape.convolution());
        }
        for (int layer = 0; layer < model.deltaNetLayers(); layer++) {
            addMamba("temporal state of delta net " + layer, ModelShape.temporal());
        }
        for (long bytes : AUX_BYTES) {
            List<Extent> whole = List.of(new Extent(0, bytes));
            String label = "auxiliary buffer of " + bytes + " bytes";
            addPool(Kind.AUX, label, AUX_SLOTS, 1, bytes, whole, auxSlot());
        }
    }

    static RankCache of(Job job, Job.Side side, int rank) {
        return new RankCache(job, side, rank);
    }

    int rank() {
        return rank;
    }

    /** The pools, in order. */
    List<PoolPart> parts() {
        return parts;
    }

    long lengthBytes() {
        return lengthBytes;
    }

    /** Bytes of the request's items in all pools. */
    long requestBytes() {
        return parts.stream().mapToLong(part -> part.itemBytes() * part.slots.size()).sum();
    }

    /** Puts one item of the request into memory. */
    void fill(Content content, MemorySegment memory, long offset, int part, int requestItem) {
        PoolPart pool = parts.get(part);
        long at = offset;
        for (int unit = 0; unit < pool.unitsPerItem; unit++) {
            long number = (long) requestItem * pool.unitsPerItem + unit;
            for (Extent extent : extents.get(part)) {
                content.fill(memory, at, pool.number, number, extent.first, extent.length);
                at += extent.length;
            }
        }
    }

    /**
     * Names a byte of an item of the request by what it is in the whole model: its token (in the
     * sliding layers, of the window) and head, or its row of state.
     */
    String place(int part, int requestItem, long offset) {
        PoolPart pool = parts.get(part);
        long unit = (long) requestItem * pool.unitsPerItem + offset / pool.unitBytes;
        long at = placeInModel(extents.get(part), offset % pool.unitBytes);
        return switch (pool.kind) {
            case KV, SLIDING -> job.scenario().model().place(unit, at, pool.pieceBytes);
            case MAMBA -> "row %d, byte %d".formatted(at / pool.pieceBytes, at % pool.pieceBytes);
            case AUX -> "byte %d".formatted(at);
        };
    }

    private static long placeInModel(List<Extent> share, long placeOnRank) {
        long rest = placeOnRank;
        for (Extent extent : share) {
            if (rest < extent.length) {
                return extent.first + rest;
            }
            rest -= extent.length;
        }
        throw new IllegalArgumentException("byte " + placeOnRank + " is behind the unit");
    }

    /** The cache as the library is told of it, with the memory at an address. */
    KvCache cache(long base) {
        KvLayout layout = layout();
        KvCache cache = KvCache.of(layout, layout.pools(base, job.cachePages(side))).rank(tp, rank);
        ModelShape model = job.scenario().model();
        int next = layout.poolCount();
        KvLayout sliding =
                model.slidingLayout(tp.headsPerRank(), job.pageTokens(side)).orElse(null);
        if (sliding != null) {
            long at = base + parts.get(next).offset;
            cache = cache.pageState("sliding", sliding, sliding.pools(at, windowPages()));
            next += sliding.poolCount();
        }
        int nets = model.deltaNetLayers();
        if (nets > 0) {
            MambaTensor[] tensors = new MambaTensor[2 * nets];
            Arrays.fill(tensors, 0, nets, ModelShape.convolution());
            Arrays.fill(tensors, nets, 2 * nets, ModelShape.temporal());
            cache = cache.mambaState("delta net", pools(base, next, 2 * nets), tensors);
            next += 2 * nets;
        }
        return cache.aux(pools(base, next, AUX_BYTES.length));
    }

    /** Where the request lives from a page on, with all that is moved once. */
    KvSlots slotsFrom(int firstPage) {
        int[] pages = pages();
        KvSlots slots = KvSlots.pages(Arrays.copyOfRange(pages, firstPage, pages.length));
        // All pools of a kind have the request in the same slots.
        for (Kind kind : Kind.values()) {
            List<Integer> items = slots(kind);
            if (!items.isEmpty()) {
                slots =
                        switch (kind) {
                            case KV -> slots;
                            case SLIDING -> slots.state("sliding", ints(items));
                            case MAMBA -> slots.state("delta net", ints(items));
                            case AUX -> slots.aux(items.getFirst());
                        };
            }
        }
        return slots;
    }

    private List<Integer> slots(Kind kind) {
        return parts.stream()
                .filter(part -> part.kind == kind)
                .findFirst()
                .map(PoolPart::slots)
                .orElse(List.of());
    }

    /** Pages of the request, in the order of its tokens. */
    int[] pages() {
        return ints(slots(Kind.KV));
    }

    /** Most bytes that one chunk of so many pages takes in a staging area of this model. */
    long stagedBytes(int chunkPages) {
        KvLayout whole = job.scenario().model().layout(job.scenario().model().kvHeads(), 1);
        return whole.bytes(chunkPages) * Scenario.PAGE_TOKENS;
    }

    private KvLayout layout() {
        return job.scenario().model().layout(tp.headsPerRank(), job.pageTokens(side));
    }

    private int windowPages() {
        return job.windowPages() + 8;
    }

    private void addLayers(Kind kind, String prefix, KvLayout layout, int items, int[] slots) {
        long headBytes = layout.tokenBytes() / tp.headsPerRank();
        Extent heads = new Extent(headBytes * tp.firstHead(rank), layout.tokenBytes());
        for (int pool = 0; pool < layout.poolCount(); pool++) {
            addPool(
                    kind,
                    prefix + ModelShape.poolName(layout, pool),
                    items,
                    layout.pageTokens(),
                    headBytes,
                    List.of(heads),
                    slots);
        }
    }

    private void addMamba(String label, MambaTensor tensor) {
        List<Extent> share = new ArrayList<>();
        long group = 0;
        for (int i = 0; i < tensor.groupCount(); i++) {
            long rows = tensor.groupRows(i) / tp.size();
            share.add(
                    new Extent(
                            (group + rows * rank) * tensor.rowBytes(), rows * tensor.rowBytes()));
            group += tensor.groupRows(i);
        }
        int slot = side == Job.Side.PREFILL ? 1 : 0;
        addPool(Kind.MAMBA, label, MAMBA_SLOTS, 1, tensor.rowBytes(), share, slot);
    }

    private void addPool(
            Kind kind,
            String label,
            int items,
            int unitsPerItem,
            long pieceBytes,
            List<Extent> share,
            int... slots) {
        long unitBytes = share.stream().mapToLong(Extent::length).sum();
        parts.add(
                new PoolPart(
                        kind,
                        label,
                        parts.size(),
                        lengthBytes,
                        items,
                        unitsPerItem,
                        unitBytes,
                        pieceBytes,
                        IntStream.of(slots).boxed().toList()));
        extents.add(share);
        lengthBytes += unitBytes * unitsPerItem * items;
    }

    private KvPools pools(long base, int first, int count) {
        List<PoolPart> some = parts.subList(first, first + count);
        return KvPools.of(
                some.stream().mapToLong(part -> base + part.offset).toArray(),
                some.stream().mapToLong(PoolPart::itemBytes).toArray(),
                some.stream().mapToInt(PoolPart::itemCount).toArray());
    }

    /** Scattered as a paged allocator leaves them, on each rank in its own way. */
    private int[] pages(int count, int of, int salt) {
        long seed = job.seed() + 1000L * rank + salt;
        return side == Job.Side.PREFILL
                ? RequestPages.onPrefill(count, of, seed)
                : RequestPages.onDecode(count, of, seed);
    }

    private int auxSlot() {
        return Math.floorMod(job.seed() + (side == Job.Side.PREFILL ? 3 : 7), AUX_SLOTS);
    }

    private static int[] ints(List<Integer> list) {
        return list.stream().mapToInt(Integer::intValue).toArray();
    }
}
