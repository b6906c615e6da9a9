package dev.verbena.bindings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** No verb is forgotten: what the header has, the bindings have, or there is a reason. */
class CompletenessTest {
    private static final Path INCLUDES = Path.of("../native-headers/ibverbs.includes");

    private static final String STEERING = "flow steering: structs of variable length";
    private static final String MACRO = "stands behind a macro whose name the bindings have";

    /** Inline functions that the bindings leave out, with the reason. */
    private static final Map<String, String> EXCUSED =
            Map.ofEntries(
                    Map.entry("ibv_create_flow", STEERING),
                    Map.entry("ibv_destroy_flow", STEERING),
                    Map.entry("ibv_create_flow_action_esp", STEERING),
                    Map.entry("ibv_modify_flow_action_esp", STEERING),
                    Map.entry("ibv_destroy_flow_action", STEERING),
                    Map.entry("___ibv_query_port", MACRO),
                    Map.entry("__ibv_reg_mr", MACRO),
                    Map.entry("__ibv_reg_mr_iova", MACRO),
                    Map.entry("__ibv_get_device_list", "serves static linking alone"),
                    Map.entry("verbs_get_ctx", "is ExtendedOp.in"));

    private static Set<String> methods(Class<?>... classes) {
        Set<String> names = new TreeSet<>();
        for (Class<?> one : classes) {
            for (Method method : one.getDeclaredMethods()) {
                if (Modifier.isPublic(method.getModifiers())) {
                    names.add(method.getName());
                }
            }
        }
        return names;
    }

    private static Set<String> inlineFunctions() throws IOException {
        Matcher matcher =
                Pattern.compile("static inline[^;{(]*?(\\w+)\\s*\\(")
                        .matcher(Files.readString(CCompiler.HEADER));
        Set<String> names = new TreeSet<>();
        while (matcher.find()) {
            names.add(matcher.group(1));
        }
        return names;
    }

    @Test
    void everyInlineFunctionIsWrittenInJavaOrExcused() throws Exception {
        CCompiler.assumeHeader();
        assumeTrue(
                CCompiler.isHeaderOfTheBindings(),
                "the installed header is of another version than that of the bindings");
        Set<String> missing = inlineFunctions();
        assertThat(missing).hasSizeGreaterThan(90);

        missing.removeAll(
                methods(
                        VerbsInline.class,
                        ExtendedVerbs.class,
                        WorkRequestVerbs.class,
                        ExtendedPolling.class));
        missing.removeAll(EXCUSED.keySet());

        assertThat(missing).isEmpty();
    }

    @Test
    void everyExportedFunctionOfTheListHasAMethodAndNoOtherHas() throws IOException {
        Set<String> listed = new TreeSet<>();
        for (String line : Files.readAllLines(INCLUDES)) {
            if (line.startsWith("--include-function ")) {
                listed.add(line.substring("--include-function ".length()));
            }
        }

        Set<String> written = methods(VerbsCalls.class);
        written.remove("errno");

        assertThat(written).isEqualTo(listed);
    }

    @Test
    void theListIsSortedWithinItsGroupsAndWithoutDoubles() throws IOException {
        String previous = "";
        Set<String> seen = new TreeSet<>();
        for (String line : Files.readAllLines(INCLUDES)) {
            if (line.startsWith("--include-")) {
                assertThat(seen.add(line)).as(line).isTrue();
                assertThat(line).isGreaterThan(previous);
            }
            previous = line.startsWith("--include-") ? line : "";
        }
    }
}
