package dev.verbena.demo;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Both sides on this machine: starts the decode process and plays prefill. */
final class Run extends Sender {
    private final Options.Link link;
    private final boolean corruptOneByte;

    Run(Options.Request request, Options.Link link, boolean corruptOneByte) {
        super(request, link);
        this.link = link;
        this.corruptOneByte = corruptOneByte;
    }

    @Override
    void run(Prefill prefill, Progress progress, Requests requests)
            throws IOException, InterruptedException {
        List<String> arguments = new ArrayList<>(link.arguments());
        if (corruptOneByte) {
            arguments.add("--corrupt-one-byte");
        }
        try (DecodeProcess decode = DecodeProcess.start(arguments, progress)) {
            try {
                prefill.connect(decode.awaitAddress());
                boolean allRight = requests.send();
                prefill.close();
                int status = decode.awaitEnd();
                if (status != (allRight ? 0 : 1)) {
                    throw new DemoException("after the check, with status " + status);
                }
            } catch (IOException | RuntimeException failure) {
                throw decode.explain(failure);
            }
        }
    }
}
