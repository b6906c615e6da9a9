package dev.verbena.demo;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** What the commands have in common that play prefill: they report, also on a failure. */
abstract sealed class Sender permits Run, PrefillCommand.Sending {
    private final Options.Request request;
    private final Options.Link link;

    Sender(Options.Request request, Options.Link link) {
        this.request = request;
        this.link = link;
    }

    /** Connects to the decode side, sends all requests, and takes leave of it. */
    abstract void run(Prefill prefill, Progress progress, Requests requests)
            throws IOException, InterruptedException;

    /** Sends the requests over a connection. */
    @FunctionalInterface
    interface Requests {
        /** Sends all of them; gives whether all were right. */
        boolean send() throws IOException, InterruptedException;
    }

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
        }
        if (!report.scenarios().isEmpty()) {
            (output.json ? System.err : System.out).print("\n" + report.table());
        }
        if (output.json) {
            System.out.println(report.json());
        }
        System.out.flush();
        return report.isGood() ? 0 : 1;
    }

    private Report attempt(Progress progress) throws InterruptedException {
        @Nullable String device = null;
        List<ScenarioResult> results = new ArrayList<>();
        try (Prefill prefill = Prefill.open(link.node(), progress)) {
            device = prefill.deviceName();
            run(prefill, progress, () -> sendAll(prefill, progress, results));
            return new Report(device, link.transportUsed(), results, null);
        } catch (IOException | RuntimeException failure) {
            return new Report(device, link.transportUsed(), results, VerbenaDemo.words(failure));
        }
    }

    private boolean sendAll(Prefill prefill, Progress progress, List<ScenarioResult> results)
            throws IOException, InterruptedException {
        List<TraceRequest> trace = request.traceRequests();
        if (!trace.isEmpty()) {
            results.add(prefill.replay(request.traceShape(trace), trace));
            return results.getFirst().verified();
        }
        boolean allRight = true;
        for (Job job : request.jobs()) {
            Scenario scenario = job.scenario();
            progress.say(
                    String.format(
                            Locale.ROOT,
                            "%s: %s (%s), %,d tokens, TP %d:%d, by %s on %s",
                            scenario.name(),
                            scenario.title(),
                            scenario.model().description(),
                            scenario.tokens(),
                            scenario.prefillTp(),
                            scenario.decodeTp(),
                            prefill.transport(),
                            prefill.deviceName()));
            ScenarioResult result = prefill.send(job);
            results.add(result);
            allRight &= result.verified();
        }
        return allRight;
    }
}
