package dev.verbena.kv;

import dev.verbena.kv.KvGroup.Shape;
import dev.verbena.kv.KvGroup.Staging;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.transfer.PosterOptions;
import dev.verbena.verbs.DeviceTest;
import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Requests between ranks over RDMA, one of each way: every byte of every decode rank is what a
 * naive model says. All shapes run over TCP, {@link KvRanksTcpTest}: each rank is a node, and a
 * device in an emulated guest takes seconds to connect as many.
 */
@DeviceTest
class KvRanksDeviceTest {
    @ParameterizedTest
    @CsvSource({"2, 1, false", "1, 2, true"})
    void requestsBetweenRanksOfDifferentTpSizes(int prefillTp, int decodeTp, boolean staged)
            throws Exception {
        Shape shape = Shape.of(prefillTp, decodeTp);
        ModelOfBytes model = ModelOfBytes.heads(4).withMamba().withAux();
        long chunk = model.stagedBytes(shape, 3);
        NodeOptions options =
                NodeOptions.onlyDevice()
                        .queuePairs(1)
                        .connectDeadline(Duration.ofSeconds(60))
                        .poster(
                                PosterOptions.defaults()
                                        .withProgressDeadline(Duration.ofSeconds(60)));
        try (KvGroup group =
                new KvGroup(
                        options,
                        shape,
                        model,
                        model,
                        KvSenderOptions.defaults(),
                        KvReceiverOptions.defaults(),
                        staged ? new Staging(2 * chunk, chunk, 2) : Staging.NONE)) {
            group.new Job(1, 41).run(3);
            group.new Job(2, 13).run(3);
            group.assertBytes();
            group.assertQuiet();
        }
    }
}
