package dev.verbena.demo;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class ProgressTest {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final PrintStream out = new PrintStream(bytes, true, UTF_8);

    @Test
    void linesTellTheEnd() {
        Progress progress = new Progress(out, Progress.Mode.LINES);
        AtomicLong done = new AtomicLong();

        try (var _ = progress.begin("moving", "MB", 10, 2000, done::get)) {
            done.set(2000);
        }

        assertThat(bytes.toString(UTF_8)).isEqualTo("moving: 100 %, 200 of 200 MB\n");
    }

    @Test
    void barKeepsBelowWhatIsSaid() {
        Progress progress = new Progress(out, Progress.Mode.BAR);

        try (var _ = progress.begin("moving", "MB", 1, 2, () -> 1)) {
            progress.say("hello");
        }

        String bar = "moving   [###############...............]  50 %, 1 of 2 MB";
        assertThat(bytes.toString(UTF_8))
                .contains("\r\u001b[Khello\n\r" + bar)
                .endsWith(bar + "\n");
    }

    @Test
    void saysLinesOnlyWhenAskedForNoProgress() {
        Progress progress = new Progress(out, Progress.Mode.NONE);

        try (var _ = progress.begin("moving", "MB", 1, 2, () -> 1)) {
            progress.say("hello");
        }

        assertThat(bytes.toString(UTF_8)).isEqualTo("hello\n");
    }
}
