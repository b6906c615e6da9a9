package dev.verbena.bindings;

import java.io.IOException;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;

/**
 * A library with the functions of libibverbs, each of which does as {@code fake_set} told: it sets
 * errno and returns a value. A pointer result is a piece of static memory unless the value is 0. It
 * remembers the name and the last argument of the last call.
 */
final class FakeLibrary {
    private FakeLibrary() {}

    /**
     * Compiles the library.
     *
     * @param target file to write
     * @param without functions to leave out, as in an older version
     */
    static void compile(Path target, Set<String> without) throws IOException, InterruptedException {
        StringBuilder source =
                new StringBuilder(
                        """
                        #include <errno.h>
                        static long result;
                        static int error;
                        static char memory[4096] = "fake0";
                        static const char *last_name = "";
                        static long last_argument;
                        void fake_set(long r, int e) { result = r; error = e; }
                        const char *fake_last_name(void) { return last_name; }
                        long fake_last_argument(void) { return last_argument; }
                        """);
        for (NativeCall call : NativeCalls.all()) {
            if (!without.contains(call.name())) {
                source.append(function(call));
            }
        }
        CCompiler.compile(source.toString(), target, "-shared", "-fPIC");
    }

    private static String function(NativeCall call) {
        StringBuilder text = new StringBuilder();
        String type = call.descriptor().returnLayout().map(FakeLibrary::type).orElse("void");
        text.append(type).append(' ').append(call.name()).append('(');
        List<MemoryLayout> arguments = call.descriptor().argumentLayouts();
        for (int i = 0; i < arguments.size(); i++) {
            text.append(i == 0 ? "" : ", ").append(type(arguments.get(i))).append(" a" + i);
        }
        text.append(") { errno = error; last_name = __func__; ");
        if (!arguments.isEmpty()) {
            text.append("last_argument = (long) a" + (arguments.size() - 1) + "; ");
        }
        if (call.name().equals("ibv_get_device_list")) {
            text.append("*(int *) a0 = 3; ");
        }
        text.append(
                switch (type) {
                    case "void" -> "";
                    case "void *" -> "return result ? memory : 0; ";
                    default -> "return (" + type + ") result; ";
                });
        return text.append("}\n").toString();
    }

    private static String type(MemoryLayout layout) {
        return switch (layout) {
            case ValueLayout.OfByte _ -> "unsigned char";
            case ValueLayout.OfShort _ -> "unsigned short";
            case ValueLayout.OfInt _ -> "int";
            case ValueLayout.OfLong _ -> "long";
            default -> "void *";
        };
    }
}
