package dev.verbena.demo;

import dev.verbena.transfer.NodeOptions;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The decode side alone: a child of {@link Run}, or on another machine than prefill. */
@Command(
        name = "decode",
        description = {
            "Plays decode for one prefill side: for each request it sets slots aside, waits until"
                    + " they are filled and checks them. Ends with the prefill side.",
            "",
            "What to expect, the prefill side says."
        },
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class DecodeCommand implements Callable<Integer> {
    private static final int DEFAULT_PORT = 7471;

    @Option(
            names = "--listen",
            paramLabel = "HOST:PORT",
            converter = Options.AddressConverter.class,
            description = "Where to listen (default: 127.0.0.1:7471).")
    private InetSocketAddress address =
            new InetSocketAddress(InetAddress.getLoopbackAddress(), DEFAULT_PORT);

    @Option(
            names = "--unencrypted",
            description =
                    "Listen beyond loopback without TLS: whoever reaches the port may write to this"
                            + " side's pages.")
    private boolean unencrypted;

    @Mixin private final Options.Link link = new Options.Link();

    @Option(names = "--corrupt-one-byte", hidden = true)
    private boolean corruptOneByte;

    /** Ends with standard input: a child does not outlive its parent, however that ends. */
    @Option(names = "--with-parent", hidden = true)
    private boolean withParent;

    @Spec private @Nullable CommandSpec spec;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (!unencrypted && !address.getAddress().isLoopbackAddress() && spec != null) {
            throw new ParameterException(
                    spec.commandLine(),
                    "Listening on %s lets whoever reaches it write to this side's pages; say"
                                    .formatted(address)
                            + " --unencrypted if that is meant");
        }
        if (withParent) {
            Thread.ofPlatform().daemon().name("parent").start(DecodeCommand::endWithInput);
        }
        Progress progress = new Progress(System.err, Progress.Mode.NONE);
        InetSocketAddress anyPort = new InetSocketAddress(address.getAddress(), 0);
        Decode decode =
                new Decode(
                        link.node(), options -> listen(options, anyPort), corruptOneByte, progress);
        return decode.serve(listen(link.node(), address), DecodeCommand::listening) ? 0 : 1;
    }

    private NodeOptions listen(NodeOptions options, InetSocketAddress where) {
        return unencrypted ? options.listenUnencrypted(where) : options.listen(where);
    }

    private static void listening(int port) {
        System.out.println(DecodeProcess.LISTENING + port);
        System.out.flush();
    }

    private static void endWithInput() {
        try {
            while (System.in.read() >= 0) {
                // Nobody says anything; what counts is the end.
            }
        } catch (IOException closed) {
            // As good as an end.
        }
        Runtime.getRuntime().halt(1);
    }
}
