package dev.verbena.demo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.kv.KvLayout;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Every kind of wrong byte must be found and named: the demo's word is worth nothing otherwise. */
class PageCheckTest {
    /** Two layers of K and V, pages of 4 tokens of 32 bytes: small, and of the real structure. */
    private static final KvLayout LAYOUT = new KvLayout.Heads(2, 2, 8, 2, 4);

    private static final int CACHE_PAGES = 10;
    private static final int[] PAGES = {7, 2, 3};

    private final Arena arena = Arena.ofConfined();
    private final PageContent content = new PageContent(LAYOUT, 5);
    private final PageChecksums theirs = new PageChecksums(LAYOUT.poolCount(), PAGES.length);
    private final CacheMemory cache =
            new CacheMemory(LAYOUT, CACHE_PAGES, arena.allocate(LAYOUT.bytes(CACHE_PAGES)));

    @BeforeEach
    void transferAllPages() {
        for (int pool = 0; pool < LAYOUT.poolCount(); pool++) {
            for (int i = 0; i < PAGES.length; i++) {
                MemorySegment page = cache.page(pool, PAGES[i]);
                content.fill(page, pool, i);
                theirs.set(pool, i, PageChecksums.of(page));
            }
        }
    }

    @AfterEach
    void freeMemory() {
        arena.close();
    }

    @Test
    void rightPagesAreRight() throws IOException {
        DemoMessage.Verdict verdict = check();

        assertThat(verdict).isEqualTo(new DemoMessage.Verdict(12, 0, null));
        assertThat(verdict.allRight()).isTrue();
    }

    @Test
    void oneWrongByteIsFoundAndItsPageNamed() throws IOException {
        new PageCheck(cache, PAGES, content).corruptOneByte();

        DemoMessage.Verdict verdict = check();

        assertThat(verdict.allRight()).isFalse();
        assertThat(verdict.pagesWrong()).isEqualTo(1);
        WrongPage wrong = Objects.requireNonNull(verdict.firstWrong());
        assertThat(wrong.label()).isEqualTo("layer 0, V, page 1");
        assertThat(wrong.detail())
                .matches(
                        "decode page 2; CRC32C \\p{XDigit}{8} at prefill, \\p{XDigit}{8} at decode;"
                                + " byte 64 is 0x\\p{XDigit}{2}, should be 0x\\p{XDigit}{2}");
    }

    @Test
    void swappedPagesAreBothWrongAndTheEarlierIsNamed() throws IOException {
        MemorySegment one = cache.page(3, PAGES[0]);
        MemorySegment other = cache.page(3, PAGES[2]);
        byte[] kept = one.toArray(ValueLayout.JAVA_BYTE);
        one.copyFrom(other);
        other.copyFrom(MemorySegment.ofArray(kept));

        DemoMessage.Verdict verdict = check();

        assertThat(verdict.pagesWrong()).isEqualTo(2);
        assertThat(Objects.requireNonNull(verdict.firstWrong()).label())
                .isEqualTo("layer 1, V, page 0");
    }

    @Test
    void writtenPageOfAnotherRequestIsWrong() throws IOException {
        cache.page(1, 9).set(ValueLayout.JAVA_BYTE, 100, (byte) 1);

        DemoMessage.Verdict verdict = check();

        assertThat(Objects.requireNonNull(verdict.firstWrong()).toString())
                .isEqualTo(
                        "layer 1, K, decode page 9, which is not the request's: byte 100 is 0x01,"
                                + " should be 0x00");
    }

    @Test
    void checksumOfTheOtherSideCounts() throws IOException {
        theirs.set(0, 2, ~theirs.get(0, 2));

        assertThat(Objects.requireNonNull(check().firstWrong()).detail())
                .startsWith("decode page 3; CRC32C")
                .endsWith("its bytes follow the pattern");
    }

    @Test
    void tellsOfEveryPool() throws IOException {
        List<Integer> told = new ArrayList<>();

        new PageCheck(cache, PAGES, content).run(theirs, told::add);

        assertThat(told).containsExactly(1, 2, 3, 4);
    }

    private DemoMessage.Verdict check() throws IOException {
        return new PageCheck(cache, PAGES, content).run(theirs, _ -> {});
    }
}
