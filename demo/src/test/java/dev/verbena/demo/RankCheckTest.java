package dev.verbena.demo;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** A check passes what is right, whatever the model and the ranks, and finds any one wrong byte. */
class RankCheckTest {
    private final Arena arena = Arena.ofConfined();

    @AfterEach
    void free() {
        arena.close();
    }

    static Iterable<String> scenarios() {
        return Scenario.names();
    }

    @ParameterizedTest
    @MethodSource("scenarios")
    void rightCachesOfAllScenariosPass(String name) throws IOException {
        Job job = new Job(Scenario.named(name).withTokens(37), 5);
        for (int rank = 0; rank < job.ranks(Job.Side.DECODE); rank++) {
            RankCache cache = RankCache.of(job, Job.Side.DECODE, rank);
            MemorySegment memory = filled(cache, job);

            DemoMessage.Verdict verdict = check(cache, memory, job, null);

            assertThat(verdict.firstWrong()).isNull();
            assertThat(verdict.itemsChecked()).isGreaterThan(cache.parts().size() - 1);
        }
    }

    @Test
    void findsAWrongByteOfTheRequestAndNamesIt() throws IOException {
        Job job = new Job(Scenario.named("qwen3-next-1-2").withTokens(37), 5);
        RankCache cache = RankCache.of(job, Job.Side.DECODE, 1);
        for (int part = 0; part < cache.parts().size(); part += 7) {
            RankCache.PoolPart pool = cache.parts().get(part);
            MemorySegment memory = filled(cache, job);
            long offset = pool.itemOffset(pool.slots().getFirst()) + 5;
            flip(memory, offset);

            DemoMessage.Verdict verdict = check(cache, memory, job, null);

            assertThat(verdict.itemsWrong()).isEqualTo(1);
            assertThat(String.valueOf(verdict.firstWrong()))
                    .contains("rank 1, " + pool.label() + ", item 0", "byte 5 is 0x");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                // Rank 1 holds heads 4 to 7 of 256 bytes: the third token of page 2, its third
                // head.
                "llama-8b-1-2-heads   | layer 3, V                 | 2  | 2569 | token 34, head 6, byte 9",
                "deepseek-v3-hisparse | layer 60, latent           | 20 | 7    | token 20, byte 7",
                "gpt-oss-20b          | sliding layer 0, K         | 1  | 1154 | token 17, head 1, byte 2",
                // Rows of 6 bytes: rank 1 holds the second halves of 2048, 2048 and 4096 rows.
                "qwen3-next-1-2       | convolution of delta net 1 | 0  | 6206 | row 3082, byte 2",
                "qwen3-next-1-2       | temporal state of delta net 0 | 0 | 32769 | row 17, byte 1",
                "llama-8b             | auxiliary buffer of 256 bytes | 0 | 200 | byte 200",
            })
    void namesAWrongByteByItsPlaceInTheModel(
            String name, String label, int item, int offset, String place) throws IOException {
        Job job = new Job(Scenario.named(name).withTokens(48), 5);
        int rank = job.ranks(Job.Side.DECODE) - 1;
        RankCache cache = RankCache.of(job, Job.Side.DECODE, rank);
        MemorySegment memory = filled(cache, job);
        RankCache.PoolPart pool =
                cache.parts().stream()
                        .filter(p -> p.label().equals(label))
                        .findFirst()
                        .orElseThrow();
        flip(memory, pool.itemOffset(pool.slots().get(item)) + offset);

        String wrong = String.valueOf(check(cache, memory, job, null).firstWrong());

        assertThat(wrong)
                .startsWith("rank %d, %s, item %d: %s is 0x".formatted(rank, label, item, place));
    }

    @Test
    void theLastPageIsPartlyFilledAtTheDefaultScaleToo() {
        Options.Request request = new Options.Request();
        request.scenario = Scenario.named("deepseek-v3-hisparse");

        Scenario scaled = request.jobs().getFirst().scenario();

        assertThat(scaled.tokens() % Scenario.PAGE_TOKENS).isNotZero();
    }

    @Test
    void findsAByteThatNobodyWasToWrite() throws IOException {
        Job job = new Job(Scenario.MAIN.withTokens(37), 5);
        RankCache cache = RankCache.of(job, Job.Side.DECODE, 0);
        MemorySegment memory = filled(cache, job);
        RankCache.PoolPart pool = cache.parts().get(3);
        int free = 0;
        while (pool.slots().contains(free)) {
            free++;
        }
        flip(memory, pool.itemOffset(free) + pool.itemBytes() - 1);

        assertThat(String.valueOf(check(cache, memory, job, null).firstWrong()))
                .contains("layer 3, K, slot " + free + ", which is not the request's");
    }

    @Test
    void comparesTheChecksumsOfThePrefillSide() throws IOException {
        Job job = new Job(Scenario.MAIN.withTokens(37), 5);
        RankCache cache = RankCache.of(job, Job.Side.DECODE, 0);
        MemorySegment memory = filled(cache, job);
        Checksums theirs = new Checksums(cache);
        for (int part = 0; part < cache.parts().size(); part++) {
            RankCache.PoolPart pool = cache.parts().get(part);
            for (int i = 0; i < pool.slots().size(); i++) {
                long offset = pool.itemOffset(pool.slots().get(i));
                theirs.set(part, i, Checksums.of(memory.asSlice(offset, pool.itemBytes())));
            }
        }
        assertThat(check(cache, memory, job, theirs).allRight()).isTrue();

        theirs.set(4, 2, theirs.get(4, 2) ^ 1);

        assertThat(String.valueOf(check(cache, memory, job, theirs).firstWrong()))
                .contains("layer 4, K, item 2", "CRC32C");
    }

    @Test
    void spoilingAByteIsFound() throws IOException {
        Job job = new Job(Scenario.MAIN.withTokens(100), 5);
        RankCache cache = RankCache.of(job, Job.Side.DECODE, 0);
        MemorySegment memory = filled(cache, job);

        new RankCheck(cache, memory, new Content(job.seed())).corruptOneByte();

        assertThat(check(cache, memory, job, null).itemsWrong()).isEqualTo(1);
    }

    private MemorySegment filled(RankCache cache, Job job) {
        MemorySegment memory = arena.allocate(cache.lengthBytes());
        Content content = new Content(job.seed());
        for (int part = 0; part < cache.parts().size(); part++) {
            RankCache.PoolPart pool = cache.parts().get(part);
            for (int i = 0; i < pool.slots().size(); i++) {
                cache.fill(content, memory, pool.itemOffset(pool.slots().get(i)), part, i);
            }
        }
        return memory;
    }

    private static void flip(MemorySegment memory, long offset) {
        byte value = memory.get(ValueLayout.JAVA_BYTE, offset);
        memory.set(ValueLayout.JAVA_BYTE, offset, (byte) (value ^ 1));
    }

    private static DemoMessage.Verdict check(
            RankCache cache, MemorySegment memory, Job job, Checksums theirs) throws IOException {
        return new RankCheck(cache, memory, new Content(job.seed())).run(theirs, () -> {});
    }
}
