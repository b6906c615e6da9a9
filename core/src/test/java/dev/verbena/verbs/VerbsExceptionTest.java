package dev.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.verbena.bindings.Errno;
import org.junit.jupiter.api.Test;

/** A message says which verb, why, with which arguments, and what to do about it. */
class VerbsExceptionTest {
    @Test
    void tellsVerbErrnoArgumentsAndAdvice() {
        VerbsException failure =
                new VerbsException(
                        "ibv_reg_mr", Errno.ENOMEM, "length=1073741824", "raise RLIMIT_MEMLOCK");

        assertThat(failure)
                .hasMessage(
                        "ibv_reg_mr failed: ENOMEM (12): length=1073741824; raise RLIMIT_MEMLOCK");
        assertThat(failure.verb()).isEqualTo("ibv_reg_mr");
        assertThat(failure.errno()).isEqualTo(Errno.ENOMEM);
    }

    @Test
    void leavesOutWhatIsNotKnown() {
        assertThat(new VerbsException("ibv_poll_cq", 0, "", null)).hasMessage("ibv_poll_cq failed");
        assertThat(new VerbsException("ibv_poll_cq", 0, "entries=4"))
                .hasMessage("ibv_poll_cq failed: entries=4");
        assertThat(new VerbsException("ibv_alloc_pd", Errno.ENOMEM, ""))
                .hasMessage("ibv_alloc_pd failed: ENOMEM (12)");
    }

    @Test
    void growsByWhatACallerKnows() {
        VerbsException failure = new VerbsException("ibv_reg_mr", Errno.ENOMEM, "length=1", "rest");

        VerbsException fuller = failure.with("registered so far: 5 bytes");

        assertThat(fuller)
                .hasMessage(
                        "ibv_reg_mr failed: ENOMEM (12): length=1, registered so far: 5 bytes;"
                                + " rest")
                .hasCause(failure);
        assertThat(fuller.errno()).isEqualTo(Errno.ENOMEM);
    }

    @Test
    void checkThrowsForEveryResultButZero() {
        assertThatCode(() -> VerbsException.check("ibv_dealloc_pd", 0, ""))
                .doesNotThrowAnyException();
        for (int result : new int[] {Errno.EBUSY, -Errno.EBUSY}) {
            assertThatExceptionOfType(VerbsException.class)
                    .isThrownBy(() -> VerbsException.check("ibv_dealloc_pd", result, ""))
                    .withMessage("ibv_dealloc_pd failed: EBUSY (16)");
        }
    }
}
