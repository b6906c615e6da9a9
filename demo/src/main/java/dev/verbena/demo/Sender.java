package dev.verbena.demo;

import dev.verbena.transfer.NodeOptions;
import java.io.IOException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What the commands have in common that play prefill: they report, also on a failure. */
abstract sealed class Sender permits Run, PrefillCommand.Sending {
    private final Options.Request request;
    private final Options.Link link;

    Sender(Options.Request request, Options.Link link) {
        this.request = request;
        this.link = link;
    }

    /** Plays prefill. */
    abstract ScenarioResult send(Prefill prefill, Progress progress)
            throws IOException, InterruptedException;

    /**
     * Plays prefill and prints the report.
     *
     * @return the exit status
     */
    int report(Options.Output output) throws InterruptedException {
        Progress progress = new Progress(System.err, output.progress);
        Report report = attempt(progress);
        if (report.error() != null) {
            progress.say("verbena-demo: " + report.error());
        } else {
            (output.json ? System.err : System.out).print("\n" + report.table());
        }
        if (output.json) {
            System.out.println(report.json());
        }
        System.out.flush();
        return report.isGood() ? 0 : 1;
    }

    private Report attempt(Progress progress) throws InterruptedException {
        NodeOptions options = link.node();
        @Nullable String device = null;
        try (Prefill prefill = Prefill.open(options, request.job(), progress)) {
            device = prefill.deviceName();
            ScenarioResult result = send(prefill, progress);
            return new Report(device, link.transportUsed(), List.of(result), null);
        } catch (IOException | RuntimeException failure) {
            return new Report(device, link.transportUsed(), List.of(), VerbenaDemo.words(failure));
        }
    }
}
