package dev.verbena.demo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.transfer.NodeOptions;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Both sides, in one process and over TCP: every scenario moves right bytes, the numbers of a trace
 * are those of what was moved, and a wrong byte is found and named in all of them.
 */
class DemoOverTcpTest {
    private static final InetSocketAddress ANY_PORT =
            new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);

    /** A prompt of three blocks; the same again; its beginning; its beginning and another end. */
    private static final List<TraceRequest> TRACE =
            List.of(
                    new TraceRequest(1500, List.of(1L, 2L, 3L)),
                    new TraceRequest(1500, List.of(1L, 2L, 3L)),
                    new TraceRequest(1024, List.of(1L, 2L)),
                    new TraceRequest(1025, List.of(1L, 2L, 4L)));

    private static final TraceShape SHAPE = new TraceShape(ModelShape.DEEPSEEK_V3, 2, 12, 1);

    private final Progress silent =
            new Progress(new PrintStream(OutputStream.nullOutputStream()), Progress.Mode.NONE);

    /** What the prefill side does once it is connected. */
    @FunctionalInterface
    private interface Requests {
        ScenarioResult send(Prefill prefill) throws IOException, InterruptedException;
    }

    static List<String> scenarios() {
        return Scenario.names();
    }

    @ParameterizedTest
    @MethodSource("scenarios")
    void movesRightBytes(String name) throws Exception {
        ScenarioResult result = run(false, prefill -> prefill.send(job(name)));

        assertThat(result.verdict().firstWrong()).isNull();
        assertThat(result.verified()).isTrue();
        assertThat(result.bytes()).isEqualTo(requestBytes(job(name)));
        assertThat(result.workRequests()).isBetween(1L, result.blocks());
    }

    @ParameterizedTest
    @MethodSource("scenarios")
    void findsAWrongByte(String name) throws Exception {
        ScenarioResult result = run(true, prefill -> prefill.send(job(name)));

        assertThat(result.verified()).isFalse();
        assertThat(result.verdict().itemsWrong()).isEqualTo(1);
    }

    @Test
    void aTraceSendsWhatTheDecodeSideHasNot() throws Exception {
        ScenarioResult result = run(false, prefill -> prefill.replay(SHAPE, TRACE));

        // Blocks 1 to 4 are sent once each, in two pages and all layers.
        assertThat(result.verdict().firstWrong()).isNull();
        assertThat(result.items()).isEqualTo(4 * 2 * 61);
        assertThat(result.bytes()).isEqualTo(4 * 2 * SHAPE.layout().bytes(1));
        assertThat(result.trace())
                .isNotNull()
                .satisfies(trace -> {
                    assertThat(trace.requests()).isEqualTo(4);
                    assertThat(trace.itemsReused()).isEqualTo((3 + 2 + 2) * 2 * 61);
                    assertThat(trace.p50()).isPositive().isLessThanOrEqualTo(trace.longest());
                });
        assertThat(result.verdict().itemsChecked()).isEqualTo((3 + 3 + 2 + 3) * 2 * 61);
    }

    @Test
    void aWrongByteOfATraceIsFoundAndNamed() throws Exception {
        ScenarioResult result = run(true, prefill -> prefill.replay(SHAPE, TRACE));

        assertThat(result.verified()).isFalse();
        // All four requests have the page, and the check of the whole cache at the end finds it.
        assertThat(result.verdict().itemsWrong()).isEqualTo(5);
        // The fourth of six pages, in its middle: token 8 of 16.
        assertThat(String.valueOf(result.verdict().firstWrong()))
                .startsWith("request 1, layer 30, latent, page 3: token 56, byte 0 is 0x");
    }

    /** Gives what prefill was told, once both sides are agreed on it. */
    private ScenarioResult run(boolean corruptOneByte, Requests requests) throws Exception {
        NodeOptions options = NodeOptions.tcp();
        Decode decode = new Decode(options, some -> some.listen(ANY_PORT), corruptOneByte, silent);
        CompletableFuture<Integer> port = new CompletableFuture<>();
        CompletableFuture<Boolean> decodeEnd = new CompletableFuture<>();
        Thread.ofVirtual()
                .start(() -> {
                    try {
                        decodeEnd.complete(decode.serve(options.listen(ANY_PORT), port::complete));
                    } catch (Exception failure) {
                        port.completeExceptionally(failure);
                        decodeEnd.completeExceptionally(failure);
                    }
                });
        ScenarioResult result;
        try (Prefill prefill = Prefill.open(options, silent)) {
            prefill.connect(
                    new InetSocketAddress(
                            InetAddress.getLoopbackAddress(), port.get(1, TimeUnit.MINUTES)));
            result = requests.send(prefill);
        }
        assertThat(decodeEnd.get(1, TimeUnit.MINUTES)).isEqualTo(result.verified());
        return result;
    }

    private static Job job(String name) {
        return new Job(Scenario.named(name).withTokens(37), 3);
    }

    private static long requestBytes(Job job) {
        long bytes = 0;
        for (int rank = 0; rank < job.ranks(Job.Side.DECODE); rank++) {
            bytes += RankCache.of(job, Job.Side.DECODE, rank).requestBytes();
        }
        return bytes;
    }
}
