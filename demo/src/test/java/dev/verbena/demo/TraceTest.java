package dev.verbena.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A trace is read as it is written, and its prefixes are kept as a cache keeps them. */
class TraceTest {
    @Test
    void readsALine() {
        String line =
                "{\"timestamp\": 27, \"input_length\": 1025, \"output_length\": 3, \"hash_ids\":"
                        + " [0, 14, 9]}";

        assertThat(TraceRequest.parse(line))
                .isEqualTo(new TraceRequest(1025, List.of(0L, 14L, 9L)));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "{\"input_length\": 5}",
                "{\"hash_ids\": [1]}",
                "{\"input_length\": 513, \"hash_ids\": [1]}",
                "{\"input_length\": 0, \"hash_ids\": []}",
                "{\"input_length\": 99999999, \"hash_ids\": [1]}"
            })
    void refusesWhatIsNoRequest(String line) {
        assertThatIllegalArgumentException().isThrownBy(() -> TraceRequest.parse(line));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"input_length\": 99999999999, \"hash_ids\": [1]}",
                "{\"input_length\": 5, \"hash_ids\": [99999999999999999999]}"
            })
    void aNumberThatIsTooLargeIsToldWithItsLine(String line) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TraceRequest.parse(line))
                .withMessage("a number is too large in: " + line);
    }

    @Test
    void aHashTwiceInARequestIsRefused() {
        assertThatIllegalArgumentException()
                .isThrownBy(
                        () -> TraceRequest.parse("{\"input_length\": 600, \"hash_ids\": [7, 7]}"))
                .withMessageStartingWith("a hash occurs twice in [7, 7]");
    }

    @Test
    void theSampleIsATrace() {
        Options.Request request = new Options.Request();
        request.trace = "sample";

        List<TraceRequest> requests = request.traceRequests();

        assertThat(requests).hasSize(40);
        assertThat(requests.getFirst().inputTokens()).isEqualTo(6758);
        assertThat(request.traceShape(requests).blockPages()).isEqualTo(1);
    }

    @Test
    void aTraceWithoutRequestsIsRefused(@TempDir Path folder) throws IOException {
        Options.Request request = new Options.Request();
        request.trace = Files.writeString(folder.resolve("empty"), "\n").toString();

        assertThatIllegalArgumentException()
                .isThrownBy(request::traceRequests)
                .withMessageContaining("has no requests");
    }

    @Test
    void aPrefixThatIsThereIsFoundAndKeepsItsPages() {
        PrefixCache cache = new PrefixCache(new PageAllocator(20), 2);
        PrefixCache.Placed first = cache.place(List.of(1L, 2L, 3L));

        PrefixCache.Placed second = cache.place(List.of(1L, 2L, 4L));

        assertThat(first.cachedPages()).isZero();
        assertThat(second.cachedPages()).isEqualTo(4);
        assertThat(second.pages().subList(0, 4)).isEqualTo(first.pages().subList(0, 4));
        assertThat(second.pages().subList(4, 6)).doesNotContainAnyElementsOf(first.pages());
    }

    @Test
    void aFullCacheForgetsWhatWasUsedLeastRecently() {
        PrefixCache cache = new PrefixCache(new PageAllocator(6), 2);
        cache.place(List.of(1L));
        cache.place(List.of(2L));
        cache.place(List.of(1L));

        cache.place(List.of(3L, 4L));

        assertThat(cache.place(List.of(1L)).cachedPages()).isEqualTo(2);
        assertThat(cache.place(List.of(2L)).cachedPages()).isZero();
    }

    @Test
    void pagesOfARequestAreDistinctHoweverFullTheCacheIs() {
        PrefixCache cache = new PrefixCache(new PageAllocator(12), 2);
        for (long request = 0; request < 50; request++) {
            List<Long> hashes = LongStream.range(request, request + 6).boxed().toList();

            List<Integer> pages = cache.place(hashes).pages();

            assertThat(new HashSet<>(pages)).hasSize(12);
        }
    }

    @Test
    void pagesAreScatteredAndElsewhereOnEachSide() {
        List<Long> hashes = LongStream.range(0, 200).boxed().toList();
        TraceShape shape = new TraceShape(ModelShape.LLAMA_3_1_8B, 1, 400, 1);

        int[] prefill = pages(shape, Job.Side.PREFILL, hashes);
        int[] decode = pages(shape, Job.Side.DECODE, hashes);

        assertThat(prefill).doesNotHaveDuplicates().isNotEqualTo(decode);
        assertThat(decode).doesNotHaveDuplicates();
        // Some neighbours are still adjacent on both sides, so that there is something to merge.
        assertThat(RequestPages.runs(prefill, decode)).isBetween(20, 199);
    }

    private static int[] pages(TraceShape shape, Job.Side side, List<Long> hashes) {
        return shape.prefixes(side).place(hashes).pages().stream()
                .mapToInt(Integer::intValue)
                .toArray();
    }

    @Test
    void aRequestLongerThanTheCacheIsRefused() {
        PrefixCache cache = new PrefixCache(new PageAllocator(4), 2);

        assertThatExceptionOfType(DemoException.class)
                .isThrownBy(() -> cache.place(List.of(1L, 2L, 3L)))
                .withMessageContaining("longer than the cache");
    }
}
