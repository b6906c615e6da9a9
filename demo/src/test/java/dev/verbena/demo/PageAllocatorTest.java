package dev.verbena.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class PageAllocatorTest {
    @Test
    void freshPagesAreAdjacent() {
        assertThat(new PageAllocator(8).allocate(4)).containsExactly(0, 1, 2, 3);
    }

    @Test
    void freedPagesComeBackBehindTheOthers() {
        PageAllocator allocator = new PageAllocator(6);
        int[] first = allocator.allocate(2);
        allocator.allocate(2);

        allocator.release(first);

        assertThat(allocator.allocate(4)).containsExactly(4, 5, 0, 1);
    }

    @Test
    void sharedPagesAreFreeWhenTheirLastHolderHasGone() {
        PageAllocator allocator = new PageAllocator(4);
        int[] prefix = allocator.allocate(2);
        allocator.share(prefix);

        allocator.release(prefix);
        assertThat(allocator.freePages()).isEqualTo(2);

        allocator.release(prefix);
        assertThat(allocator.freePages()).isEqualTo(4);
    }

    @Test
    void refusesMoreThanIsFree() {
        PageAllocator allocator = new PageAllocator(4);
        allocator.allocate(1);

        assertThatThrownBy(() -> allocator.allocate(4))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("4 pages wanted, 3 of 4 are free");
    }

    @Test
    void refusesToReleaseWhatIsFree() {
        PageAllocator allocator = new PageAllocator(4);

        assertThatThrownBy(() -> allocator.release(new int[] {3}))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("page 3 is free");
    }
}
