package dev.verbena.verbs;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.verbs.WorkRequests.Operation;
import java.lang.foreign.MemorySegment;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What a slot is given lies where C reads it, by offsets written down here from the header, and
 * nothing is ever written outside the slot. Four slots of three entries, so that a stride that is
 * off by one shows.
 */
class WorkRequestsTest {
    private static final int CAPACITY = 32;
    private static final int MAX_SGE = 3;
    private static final long SLOT_BYTES = 64;
    private static final long SGE_BYTES = 16;

    private final WorkRequests ring = new WorkRequests(CAPACITY, MAX_SGE);
    private final MemorySegment memory = memory(ring.address(0), CAPACITY * SLOT_BYTES);

    @AfterEach
    void close() {
        ring.close();
    }

    @Test
    void everySlotLeadsToTheNextAndTheLastToTheFirst() {
        for (int slot = 0; slot < CAPACITY; slot++) {
            assertThat(next(slot)).isEqualTo(ring.address((slot + 1) % CAPACITY));
        }
    }

    @Test
    void everySlotHasEntriesOfItsOwn() {
        long first = sgList(0);
        for (int slot = 0; slot < CAPACITY; slot++) {
            assertThat(sgList(slot)).isEqualTo(first + slot * MAX_SGE * SGE_BYTES);
        }
    }

    @Test
    void fieldsLandWhereCReadsThem() {
        ring.fill(2, 0x1122334455667788L, Operation.READ, 0x99aabbccddeeff00L, 0x0badcafe, 3, true);

        assertThat(longAt(2, 0)).as("wr_id").isEqualTo(0x1122334455667788L);
        assertThat(intAt(2, 24)).as("num_sge").isEqualTo(3);
        assertThat(intAt(2, 28)).as("opcode").isEqualTo(4);
        assertThat(intAt(2, 32)).as("send_flags").isEqualTo(2);
        assertThat(longAt(2, 40)).as("remote_addr").isEqualTo(0x99aabbccddeeff00L);
        assertThat(intAt(2, 48)).as("rkey").isEqualTo(0x0badcafe);
    }

    @Test
    void operationsHaveTheNumbersOfTheVerbs() {
        int[] opcodes = {0, 4, 1};
        for (Operation operation : Operation.values()) {
            ring.fill(0, 0, operation, 0, 0, 0, false);
            assertThat(intAt(0, 28)).isEqualTo(opcodes[operation.ordinal()]);
            assertThat(intAt(0, 32)).as("send_flags").isZero();
        }
    }

    @Test
    void immediateTravelsInNetworkOrder() {
        ring.immediate(1, 0x01020304);

        assertThat(memory.asSlice(SLOT_BYTES + 36, 4).toArray(JAVA_BYTE))
                .containsExactly(1, 2, 3, 4);
    }

    @Test
    void signalMarksASlotFilledBefore() {
        ring.fill(3, 1, Operation.WRITE, 2, 3, 1, false);
        ring.signal(3);

        assertThat(intAt(3, 32)).isEqualTo(2);
        assertThat(longAt(3, 0)).isEqualTo(1);
    }

    @Test
    void piecesLandWhereCReadsThem() {
        for (int slot = 0; slot < CAPACITY; slot++) {
            for (int entry = 0; entry < MAX_SGE; entry++) {
                int number = slot * MAX_SGE + entry;
                ring.piece(slot, entry, 0x1_0000_0000L + number, -number, 100 + number);
            }
        }

        for (int slot = 0; slot < CAPACITY; slot++) {
            MemorySegment list = memory(sgList(slot), MAX_SGE * SGE_BYTES);
            for (int entry = 0; entry < MAX_SGE; entry++) {
                int number = slot * MAX_SGE + entry;
                assertThat(list.get(JAVA_LONG, entry * SGE_BYTES))
                        .isEqualTo(0x1_0000_0000L + number);
                assertThat(list.get(JAVA_INT, entry * SGE_BYTES + 8)).isEqualTo(-number);
                assertThat(list.get(JAVA_INT, entry * SGE_BYTES + 12)).isEqualTo(100 + number);
            }
        }
    }

