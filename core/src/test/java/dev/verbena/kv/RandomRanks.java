package dev.verbena.kv;

import java.util.Arrays;
import java.util.Random;

/**
 * A random pair of TP sizes with the pools of every rank: fewer, as many or more ranks than heads
 * on either side. What each rank holds is worked out here from the definition, head by head.
 */
final class RandomRanks {
    private static final int[] SIZES = {1, 2, 3, 4, 6, 8, 12, 16};
    private static final long RANK_SPACE = 1L << 24;

    final int heads;
    final int prefillSize;
    final int decodeSize;
    final RankMap map;
    final int pageTokens;
    final int items;
    final int pools;
    private final long[] headBytes;
    private final KvPools[] prefill;
    private final KvPools[] decode;

    RandomRanks(Random random) {
        int[] sizes = sizes(random);
        prefillSize = sizes[0];
        decodeSize = sizes[1];
        heads = sizes[2];
        map = RankMap.of(prefillSize, decodeSize, heads);
        pageTokens = 1 + random.nextInt(3);
        items = 1 + random.nextInt(6);
        pools = 1 + random.nextInt(2);
        headBytes = RandomLayouts.itemBytes(random, pools, 3);
        prefill = side(random, prefillSize, RandomLayouts.PREFILL_SPACE);
        decode = side(random, decodeSize, RandomLayouts.DECODE_SPACE);
    }

    KvPools prefill(int rank) {
        return prefill[rank];
    }

    KvPools decode(int rank) {
        return decode[rank];
    }

    long headBytes(int pool) {
        return headBytes[pool];
    }

    /** The heads that a rank of so many holds, in order. */
    int[] headsOf(int rank, int size) {
        if (size > heads) {
            return new int[] {rank / (size / heads)};
        }
        int[] held = new int[heads / size];
        Arrays.setAll(held, i -> rank * held.length + i);
        return held;
    }

    /** Copies one head of one token of one page between two ranks, in the model. */
    void copyHead(ByteMap model, int[] ranks, int pool, int[] pages, int token, int head) {
        int[] prefillHeads = headsOf(ranks[0], prefillSize);
        int[] decodeHeads = headsOf(ranks[1], decodeSize);
        model.copy(
                address(prefill[ranks[0]], pool, pages[0], token, prefillHeads, head),
                address(decode[ranks[1]], pool, pages[1], token, decodeHeads, head),
                headBytes[pool]);
    }

    private long address(KvPools side, int pool, int page, int token, int[] held, int head) {
        int place = 0;
        while (held[place] != head) {
            place++;
        }
        long heads = ((long) page * pageTokens + token) * held.length + place;
        return side.base(pool) + heads * headBytes[pool];
    }

    private KvPools[] side(Random random, int size, long space) {
        KvPools[] side = new KvPools[size];
        for (int rank = 0; rank < size; rank++) {
            long[] itemBytes = new long[pools];
            int held = headsOf(rank, size).length;
            Arrays.setAll(itemBytes, pool -> headBytes[pool] * held * pageTokens);
            side[rank] = RandomLayouts.pools(random, space + rank * RANK_SPACE, itemBytes, items);
        }
        return side;
    }

    private static int[] sizes(Random random) {
        while (true) {
            int prefill = SIZES[random.nextInt(SIZES.length)];
            int decode = SIZES[random.nextInt(SIZES.length)];
            int heads = SIZES[random.nextInt(SIZES.length)];
            if (divides(prefill, decode) && divides(prefill, heads) && divides(decode, heads)) {
                return new int[] {prefill, decode, heads};
            }
        }
    }

    private static boolean divides(int a, int b) {
        return a % b == 0 || b % a == 0;
    }
}
