package dev.verbena.demo;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Tells the user what goes on: lines of text, and a bar below them while something takes its time.
 * Where there is no terminal, the bar is a line at every tenth of the way.
 *
 * <p>Safe for use by several threads; one stage at a time.
 */
final class Progress {
    /** How progress is shown. */
    enum Mode {
        /** A bar if standard error is a terminal, else lines. */
        AUTO,
        /** A bar that is drawn over and over. */
        BAR,
        /** A line at every tenth of the way. */
        LINES,
        /** Only what is said. */
        NONE
    }

    private static final int BAR_CELLS = 30;
    private static final long REDRAW_MILLIS = 100;
    private static final String ERASE_LINE = "\r\u001b[K";

    private final PrintStream out;
    private final Mode mode;
    private @Nullable Stage stage;

    Progress(PrintStream out, Mode mode) {
        this.out = out;
        this.mode = mode == Mode.AUTO ? (isTerminal() ? Mode.BAR : Mode.LINES) : mode;
    }

    /** Prints a line, above the bar if there is one. */
    synchronized void say(String line) {
        if (mode == Mode.BAR && stage != null) {
            out.print(ERASE_LINE);
            out.println(line);
            stage.draw();
        } else {
            out.println(line);
        }
        out.flush();
    }

    /**
     * Begins a stage.
     *
     * @param name what is being done
     * @param unit of the numbers shown
     * @param unitSize how much of the total one unit is
     * @param total where the stage ends, above 0
     * @param done how far it has come, where more than the total counts as that; asked now and
     *     then, from a thread of this class
     * @return the stage, to be closed when it is over
     */
    Stage begin(String name, String unit, long unitSize, long total, LongSupplier done) {
        Stage begun = new Stage(name, unit, unitSize, total, done);
        synchronized (this) {
            stage = begun;
        }
        begun.start();
        return begun;
    }

    /** Something that takes a while and whose end is known. */
    final class Stage implements AutoCloseable {
        private final String name;
        private final String unit;
        private final long unitSize;
        private final long total;
        private final LongSupplier done;
        private final Thread thread;
        private long tenthsShown;

        private Stage(String name, String unit, long unitSize, long total, LongSupplier done) {
            this.name = name;
            this.unit = unit;
            this.unitSize = unitSize;
            this.total = total;
            this.done = done;
            this.thread = Thread.ofVirtual().name("progress").unstarted(this::redraw);
        }

        private void start() {
            thread.start();
        }

        private void redraw() {
            try {
                while (true) {
                    draw();
                    Thread.sleep(REDRAW_MILLIS);
                }
            } catch (InterruptedException over) {
                // Closed: the last state is drawn there.
            }
        }

        private void draw() {
            synchronized (Progress.this) {
                // What goes to several ranks is more than was reckoned with.
                long now = Math.min(total, done.getAsLong());
                switch (mode) {
                    case BAR -> out.print("\r" + bar(now));
                    case LINES -> drawLine(now);
                    case AUTO, NONE -> {}
                }
                out.flush();
            }
        }

        private void drawLine(long now) {
            long tenths = 10 * now / total;
            if (tenths > tenthsShown) {
                tenthsShown = tenths;
                out.println(name + ": " + numbers(now));
            }
        }

        private String bar(long now) {
            int full = (int) (BAR_CELLS * now / total);
            return "%-8s [%s%s] %s"
                    .formatted(name, "#".repeat(full), ".".repeat(BAR_CELLS - full), numbers(now));
        }

        private String numbers(long now) {
            return String.format(
                    Locale.ROOT,
                    "%3d %%, %,d of %,d %s",
                    100 * now / total,
                    now / unitSize,
                    total / unitSize,
                    unit);
        }

        /** Ends the stage, wherever it has come to. */
        @Override
        public void close() {
            thread.interrupt();
            synchronized (Progress.this) {
                draw();
                if (mode == Mode.BAR) {
                    out.println();
                }
                stage = null;
            }
        }
    }

    /** Whether standard error is a terminal, which Java tells of standard input and output only. */
    private static boolean isTerminal() {
        try {
            String target = Files.readSymbolicLink(Path.of("/proc/self/fd/2")).toString();
            return target.startsWith("/dev/pts/") || target.startsWith("/dev/tty");
        } catch (IOException | UnsupportedOperationException unknown) {
            return false;
        }
    }
}
