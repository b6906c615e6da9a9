package dev.verbena.demo;

import dev.verbena.transfer.NodeOptions;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/** Groups of options that commands share. */
final class Options {
    private Options() {}

    /** How a side reaches the network. */
    static final class Link {
        @Option(
                names = "--device",
                paramLabel = "NAME",
                description = "RDMA device to use (default: the only one there is).")
        @Nullable String device;

        @Option(
                names = "--transport",
                paramLabel = "verbs|tcp|auto",
                converter = TransportConverter.class,
                description =
                        "What moves the bytes (default: auto, which is verbs). tcp needs no RDMA"
                                + " device.")
        String transport = "auto";

        /** Options of a node; a slow, emulated machine may be silent for a while. */
        NodeOptions node() {
            return base().heartbeat(Duration.ofSeconds(1), Duration.ofSeconds(10))
                    .connectDeadline(Duration.ofSeconds(20));
        }

        private NodeOptions base() {
            if (isTcp()) {
                return NodeOptions.tcp();
            }
            return device == null ? NodeOptions.onlyDevice() : NodeOptions.device(device);
        }

        private boolean isTcp() {
            return transport.equals("tcp");
        }

        /** What is used in the end. */
        String transportUsed() {
            return isTcp() ? "tcp" : "verbs";
        }

        /** The same options again, for another process. */
        List<String> arguments() {
            List<String> arguments = new ArrayList<>(List.of("--transport", transport));
            if (device != null) {
                arguments.addAll(List.of("--device", device));
            }
            return arguments;
        }
    }

    /** What is to be sent. */
    static final class Request {
        @Option(
                names = "--scenario",
                paramLabel = "NAME",
                converter = ScenarioConverter.class,
                description = "Run one scenario only; --list shows them (default: all).")
        @Nullable Scenario scenario;

        @Option(
                names = "--scale",
                paramLabel = "X",
                converter = ScaleConverter.class,
                description =
                        "Lengths of the prompts, where 1 is 1,024 to 2,048 tokens (default: 1/8).")
        @Nullable Double scale;

        @Option(
                names = "--trace",
                paramLabel = "FILE",
                description =
                        "Replay a trace of requests in the form that Mooncake publishes, in the"
                                + " order of their arrival, instead of the scenarios; 'sample' is a"
                                + " short one. Prefixes that the decode side has are not sent"
                                + " again. Its blocks of 512 tokens are scaled too (default: 1/32,"
                                + " a page).")
        @Nullable String trace;

        @Option(
                names = "--model",
                paramLabel = "NAME",
                converter = ModelConverter.class,
                description =
                        "Run the main job only, with this cache shape: llama-3.1-8b, deepseek-v3,"
                                + " gpt-oss-20b or qwen3-next-80b.")
        @Nullable ModelShape model;

        @Option(
                names = "--tokens",
                paramLabel = "N",
                converter = TokensConverter.class,
                description =
                        "Run the main job, or the scenario, with a prompt of this length, up to"
                                + " 131072.")
        @Nullable Integer tokens;

        @Option(
                names = "--seed",
                paramLabel = "N",
                description = "Seed of content and page numbers (default: 1).")
        long seed = 1;

        private static final double DEFAULT_SCALE = 1.0 / 8;
        private static final double TRACE_SCALE = 1.0 / 32;

        private double scale(double byDefault) {
            return scale == null ? byDefault : scale;
        }

        /**
         * The trace that was asked for, or nothing.
         *
         * @throws IllegalArgumentException if the file cannot be read, is no trace, or is empty; or
         *     if an option says that something else is to be sent
         */
        List<TraceRequest> traceRequests() {
            if (trace == null) {
                return List.of();
            }
            if (scenario != null || tokens != null) {
                throw new IllegalArgumentException(
                        "--trace says what is sent, and so does %s: leave one of them out"
                                .formatted(scenario != null ? "--scenario" : "--tokens"));
            }
            try {
                List<TraceRequest> requests =
                        traceLines(trace).stream()
                                .filter(line -> !line.isBlank())
                                .map(TraceRequest::parse)
                                .toList();
                if (requests.isEmpty()) {
                    throw new IllegalArgumentException("the trace " + trace + " has no requests");
                }
                return requests;
            } catch (IOException | UncheckedIOException failure) {
                throw new IllegalArgumentException("cannot read the trace " + trace, failure);
            }
        }

        private static List<String> traceLines(String name) throws IOException {
            if (!name.equals("sample")) {
                return Files.readAllLines(Path.of(name));
            }
            try (InputStream sample = Options.class.getResourceAsStream("trace-sample.jsonl")) {
                if (sample == null) {
                    throw new IOException("the sample is not in this build");
                }
                return new String(sample.readAllBytes(), StandardCharsets.UTF_8).lines().toList();
            }
        }

        /** What both sides must know of a trace: caches hold the two longest of its requests. */
        TraceShape traceShape(List<TraceRequest> requests) {
            int pages = TraceRequest.BLOCK_TOKENS / Scenario.PAGE_TOKENS;
            int blockPages = Math.clamp(Math.round(pages * scale(TRACE_SCALE)), 1, pages);
            int longest = requests.stream().mapToInt(r -> r.hashes().size()).max().orElse(1);
            ModelShape shape = model == null ? ModelShape.LLAMA_3_1_8B : model;
            return new TraceShape(shape, blockPages, 2 * longest * blockPages, seed);
        }

