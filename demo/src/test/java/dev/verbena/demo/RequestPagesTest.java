package dev.verbena.demo;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The pages that the demo moves must be legal for any size, and neither trivially adjacent nor all
 * apart, since both would hide what merging does. The sizes are the smallest, odd ones, the default
 * and the longest prompt.
 */
class RequestPagesTest {
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 17, 128, 8192})
    void pagesAreDistinctAndInsideTheCache(int count) {
        int cachePages = count + count / 4 + 32;
        for (long seed = 0; seed < 20; seed++) {
            assertLegal(RequestPages.onPrefill(count, cachePages, seed), count, cachePages);
            assertLegal(RequestPages.onDecode(count, cachePages, seed), count, cachePages);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {64, 128, 512, 8192})
    void someNeighboursAreAdjacentAndMostStretchesAreShort(int count) {
        for (long seed = 0; seed < 20; seed++) {
            int[] prefill = RequestPages.onPrefill(count, count + count / 4 + 32, seed);
            int[] decode = RequestPages.onDecode(count, count + count / 4 + 32, seed);

            assertThat(RequestPages.runs(prefill, decode))
                    .as("runs of %d pages, seed %d", count, seed)
                    .isBetween(count / 16, count * 4 / 5);
            assertThat(prefill).isNotEqualTo(decode);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 128})
    void sameSeedGivesSamePages(int count) {
        assertThat(RequestPages.onPrefill(count, 2 * count + 64, 7))
                .isEqualTo(RequestPages.onPrefill(count, 2 * count + 64, 7));
        assertThat(RequestPages.onDecode(count, 2 * count + 64, 7))
                .isEqualTo(RequestPages.onDecode(count, 2 * count + 64, 7));
    }

    private static void assertLegal(int[] pages, int count, int cachePages) {
        assertThat(pages).hasSize(count);
        assertThat(Arrays.stream(pages).distinct().count()).isEqualTo(count);
        assertThat(Arrays.stream(pages).allMatch(page -> page >= 0 && page < cachePages)).isTrue();
    }
}
