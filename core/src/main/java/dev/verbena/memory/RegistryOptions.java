package dev.verbena.memory;

/**
 * How a registry registers.
 *
 * @param maxRegionBytes longest memory region; longer pools are split, into at most {@link
 *     PoolDescriptor#MAX_REGIONS}. Some devices lose a third of their bandwidth on regions above 4
 *     GiB, so the default is less
 * @param parallelism threads of a batch registration, above 0
 */
public record RegistryOptions(long maxRegionBytes, int parallelism) {
    private static final long DEFAULT_MAX_REGION_BYTES = 2L << 30;
    private static final int DEFAULT_PARALLELISM = 8;

    /** Regions are cut at whole pages, and a page is at least this long. */
    private static final int PAGE_BYTES = 4096;

    /**
     * Checks the numbers.
     *
     * @throws IllegalArgumentException if the region's length is not a positive multiple of 4096,
     *     or the parallelism not above 0
     */
    public RegistryOptions {
        if (maxRegionBytes <= 0 || maxRegionBytes % PAGE_BYTES != 0 || parallelism <= 0) {
            throw new IllegalArgumentException(
                    "maxRegionBytes=%d must be a positive multiple of %d, parallelism=%d above 0"
                            .formatted(maxRegionBytes, PAGE_BYTES, parallelism));
        }
    }

    /**
     * Gives the options that suit most machines.
     *
     * @return regions up to 2 GiB, eight threads
     */
    public static RegistryOptions defaults() {
        return new RegistryOptions(DEFAULT_MAX_REGION_BYTES, DEFAULT_PARALLELISM);
    }
}