    /** Short runs and long ones, as they are filled in different ways. */
    @ParameterizedTest
    @ValueSource(ints = {1, 3, 15, 16, 21, CAPACITY - 1})
    void aRunOfSlotsIsFilledAsEachOfThemWouldBe(int count) {
        Random random = new Random(count);
        long[] locals = random.longs(CAPACITY).toArray();
        long[] remotes = random.longs(CAPACITY).toArray();
        long[] lengths = random.longs(CAPACITY, 0, 1L << 33).toArray();
        lengths[1] = 0xffff_ffffL;
        ring.fill(1, 0, Operation.WRITE, 0, 0, MAX_SGE, true);

        ring.fillRun(
                1, count, 0x7000L, Operation.READ, 0x0badcafe, -2, locals, remotes, lengths, 1);

        try (WorkRequests each = new WorkRequests(CAPACITY, MAX_SGE)) {
            for (int i = 1; i <= count; i++) {
                each.fill(i, 0x7000L + i - 1, Operation.READ, remotes[i], 0x0badcafe, 1, false);
                each.piece(i, 0, locals[i], (int) lengths[i], -2);
            }
            for (int slot = 0; slot < CAPACITY; slot++) {
                assertThat(ring.workRequestId(slot)).isEqualTo(each.workRequestId(slot));
                assertThat(intAt(slot, 24)).isEqualTo(each.pieces(slot));
                assertThat(ring.operation(slot)).isEqualTo(each.operation(slot));
                assertThat(ring.isSignaled(slot)).isFalse();
                assertThat(ring.remoteAddress(slot)).isEqualTo(each.remoteAddress(slot));
                assertThat(ring.remoteKey(slot)).isEqualTo(each.remoteKey(slot));
                MemorySegment entry = memory(sgList(slot), SGE_BYTES);
                MemorySegment expected =
                        memory(
                                memory(each.address(slot), SLOT_BYTES).get(JAVA_LONG, 16),
                                SGE_BYTES);
                assertThat(entry.mismatch(expected)).as("entry of slot " + slot).isNegative();
                assertThat(ring.pieceAddress(slot, 0)).isEqualTo(each.pieceAddress(slot, 0));
                assertThat(ring.pieceLength(slot, 0)).isEqualTo(each.pieceLength(slot, 0));
                assertThat(ring.pieceKey(slot, 0)).isEqualTo(each.pieceKey(slot, 0));
                assertThat(next(slot)).isEqualTo(ring.address((slot + 1) % CAPACITY));
            }
        }
    }

    @Test
    void aSlotOfARunHasOneEntryUntilItIsFilledByItself() {
        long[] zeros = new long[CAPACITY];
        ring.fillRun(0, CAPACITY, 0, Operation.READ, 1, 1, zeros, zeros, zeros, 0);

        assertThatThrownBy(() -> ring.pieceAddress(1, 1))
                .isInstanceOf(IndexOutOfBoundsException.class);
        ring.fill(1, 0, Operation.WRITE, 0, 0, MAX_SGE, true);
        ring.piece(1, 2, 77, 78, 79);
        assertThat(ring.pieceAddress(1, 2)).as("the slot's own again").isEqualTo(77);
    }

