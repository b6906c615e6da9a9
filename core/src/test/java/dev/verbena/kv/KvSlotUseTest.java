package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;

/** No page, state item or auxiliary slot is given to two requests; a refusal takes none of them. */
class KvSlotUseTest {
    private static final KvLayout LAYOUT = new KvLayout.Latent(1, 8, 1, 4);
    private static final KvCache CACHE =
            KvCache.of(LAYOUT, LAYOUT.pools(0, 8))
                    .pageState("swa", LAYOUT, LAYOUT.pools(0x1000, 4))
                    .mambaState("mamba", pools(0x2000, 3))
                    .aux(pools(0x3000, 2));
    private static final KvSlots FIRST =
            KvSlots.pages(7, 0).state("swa", 3, 1).state("mamba", 2).aux(1);

    private final KvSlotUse use = new KvSlotUse(CACHE);

    @Test
    void whatIsGivenBackCanBeTakenAgain() {
        use.take(FIRST);
        assertThat(use.count()).isEqualTo(6);

        use.release(FIRST);
        assertThat(use.count()).isZero();

        use.take(FIRST);
        use.take(KvSlots.pages().state("swa").state("mamba", 0).aux(0));
        assertThat(use.count()).isEqualTo(8);
    }

    @Test
    void whatIsInUseIsRefusedByName() {
        use.take(FIRST);

        refused(KvSlots.pages(1, 0).state("swa").state("mamba", 0).aux(0), "pages[1] is 0");
        refused(
                KvSlots.pages(1).state("swa", 0, 3).state("mamba", 0).aux(0),
                "items of state 'swa'[1] is 3");
        refused(
                KvSlots.pages(1).state("swa", 0).state("mamba", 2).aux(0),
                "items of state 'mamba'[0] is 2");
        refused(KvSlots.pages(1).state("swa", 0).state("mamba", 0).aux(1), "aux[0] is 1");
        use.take(KvSlots.pages(1).state("swa", 0).state("mamba", 0).aux(0));
    }

    @Test
    void whatIsOutsideOrTwiceIsRefusedByName() {
        refused(KvSlots.pages(1, 8).state("swa").state("mamba", 0).aux(0), "pages[1] is 8");
        refused(KvSlots.pages(-1).state("swa").state("mamba", 0).aux(0), "outside 0..7");
        refused(KvSlots.pages(1, 1).state("swa").state("mamba", 0).aux(0), "pages[1] is 1");
        refused(KvSlots.pages().state("swa", 4).state("mamba", 0).aux(0), "outside 0..3");
        refused(KvSlots.pages().state("swa").state("mamba", 3).aux(0), "outside 0..2");
        refused(KvSlots.pages().state("swa").state("mamba", 0).aux(2), "outside 0..1");
    }

    @Test
    void whatIsMissingOrNotOfTheCacheIsRefusedByName() {
        refused(KvSlots.pages().state("mamba", 0).aux(0), "items of state 'swa' are missing");
        refused(KvSlots.pages().state("swa").state("mamba").aux(0), "exactly one Mamba state");
        refused(KvSlots.pages().state("swa").state("mamba", 0, 1).aux(0), "exactly one");
        refused(KvSlots.pages().state("swa").state("mamba", 0), "there is no aux slot");
        refused(FIRST.state("nsa", 1), "items of state 'nsa'");
        KvSlotUse plain = new KvSlotUse(KvCache.of(LAYOUT, LAYOUT.pools(0, 8)));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> plain.take(KvSlots.pages(1).aux(0)))
                .withMessageContaining("no auxiliary buffers");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> plain.take(KvSlots.pages(new int[KvMessage.MAX_SLOTS + 1])))
                .withMessageContaining("at most " + KvMessage.MAX_SLOTS);
    }

    private void refused(KvSlots slots, String message) {
        int before = use.count();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> use.take(slots))
                .withMessageContaining(message);
        assertThat(use.count()).isEqualTo(before);
    }

    private static KvPools pools(long base, int items) {
        return KvPools.of(new long[] {base}, new long[] {16}, new int[] {items});
    }
}
