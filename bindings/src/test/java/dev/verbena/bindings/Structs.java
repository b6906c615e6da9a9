package dev.verbena.bindings;

import dev.verbena.bindings.ibverbs.ibv_sge;
import java.io.IOException;
import java.lang.foreign.GroupLayout;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** The generated struct classes, found among the compiled ones. */
final class Structs {
    private Structs() {}

    static List<Class<?>> all() throws IOException, URISyntaxException, ClassNotFoundException {
        Path classes =
                Path.of(ibv_sge.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        String packageName = ibv_sge.class.getPackageName();
        List<Class<?>> structs = new ArrayList<>();
        try (Stream<Path> files =
                Files.list(classes.resolve(packageName.replace('.', '/'))).sorted()) {
            for (Path file : files.toList()) {
                String name = file.getFileName().toString().replace(".class", "");
                if (!name.contains("$") && !name.startsWith("ibverbs_") && !name.contains("-")) {
                    structs.add(Class.forName(packageName + "." + name));
                }
            }
        }
        return structs;
    }

    static GroupLayout layout(Class<?> struct) throws ReflectiveOperationException {
        return (GroupLayout) struct.getMethod("layout").invoke(null);
    }
}
