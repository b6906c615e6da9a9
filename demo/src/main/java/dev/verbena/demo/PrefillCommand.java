package dev.verbena.demo;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The prefill side alone, for two machines. */
@Command(
        name = "prefill",
        description = "Plays prefill for a decode side that listens, maybe on another machine.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class PrefillCommand implements Callable<Integer> {
    @Option(
            names = "--connect",
            required = true,
            paramLabel = "HOST:PORT",
            converter = Options.AddressConverter.class,
            description = "Where the decode side listens.")
    private @Nullable InetSocketAddress address;

    @Mixin private final Options.Request request = new Options.Request();
    @Mixin private final Options.Link link = new Options.Link();
    @Mixin private final Options.Output output = new Options.Output();

    @Override
    public Integer call() throws InterruptedException {
        InetSocketAddress decode = address;
        if (decode == null) {
            throw new IllegalStateException("the command line lets nobody leave --connect out");
        }
        return new Sending(decode).report(output);
    }

    final class Sending extends Sender {
        private final InetSocketAddress decode;

        Sending(InetSocketAddress decode) {
            super(request, link);
            this.decode = decode;
        }

        @Override
        void run(Prefill prefill, Progress progress, Requests requests)
                throws IOException, InterruptedException {
            prefill.connect(decode);
            requests.send();
        }
    }
}
