package dev.verbena.demo;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Both sides on this machine: starts the decode process and plays prefill. */
final class Run extends Sender {
    private final Options.Request request;
    private final Options.Link link;
    private final boolean corruptOneByte;

    Run(Options.Request request, Options.Link link, boolean corruptOneByte) {
        super(request, link);
        this.request = request;
        this.link = link;
        this.corruptOneByte = corruptOneByte;
    }

    @Override
    ScenarioResult send(Prefill prefill, Progress progress)
            throws IOException, InterruptedException {
        Job job = request.job();
        progress.say(
                String.format(
                        Locale.ROOT,
                        "%s (%s): %,d tokens are %,d bytes; on %s",
                        job.model().title(),
                        job.model().description(),
                        job.tokens(),
                        job.bytes(),
                        prefill.deviceName()));
        List<String> arguments = new ArrayList<>(link.arguments());
        if (corruptOneByte) {
            arguments.add("--corrupt-one-byte");
        }
        try (DecodeProcess decode = DecodeProcess.start(arguments, progress)) {
            try {
                // It makes its memory ready while the other process starts.
                ScenarioResult result = prefill.send(request.chunkTokens, decode::awaitAddress);
                int status = decode.awaitEnd();
                if (status != (result.verified() ? 0 : 1)) {
                    throw new DemoException("after the check, with status " + status);
                }
                return result;
            } catch (IOException | RuntimeException failure) {
                throw decode.explain(failure);
            }
        }
    }
}
