package dev.verbena.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.kv.KvLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The pattern must tell any two pages apart, or a page in the wrong place would pass for right. */
class PageContentTest {
    @ParameterizedTest
    @EnumSource(ModelShape.class)
    void everyPageOfEveryPoolDiffers(ModelShape model) {
        KvLayout layout = model.layout(Job.PAGE_TOKENS);
        PageContent content = new PageContent(layout, 1);
        Set<Integer> checksums = new HashSet<>();

        for (int pool = 0; pool < layout.poolCount(); pool++) {
            for (int page = 0; page < 4; page++) {
                checksums.add(PageChecksums.of(filled(layout, content, pool, page)));
            }
        }

        assertThat(checksums).hasSize(4 * layout.poolCount());
    }

    @Test
    void noWordComesTwiceWithinAPage() {
        KvLayout layout = ModelShape.LLAMA_3_1_8B.layout(Job.PAGE_TOKENS);
        MemorySegment page = filled(layout, new PageContent(layout, 1), 0, 0);
        Set<Long> words = new HashSet<>();

        for (long word : page.toArray(ValueLayout.JAVA_LONG_UNALIGNED)) {
            words.add(word);
        }

        assertThat(words).hasSize((int) (layout.pageBytes() / Long.BYTES));
    }

    @Test
    void seedChangesContent() {
        KvLayout layout = ModelShape.DEEPSEEK_V3.layout(Job.PAGE_TOKENS);

        MemorySegment one = filled(layout, new PageContent(layout, 1), 0, 0);
        MemorySegment two = filled(layout, new PageContent(layout, 2), 0, 0);

        assertThat(one.mismatch(two)).isNotNegative();
        assertThat(one.mismatch(filled(layout, new PageContent(layout, 1), 0, 0))).isEqualTo(-1);
    }

    @Test
    void refusesTokensThatAreNotWholeWords() {
        assertThatThrownBy(() -> new PageContent(new KvLayout.Latent(1, 3, 2, 16), 1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("6 bytes");
    }

    private static MemorySegment filled(
            KvLayout layout, PageContent content, int pool, int requestPage) {
        MemorySegment page = MemorySegment.ofArray(new byte[(int) layout.pageBytes()]);
        content.fill(page, pool, requestPage);
        return page;
    }
}
