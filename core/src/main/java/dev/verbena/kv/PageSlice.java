package dev.verbena.kv;

/**
 * Says which pages of a request a chunk holds: page numbers count from the start of the request,
 * not of a pool.
 *
 * @param first first page of the chunk, at least 0
 * @param end page after the last, at least {@code first}
 */
public record PageSlice(int first, int end) {
    /**
     * Checks the range.
     *
     * @throws IllegalArgumentException if the first page is negative or the end is before it
     */
    public PageSlice {
        Checks.notNegative("first page of the slice", first);
        if (end < first) {
            throw new IllegalArgumentException(
                    "page slice ends at %d, before its first page %d".formatted(end, first));
        }
    }

    /**
     * Says how many pages the chunk holds.
     *
     * @return end minus first
     */
    public int count() {
        return end - first;
    }
}