    @ParameterizedTest
    @ValueSource(ints = {4, CAPACITY})
    void refusesRunsThatItOrTheArraysDoNotHave(int count) {
        long[] enough = new long[count];
        long[] less = new long[count - 1];
        byte[] bytes = memory.toArray(JAVA_BYTE);
        for (int[] run :
                new int[][] {
                    {CAPACITY - count + 1, count},
                    {-1, 2},
                    {-1, count},
                    {CAPACITY, 1},
                    {0, -1},
                    {2, Integer.MAX_VALUE}
                }) {
            assertThatThrownBy(() -> run(run[0], run[1], enough, enough, enough, 0))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
        assertThatThrownBy(() -> run(0, count, less, enough, enough, 0))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> run(0, count, enough, less, enough, 0))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> run(0, count, enough, enough, less, 0))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> run(0, 2, enough, enough, enough, count - 1))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThat(memory.toArray(JAVA_BYTE)).isEqualTo(bytes);
    }

    private void run(
            int first, int count, long[] locals, long[] remotes, long[] lengths, int from) {
        ring.fillRun(first, count, 1, Operation.READ, 1, 1, locals, remotes, lengths, from);
    }

    @Test
    void fillingLeavesLinksAndNeighboursAlone() {
        ring.fill(1, -1, Operation.READ, -1, -1, MAX_SGE, true);
        ring.immediate(1, -1);

        for (int slot = 0; slot < CAPACITY; slot++) {
            assertThat(next(slot)).isEqualTo(ring.address((slot + 1) % CAPACITY));
        }
        assertThat(sgList(1)).isEqualTo(sgList(0) + MAX_SGE * SGE_BYTES);
        for (int slot : new int[] {0, 2, 3}) {
            assertThat(longAt(slot, 0)).isZero();
            assertThat(intAt(slot, 24)).isZero();
        }
    }

    @Test
    void cutEndsTheChainAndJoinMendsTheRing() {
        for (int slot = 0; slot < CAPACITY; slot++) {
            ring.cut(slot);
            assertThat(next(slot)).isZero();
            ring.join(slot);
            assertThat(next(slot)).isEqualTo(ring.address((slot + 1) % CAPACITY));
        }
    }

    @Test
    void badSlotIsReadFromTheDriversPointerOnlyIfItPointsToASlot() {
        MemorySegment bad = memory(ring.badRequestAddress(), 8);

        ring.clearBadRequest();
        assertThat(ring.badSlot()).isEqualTo(-1);
        for (int slot = 0; slot < CAPACITY; slot++) {
            bad.set(JAVA_LONG, 0, ring.address(slot));
            assertThat(ring.badSlot()).isEqualTo(slot);
        }
        long[] strays = {
            ring.address(0) - SLOT_BYTES,
            ring.address(0) + CAPACITY * SLOT_BYTES,
            ring.address(1) + 8
        };
        for (long stray : strays) {
            bad.set(JAVA_LONG, 0, stray);
            assertThat(ring.badSlot()).isEqualTo(-1);
        }
    }

    @Test
    void refusesSlotsItDoesNotHave() {
        for (int slot : new int[] {-1, CAPACITY, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
            assertThatThrownBy(() -> ring.fill(slot, 1, Operation.WRITE, 1, 1, 1, true))
                    .isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> ring.piece(slot, 0, 1, 1, 1))
                    .isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> ring.immediate(slot, 1))
                    .isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> ring.signal(slot))
                    .isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> ring.address(slot))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    /** The driver would read the entries of other slots, and behind the last one foreign memory. */
    @Test
    void refusesMoreEntriesThanASlotHas() {
        for (int count : new int[] {-1, MAX_SGE + 1, Integer.MAX_VALUE}) {
            assertThatThrownBy(() -> ring.fill(0, 1, Operation.WRITE, 1, 1, count, true))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
        for (int entry : new int[] {-1, MAX_SGE}) {
            assertThatThrownBy(() -> ring.piece(1, entry, 1, 1, 1))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
        ring.fill(0, 1, Operation.WRITE, 1, 1, 0, true);
        ring.fill(0, 1, Operation.WRITE, 1, 1, MAX_SGE, true);
    }

    @Test
    void refusesCapacitiesThatAreNoPowerOfTwo() {
        for (int capacity : new int[] {0, -1, 3, 12, Integer.MIN_VALUE}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> new WorkRequests(capacity, 1))
                    .withMessageContaining("capacity=" + capacity);
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new WorkRequests(4, 0))
                .withMessageContaining("maxSge=0");
    }

    @Test
    void refusesUseOnceClosed() {
        ring.close();
        ring.close();

        assertThatIllegalStateException()
                .isThrownBy(() -> ring.fill(0, 1, Operation.WRITE, 1, 1, 1, true));
        assertThatIllegalStateException().isThrownBy(() -> ring.piece(0, 0, 1, 1, 1));
        assertThatIllegalStateException().isThrownBy(() -> ring.signal(0));
    }

    private long next(int slot) {
        return longAt(slot, 8);
    }

    private long sgList(int slot) {
        return longAt(slot, 16);
    }

    private long longAt(int slot, long offset) {
        return memory.get(JAVA_LONG, slot * SLOT_BYTES + offset);
    }

    private int intAt(int slot, long offset) {
        return memory.get(JAVA_INT, slot * SLOT_BYTES + offset);
    }

    @SuppressWarnings("restricted")
    private static MemorySegment memory(long address, long lengthBytes) {
        return MemorySegment.ofAddress(address).reinterpret(lengthBytes);
    }
}
