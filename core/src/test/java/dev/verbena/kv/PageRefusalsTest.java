package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.transfer.TransferBatch;
import java.util.List;
import java.util.stream.IntStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** What the planners of whole pages refuse, each by the same rule and with the same words. */
class PageRefusalsTest {
    private static final KvPools PREFILL =
            KvPools.of(new long[] {1000, 2000}, new long[] {8, 8}, new int[] {20, 10});
    private static final KvPools DECODE =
            KvPools.of(new long[] {5000, 6000}, new long[] {8, 8}, new int[] {12, 30});

    @Test
    void refusesListsOfDifferentLength() {
        refused(new int[3], new int[4])
                .forEach(plan ->
                        assertThatThrownBy(plan)
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageMatching(
                                        "prefill(State)?Pages has 3 entries and "
                                                + "decode(State)?Pages has 4: .*"));
    }

    @Test
    void refusesAPrefillPageOutsideTheSmallestPool() {
        refused(new int[] {1, 9, 10}, new int[] {1, 2, 3})
                .forEach(plan ->
                        assertThatThrownBy(plan)
                                .isInstanceOf(IndexOutOfBoundsException.class)
                                .hasMessageMatching(
                                        "prefill(State)?Pages\\[2] = 10 is outside 0..9:"
                                                + " prefill pool 1 holds 10 items"));
    }

    @Test
    void refusesADecodePageOutsideTheSmallestPool() {
        refused(new int[] {1, 2, 3}, new int[] {12, 2, 3})
                .forEach(plan ->
                        assertThatThrownBy(plan)
                                .isInstanceOf(IndexOutOfBoundsException.class)
                                .hasMessageMatching(
                                        "decode(State)?Pages\\[0] = 12 is outside 0..11:"
                                                + " decode pool 0 holds 12 items"));
    }

    @Test
    void refusesANegativePage() {
        refused(new int[] {1}, new int[] {-1})
                .forEach(plan ->
                        assertThatThrownBy(plan)
                                .isInstanceOf(IndexOutOfBoundsException.class)
                                .hasMessageContaining("[0] = -1 is outside 0..11"));
    }

    @Test
    void refusesADecodePageNamedTwiceInARun() {
        refused(new int[] {0, 1, 2, 3, 9}, new int[] {4, 5, 6, 7, 6})
                .forEach(plan ->
                        assertThatThrownBy(plan)
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageMatching(
                                        "decode(State)?Pages\\[2] and decode(State)?Pages"
                                                + "\\[4] are both 6: destinations overlap"));
    }

    @Test
    void refusesTwoRunsThatStartAtTheSamePage() {
        refused(new int[] {0, 1, 2, 5, 6}, new int[] {8, 9, 1, 8, 9})
                .forEach(plan ->
                        assertThatThrownBy(plan)
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageMatching(".*\\[0] and .*\\[3] are both 8: .*"));
    }

    @Test
    void refusesItemsOfDifferentLength() {
        KvPools other = KvPools.of(new long[] {5000, 6000}, new long[] {8, 4}, new int[] {12, 30});

        assertThatThrownBy(() -> PagePlanner.plan(PREFILL, other, new int[0], new int[0]))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "items of prefill pool 1 are 8 bytes, those of decode pool 1 are 4 bytes");
    }

    @Test
    void refusesAnotherNumberOfPools() {
        KvPools one = KvPools.of(new long[] {5000}, new long[] {8}, new int[] {12});

        assertThatThrownBy(() -> PagePlanner.plan(PREFILL, one, new int[0], new int[0]))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("the prefill side has 2 pools and the decode side 1");
    }

    @Test
    void refusesLayersThatTheDecodeSideDoesNotOwn() {
        KvPools prefill = PREFILL.withLayers(4, 7);

        assertThatThrownBy(() ->
                        PagePlanner.plan(prefill, DECODE.withLayers(4, 8), new int[0], new int[0]))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("layer 7: the prefill side has 1 pools and the decode side 0");
        assertThatThrownBy(() ->
                        PagePlanner.plan(
                                PREFILL.withLayers(4, 4),
                                DECODE.withLayers(3, 4),
                                new int[0],
                                new int[0]))
                .hasMessage("layer 4: the prefill side has 2 pools and the decode side 1");
    }

    @Test
    void refusesLayerIdsOnOneSideOnly() {
        assertThatThrownBy(() ->
                        PagePlanner.plan(PREFILL.withLayers(0, 1), DECODE, new int[0], new int[0]))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "only the prefill pools have layer ids: give them on both sides or on"
                                + " neither");
        assertThatThrownBy(() ->
                        PagePlanner.plan(PREFILL, DECODE.withLayers(0, 1), new int[0], new int[0]))
                .hasMessageContaining("only the decode pools have layer ids");
    }

    @Test
    void refusesABoundBelowOne() {
        assertThatThrownBy(
                        () -> PagePlanner.planBounded(PREFILL, DECODE, new int[0], new int[0], 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("maxPagesPerBatch is 0, must be at least 1");
    }

    @Test
    void refusesAPlanOfMoreBlocksThanABatchHolds() {
        KvPools prefill = new KvLayout.Latent(1 << 20, 1, 1, 1).pools(1L << 40, 600);
        KvPools decode = new KvLayout.Latent(1 << 20, 1, 1, 1).pools(1L << 50, 600);
        int[] pages = IntStream.range(0, 256).map(i -> 2 * i).toArray();
        int[] morePages = IntStream.range(0, 257).map(i -> 2 * i).toArray();
        TransferBatch batch = new TransferBatch().add(1, 1, 1);

        assertThatThrownBy(() -> PagePlanner.plan(prefill, decode, morePages, morePages))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("the plan has 269484032 blocks, and a batch holds at most 268435456");
        assertThatThrownBy(() -> PagePlanner.fill(batch, prefill, decode, pages, pages))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "the plan has 268435456 blocks, and the batch holds 1 of at most"
                                + " 268435456");
    }

    private static List<ThrowingCallable> refused(int[] prefillPages, int[] decodePages) {
        return List.of(
                () -> PagePlanner.plan(PREFILL, DECODE, prefillPages, decodePages),
                () -> PagePlanner.planBounded(PREFILL, DECODE, prefillPages, decodePages, 1),
                () -> LayerPlanner.plan(PREFILL, DECODE, prefillPages, decodePages),
                () -> StatePlanner.plan(PREFILL, DECODE, prefillPages, decodePages));
    }
}
