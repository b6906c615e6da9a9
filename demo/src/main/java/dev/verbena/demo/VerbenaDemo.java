package dev.verbena.demo;

import java.io.PrintWriter;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/**
 * The command line of the demo. Without a command of its own both sides run on this machine.
 *
 * <p>Exit status: 0 if every byte is right, 1 if not or if anything failed, 2 if the command line
 * makes no sense.
 */
@Command(
        name = "verbena-demo",
        description = {
            "Moves KV caches of real models' shapes from a prefill process to a decode process by"
                    + " RDMA, one scenario for every kind of transfer, and checks every byte.",
            "",
            "Without a command, starts the decode process on this machine and plays prefill."
        },
        subcommands = {DecodeCommand.class, PrefillCommand.class},
        mixinStandardHelpOptions = true,
        version = "verbena-demo 0.1.0",
        sortOptions = false,
        exitCodeListHeading = "%nExit status:%n",
        exitCodeList = {
            "0:every byte is right",
            "1:a byte is wrong, or something failed",
            "2:the command line makes no sense"
        })
public final class VerbenaDemo implements Callable<Integer> {
    private static final long MIB = 1 << 20;

    @Mixin private final Options.Request request = new Options.Request();
    @Mixin private final Options.Link link = new Options.Link();
    @Mixin private final Options.Output output = new Options.Output();

    @Option(names = "--list", description = "List the scenarios and end.")
    private boolean list;

    /** For scripts/demo, which boots a guest of the right size; also checks the command line. */
    @Option(names = "--print-memory", hidden = true)
    private boolean printMemory;

    /** Proves that a wrong byte is found. */
    @Option(names = "--corrupt-one-byte", hidden = true)
    private boolean corruptOneByte;

    /** Made by the command line. */
    VerbenaDemo() {}

    /**
     * Runs the demo.
     *
     * @param arguments as {@code --help} lists them
     */
    public static void main(String[] arguments) {
        System.exit(commandLine().execute(arguments));
    }

    /** The command line, which tells what fails in one line. */
    static CommandLine commandLine() {
        return new CommandLine(new VerbenaDemo())
                .setParameterExceptionHandler((mistake, _) -> refuse(mistake))
                .setExecutionExceptionHandler(
                        (failure, command, _) -> tell(failure, command.getErr()));
    }

    @Override
    public Integer call() throws InterruptedException {
        if (printMemory) {
            System.out.println(transportAndMemory(request.cacheBytes()));
            return 0;
        }
        if (list) {
            Scenario.ALL.forEach(scenario ->
                    System.out.printf(
                            "%-22s %d  %s, %s%n",
                            scenario.name(),
                            scenario.category(),
                            scenario.title(),
                            scenario.model().title()));
            return 0;
        }
        return new Run(request, link, corruptOneByte).report(output);
    }

    /** Without a device the demo needs no guest, and so no memory of one. */
    private String transportAndMemory(long bytes) {
        return link.transportUsed() + " " + (1 + 3 * bytes / 2 / MIB);
    }

    /** In two lines, where picocli would print the whole help. */
    private static int refuse(ParameterException mistake) {
        PrintWriter err = mistake.getCommandLine().getErr();
        err.println("verbena-demo: " + mistake.getMessage());
        err.println("Try --help.");
        err.flush();
        return CommandLine.ExitCode.USAGE;
    }

    /** Bugs are told with their stack trace, all else in words that suffice. */
    private static int tell(Exception failure, PrintWriter err) {
        if (failure instanceof NullPointerException || failure instanceof ClassCastException) {
            failure.printStackTrace(err);
        } else {
            err.println("verbena-demo: " + words(failure));
        }
        err.flush();
        return CommandLine.ExitCode.SOFTWARE;
    }

    /** A failure in one sentence. */
    static String words(Throwable failure) {
        @Nullable String message = failure.getMessage();
        return message == null ? failure.toString() : message;
    }
}
