package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.time.Duration;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Options are refused where they are out of range, and each change is of one of them only. */
class PosterOptionsTest {
    private static final PosterOptions DEFAULTS = PosterOptions.defaults();

    @ParameterizedTest
    @ValueSource(ints = {-1, 0, 1, 3, 1 << 17})
    void refusesAQueueThatIsNoPowerOfTwoWithinTheDevices(int requests) {
        refused(options -> options.withDepth(requests, 1), "sendRequests=" + requests);
    }

    @ParameterizedTest
    @ValueSource(ints = {-8, 0, 3, 100})
    void refusesToSignalOneInANumberThatIsNoPowerOfTwo(int requests) {
        refused(options -> options.withSignals(requests), "signalRequests=" + requests);
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 0})
    void refusesCountsOfNothing(int count) {
        refused(options -> options.withDepth(8, count), "chainRequests=" + count);
        refused(options -> options.withMaxSge(count), "maxSge=" + count);
        refused(options -> options.withReceives(count), "receiveRequests=" + count);
    }

    @ParameterizedTest
    @CsvSource({"PT0S, PT-0.001S", "PT-1S, PT-1S"})
    void refusesDeadlinesThatAreOverAtOnce(Duration deadline, Duration spin) {
        refused(options -> options.withProgressDeadline(deadline), "progressDeadline=");
        refused(options -> options.withDrainDeadline(deadline), "drainDeadline=");
        refused(options -> options.withSpin(spin), "spin=");
    }

    @Test
    void changesNothingElse() {
        Duration minute = Duration.ofMinutes(1);
        PosterOptions changed =
                DEFAULTS.withDepth(8, 2)
                        .withMaxSge(3)
                        .withSignals(4)
                        .withReceives(5)
                        .withProgressDeadline(minute)
                        .withDrainDeadline(minute.plusSeconds(1))
                        .withSpin(minute.plusSeconds(2));

        assertThat(changed)
                .isEqualTo(
                        new PosterOptions(
                                8,
                                3,
                                2,
                                4,
                                5,
                                minute,
                                minute.plusSeconds(1),
                                minute.plusSeconds(2)));
    }

    private static void refused(UnaryOperator<PosterOptions> change, String said) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> change.apply(DEFAULTS))
                .withMessageContaining(said);
    }
}
