package dev.verbena.demo;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class TransferClockTest {
    private final AtomicLong now = new AtomicLong();
    private final TransferClock clock = new TransferClock(now::get);

    @Test
    void overlappingTransfersCountOnce() {
        clock.begin();
        now.set(1_000_000_000);
        clock.begin();
        now.set(2_000_000_000);
        clock.end();
        now.set(5_000_000_000L);
        clock.end();

        assertThat(clock.seconds()).isEqualTo(5);
    }

    @Test
    void gapsDoNotCount() {
        clock.begin();
        now.set(1_000_000_000);
        clock.end();
        now.set(9_000_000_000L);
        clock.begin();
        now.set(9_500_000_000L);
        clock.end();

        assertThat(clock.seconds()).isEqualTo(1.5);
    }
}
