package dev.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.bindings.ibverbs.ibverbs_constants;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Statuses have the numbers that the header gives them; any other number is unknown. */
class CompletionStatusTest {
    /** In the order of the enum, by the header's names. */
    private static final List<Integer> NUMBERS =
            List.of(
                    ibverbs_constants.IBV_WC_SUCCESS(),
                    ibverbs_constants.IBV_WC_LOC_LEN_ERR(),
                    ibverbs_constants.IBV_WC_LOC_QP_OP_ERR(),
                    ibverbs_constants.IBV_WC_LOC_EEC_OP_ERR(),
                    ibverbs_constants.IBV_WC_LOC_PROT_ERR(),
                    ibverbs_constants.IBV_WC_WR_FLUSH_ERR(),
                    ibverbs_constants.IBV_WC_MW_BIND_ERR(),
                    ibverbs_constants.IBV_WC_BAD_RESP_ERR(),
                    ibverbs_constants.IBV_WC_LOC_ACCESS_ERR(),
                    ibverbs_constants.IBV_WC_REM_INV_REQ_ERR(),
                    ibverbs_constants.IBV_WC_REM_ACCESS_ERR(),
                    ibverbs_constants.IBV_WC_REM_OP_ERR(),
                    ibverbs_constants.IBV_WC_RETRY_EXC_ERR(),
                    ibverbs_constants.IBV_WC_RNR_RETRY_EXC_ERR(),
                    ibverbs_constants.IBV_WC_LOC_RDD_VIOL_ERR(),
                    ibverbs_constants.IBV_WC_REM_INV_RD_REQ_ERR(),
                    ibverbs_constants.IBV_WC_REM_ABORT_ERR(),
                    ibverbs_constants.IBV_WC_INV_EECN_ERR(),
                    ibverbs_constants.IBV_WC_INV_EEC_STATE_ERR(),
                    ibverbs_constants.IBV_WC_FATAL_ERR(),
                    ibverbs_constants.IBV_WC_RESP_TIMEOUT_ERR(),
                    ibverbs_constants.IBV_WC_GENERAL_ERR(),
                    ibverbs_constants.IBV_WC_TM_ERR(),
                    ibverbs_constants.IBV_WC_TM_RNDV_INCOMPLETE());

    @Test
    void numbersAreThoseOfTheHeader() {
        CompletionStatus[] statuses = CompletionStatus.values();

        assertThat(statuses).hasSize(NUMBERS.size() + 1);
        for (int i = 0; i < NUMBERS.size(); i++) {
            assertThat(CompletionStatus.of(NUMBERS.get(i))).isSameAs(statuses[i]);
        }
    }

    @Test
    void anyOtherNumberIsUnknown() {
        for (int number : new int[] {-1, Integer.MIN_VALUE, NUMBERS.size(), 1000}) {
            assertThat(CompletionStatus.of(number)).isSameAs(CompletionStatus.UNKNOWN);
        }
    }

    @Test
    void everyStatusExplainsItself() {
        for (CompletionStatus status : CompletionStatus.values()) {
            assertThat(status.explanation()).isNotBlank();
        }
    }

    /** An answer that got lost says nothing of what the peer has done. */
    @Test
    void onlyRefusalsSayThatNothingBehindWasDone() {
        assertThat(CompletionStatus.REMOTE_ACCESS.stopsFollowers()).isTrue();
        assertThat(CompletionStatus.LOCAL_PROTECTION.stopsFollowers()).isTrue();
        assertThat(CompletionStatus.RECEIVER_NOT_READY.stopsFollowers()).isTrue();
        assertThat(CompletionStatus.RETRY_EXCEEDED.stopsFollowers()).isFalse();
        assertThat(CompletionStatus.FLUSHED.stopsFollowers()).isFalse();
        assertThat(CompletionStatus.UNKNOWN.stopsFollowers()).isFalse();
        assertThat(CompletionStatus.SUCCESS.stopsFollowers()).isFalse();
    }
}
