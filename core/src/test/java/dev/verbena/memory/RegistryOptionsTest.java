package dev.verbena.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;

/** Regions are cut at whole pages, whatever the options and the device say. */
class RegistryOptionsTest {
    @Test
    void refusesRegionsThatAreNoWholePages() {
        for (long bytes : new long[] {0, -4096, 4095, 4097}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> new RegistryOptions(bytes, 1))
                    .withMessageContaining("maxRegionBytes=" + bytes);
        }
        new RegistryOptions(4096, 1);
    }

    @Test
    void refusesNoThreads() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new RegistryOptions(4096, 0))
                .withMessageContaining("parallelism=0");
    }

    @Test
    void defaultRegionsStayBelowFourGigabytes() {
        assertThat(RegistryOptions.defaults().maxRegionBytes()).isLessThan(4L << 30);
    }

    @Test
    void devicesLimitPrevailsWhenItIsLess() {
        assertThat(MemoryRegistry.regionLimit(1 << 20, 2 << 20)).isEqualTo(1 << 20);
        assertThat(MemoryRegistry.regionLimit(2 << 20, 1 << 20)).isEqualTo(1 << 20);
        assertThat(MemoryRegistry.regionLimit((1 << 20) + 5, 2 << 20)).isEqualTo(1 << 20);
    }

    /** All ones is how soft-RoCE says that it has no limit. */
    @Test
    void devicesLimitIsUnsigned() {
        assertThat(MemoryRegistry.regionLimit(-1, 1 << 20)).isEqualTo(1 << 20);
    }

    @Test
    void refusesDevicesThatCannotRegisterAPage() {
        for (long limit : new long[] {0, 4095}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> MemoryRegistry.regionLimit(limit, 1 << 20))
                    .withMessageContaining(limit + " bytes");
        }
    }
}
