package dev.verbena.demo;

import dev.verbena.transfer.NodeOptions;
import java.net.InetSocketAddress;
import java.time.Duration;
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
                paramLabel = "verbs|auto",
                converter = TransportConverter.class,
                description = "What moves the bytes (default: auto, which is verbs).")
        String transport = "auto";

        /** Options of a node; a slow, emulated machine may be silent for a while. */
        NodeOptions node() {
            NodeOptions options =
                    device == null ? NodeOptions.onlyDevice() : NodeOptions.device(device);
            return options.heartbeat(Duration.ofSeconds(1), Duration.ofSeconds(10))
                    .connectDeadline(Duration.ofSeconds(20));
        }

        /** What is used in the end. */
        String transportUsed() {
            return "verbs";
        }

        /** The same options again, for another process. */
        List<String> arguments() {
            return device == null ? List.of() : List.of("--device", device);
        }
    }

    /** What is to be sent. */
    static final class Request {
        @Option(
                names = "--model",
                paramLabel = "NAME",
                converter = ModelConverter.class,
                description = "Whose cache shape: llama-3.1-8b (default) or deepseek-v3.")
        ModelShape model = ModelShape.LLAMA_3_1_8B;

        @Option(
                names = "--tokens",
                paramLabel = "N",
                converter = TokensConverter.class,
                description = "Length of the prompt, up to 131072 (default: 2048).")
        int tokens = 2048;

        @Option(
                names = "--chunk-tokens",
                paramLabel = "N",
                converter = ChunkConverter.class,
                description =
                        "Tokens that are made and sent at a time, a multiple of 16 (default: 512).")
        int chunkTokens = 512;

        @Option(
                names = "--seed",
                paramLabel = "N",
                description = "Seed of content and page numbers (default: 1).")
        long seed = 1;

        Job job() {
            return new Job(model, tokens, seed);
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
                case "verbs", "auto" -> value;
                case "tcp" ->
                        throw new TypeConversionException(
                                "tcp comes with a later version; until then it is verbs or auto");
                default ->
                        throw new TypeConversionException("'" + value + "' is not verbs or auto");
            };
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
            return number(value, Job.MAX_TOKENS);
        }
    }

    static final class ChunkConverter implements ITypeConverter<Integer> {
        @Override
        public Integer convert(String value) {
            int tokens = number(value, Job.MAX_TOKENS);
            if (tokens % Job.PAGE_TOKENS != 0) {
                throw new TypeConversionException(
                        value + " is not a multiple of the page size, " + Job.PAGE_TOKENS);
            }
            return tokens;
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