        /** Bytes of the caches of both sides. */
        long cacheBytes() {
            List<TraceRequest> requests = traceRequests();
            return requests.isEmpty()
                    // One scenario after the other, so the largest counts.
                    ? jobs().stream().mapToLong(Job::cacheBytes).max().orElseThrow()
                    : 2 * traceShape(requests).cacheBytes();
        }

        /** What the options ask for, in order. */
        List<Job> jobs() {
            List<Scenario> scenarios = Scenario.ALL;
            if (scenario != null) {
                if (model != null && model != scenario.model()) {
                    throw new IllegalArgumentException(
                            "the scenario %s moves the cache of %s, not of %s: leave --model out"
                                    .formatted(
                                            scenario.name(),
                                            scenario.model().title(),
                                            model.title()));
                }
                scenarios = List.of(scenario);
            } else if (model != null) {
                scenarios = List.of(Scenario.mainOf(model));
            } else if (tokens != null) {
                scenarios = List.of(Scenario.MAIN);
            }
            return scenarios.stream().map(this::adjusted).map(s -> new Job(s, seed)).toList();
        }

        private Scenario adjusted(Scenario chosen) {
            if (tokens != null) {
                return chosen.withTokens(tokens);
            }
            // The main job by itself is what --model says, whole.
            return scenario == null && model != null ? chosen : chosen.scaled(scale(DEFAULT_SCALE));
        }
    }

    /** How results and progress are told. */
    static final class Output {
        @Option(
                names = "--json",
                description =
                        "Print one JSON object on standard output, all else on standard error.")
        boolean json;

        @Option(
                names = "--progress",
                paramLabel = "auto|bar|lines|none",
                converter = ProgressConverter.class,
                description = "How to show progress (default: auto, a bar on a terminal).")
        Progress.Mode progress = Progress.Mode.AUTO;
    }

    static final class TransportConverter implements ITypeConverter<String> {
        @Override
        public String convert(String value) {
            return switch (value) {
                case "verbs", "tcp", "auto" -> value;
                default ->
                        throw new TypeConversionException(
                                "'" + value + "' is not verbs, tcp or auto");
            };
        }
    }

    static final class ScenarioConverter implements ITypeConverter<Scenario> {
        @Override
        public Scenario convert(String value) {
            try {
                return Scenario.named(value);
            } catch (IllegalArgumentException unknown) {
                throw new TypeConversionException(String.valueOf(unknown.getMessage()));
            }
        }
    }

    static final class ScaleConverter implements ITypeConverter<Double> {
        @Override
        public Double convert(String value) {
            try {
                double scale = Double.parseDouble(value);
                if (scale > 0 && scale <= 64) {
                    return scale;
                }
            } catch (NumberFormatException notANumber) {
                // Told below.
            }
            throw new TypeConversionException("'" + value + "' is not a number from 0 to 64");
        }
    }

    static final class ModelConverter implements ITypeConverter<ModelShape> {
        @Override
        public ModelShape convert(String value) {
            try {
                return ModelShape.of(value);
            } catch (IllegalArgumentException unknown) {
                throw new TypeConversionException(String.valueOf(unknown.getMessage()));
            }
        }
    }

    static final class TokensConverter implements ITypeConverter<Integer> {
        @Override
        public Integer convert(String value) {
            return number(value, Scenario.MAX_TOKENS);
        }
    }

    static final class ProgressConverter implements ITypeConverter<Progress.Mode> {
        @Override
        public Progress.Mode convert(String value) {
            return switch (value) {
                case "auto" -> Progress.Mode.AUTO;
                case "bar" -> Progress.Mode.BAR;
                case "lines" -> Progress.Mode.LINES;
                case "none" -> Progress.Mode.NONE;
                default ->
                        throw new TypeConversionException(
                                "'" + value + "' is not auto, bar, lines or none");
            };
        }
    }

    /** HOST:PORT, with an IPv6 address in brackets. */
    static final class AddressConverter implements ITypeConverter<InetSocketAddress> {
        private static final int MAX_PORT = 65535;

        @Override
        public InetSocketAddress convert(String value) {
            int colon = value.lastIndexOf(':');
            if (colon < 1) {
                throw new TypeConversionException("'" + value + "' is not of the form HOST:PORT");
            }
            int port = port(value.substring(colon + 1));
            String host = value.substring(0, colon).replaceAll("^\\[(.*)]$", "$1");
            InetSocketAddress address = new InetSocketAddress(host, port);
            if (address.isUnresolved()) {
                throw new TypeConversionException("there is no host '" + host + "'");
            }
            return address;
        }

        private static int port(String text) {
            try {
                int port = Integer.parseInt(text);
                if (port >= 0 && port <= MAX_PORT) {
                    return port;
                }
            } catch (NumberFormatException notANumber) {
                // Told below.
            }
            throw new TypeConversionException("'" + text + "' is not a port");
        }
    }

    private static int number(String value, int limit) {
        try {
            int number = Integer.parseInt(value);
            if (number >= 1 && number <= limit) {
                return number;
            }
        } catch (NumberFormatException notANumber) {
            // Told below.
        }
        throw new TypeConversionException(
                "'%s' is not a number from 1 to %d".formatted(value, limit));
    }
}
