package dev.verbena.bindings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.verbena.bindings.ibverbs.ibverbs_h;
import java.lang.foreign.AddressLayout;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Each exported function is called with arguments of the right types, and its result follows the
 * contract whichever convention the C function has: checked for all of them on a library that
 * returns what it is told.
 */
class VerbsCallsTest {
    /** Functions whose result is a value and no status. */
    private static final Set<String> VALUES =
            Set.of(
                    "ibv_get_device_index",
                    "ibv_get_device_guid",
                    "ibv_query_qp_data_in_order",
                    "ibv_is_fork_initialized",
                    "ibv_rate_to_mult",
                    "mult_to_ibv_rate",
                    "ibv_rate_to_mbps",
                    "mbps_to_ibv_rate",
                    "ibv_rereg_mr",
                    "_ibv_query_gid_table");

    /** Functions whose result is a number, or -1 and errno. */
    private static final Set<String> NUMBERS = Set.of("ibv_get_pkey_index");

    private static final Pattern LINE =
            Pattern.compile("(\\w+) (-?\\d+) (\\d+) \\| (\\S*) (-?\\d+)");

    @TempDir Path folder;

    /** What a method returned, as text, and what {@code errno()} told afterwards. */
    private record Result(String returned, String errno) {}

    private record Results(Map<String, Result> byCall) {
        Result of(NativeCall call, int result) {
            return Objects.requireNonNull(byCall.get(call.name() + " " + result), call.name());
        }
    }

    private Results callAll() throws Exception {
        CCompiler.assumeCompiler();
        Path library = folder.resolve("libibverbs.so.1.99.98.0");
        FakeLibrary.compile(library, Set.of());
        String output =
                ChildJvm.run(
                        FakeLibraryMain.class,
                        "--enable-native-access=ALL-UNNAMED",
                        "-D" + VerbsLibrary.LIBRARY_PROPERTY + "=" + library);
        Map<String, Result> results = new LinkedHashMap<>();
        for (String line : output.lines().toList()) {
            Matcher matcher = LINE.matcher(line);
            if (matcher.matches()) {
                results.put(
                        matcher.group(1) + " " + matcher.group(2),
                        new Result(matcher.group(4), matcher.group(5)));
            } else {
                assertThat(line).as("the only other line").isEqualTo("version 1.99.98.0");
            }
        }
        assertThat(results).hasSize(NativeCalls.all().size() * FakeLibraryMain.CASES.length);
        return new Results(results);
    }

    @Test
    void everyFunctionFollowsTheContract() throws Exception {
        Results results = callAll();

        for (NativeCall call : NativeCalls.all()) {
            if (call.descriptor().returnLayout().isEmpty()) {
                assertThat(results.of(call, 0).returned()).as(call.name()).isEqualTo("null");
            } else if (call.descriptor().returnLayout().get() instanceof AddressLayout) {
                checkPointer(call, results);
            } else if (VALUES.contains(call.name()) || NUMBERS.contains(call.name())) {
                checkNumber(call, results);
            } else {
                checkStatus(call, results);
            }
        }
    }

    private static void checkPointer(NativeCall call, Results results) {
        boolean text = call.name().matches(".*(_str|_name)");
        assertThat(results.of(call, 0).returned()).as(call.name()).isEqualTo(text ? "" : "NULL");
        if (text) {
            assertThat(results.of(call, 22).returned()).as(call.name()).isEqualTo("fake0");
        } else {
            assertThat(results.of(call, 22).returned()).as(call.name()).matches("[1-9]\\d+|8");
        }
        assertThat(results.of(call, -1).errno()).as(call.name() + " tells errno").isEqualTo("12");
    }

    private static void checkNumber(NativeCall call, Results results) {
        assertThat(results.of(call, 22).returned()).as(call.name()).isEqualTo("22");
        if (NUMBERS.contains(call.name())) {
            assertThat(results.of(call, -1).returned()).as(call.name()).isEqualTo("-12");
        } else {
            assertThat(results.of(call, -19).returned()).as(call.name()).isEqualTo("-19");
        }
    }

    private static void checkStatus(NativeCall call, Results results) {
        assertThat(results.of(call, 0).returned()).as(call.name()).isEqualTo("0");
        assertThat(results.of(call, 22))
                .as(call.name() + " returns errno")
                .isEqualTo(new Result("22", "22"));
        assertThat(results.of(call, -1))
                .as(call.name() + " returns -1 and sets errno")
                .isEqualTo(new Result("12", "12"));
        assertThat(results.of(call, -19))
                .as(call.name() + " returns a negative errno")
                .isEqualTo(new Result("19", "19"));
    }

    @Test
    void pointersHaveTheSizeOfTheStructThatTheHeaderDeclares() throws Exception {
        CCompiler.assumeHeader();
        Results results = callAll();
        String header = Files.readString(CCompiler.HEADER);

        int checked = 0;
        for (NativeCall call : NativeCalls.all()) {
            Matcher declared =
                    Pattern.compile("struct (\\w+) \\*" + call.name() + "\\(").matcher(header);
            if (declared.find()) {
                assertThat(results.of(call, 22).returned())
                        .as(call.name())
                        .isEqualTo(Long.toString(sizeof(declared.group(1))));
                checked++;
            }
            if (call.name().equals("ibv_get_device_list")) {
                assertThat(results.of(call, 22).returned()).as("three pointers").isEqualTo("24");
            }
        }
        assertThat(checked).isGreaterThan(12);
    }

    private static long sizeof(String struct) throws ReflectiveOperationException {
        return (long)
                Class.forName("dev.verbena.bindings.ibverbs." + struct)
                        .getMethod("sizeof")
                        .invoke(null);
    }

    /**
     * The generated descriptors cannot be used, as asking for one looks up its symbol, but hold.
     */
    @Test
    void signaturesAreThoseThatJextractReadFromTheHeader() throws Exception {
        assumeTrue(VerbsLibrary.isAvailable(), "libibverbs is not installed");

        for (NativeCall call : NativeCalls.all()) {
            FunctionDescriptor generated =
                    (FunctionDescriptor)
                            ibverbs_h.class.getMethod(call.name() + "$descriptor").invoke(null);
            assertThat(plain(call.descriptor())).as(call.name()).isEqualTo(plain(generated));
        }
    }

    private static String plain(FunctionDescriptor descriptor) {
        StringBuilder text = new StringBuilder();
        descriptor.argumentLayouts().forEach(layout -> text.append(plain(layout)).append(' '));
        return text + "-> " + descriptor.returnLayout().map(VerbsCallsTest::plain).orElse("void");
    }

    private static String plain(MemoryLayout layout) {
        return layout.getClass().getSimpleName() + layout.byteSize();
    }

    // --- The real library ------------------------------------------------------------------------

    @Test
    void aMachineWithoutDevicesHasAnEmptyListOrSaysWhy() {
        assumeTrue(VerbsLibrary.isAvailable(), "libibverbs is not installed");

        MemorySegment list = VerbsCalls.ibv_get_device_list();

        if (list.equals(MemorySegment.NULL)) {
            assertThat(VerbsCalls.errno()).isEqualTo(Errno.ENOSYS);
        } else {
            assertThat(list.byteSize() % 8).isZero();
            VerbsCalls.ibv_free_device_list(list);
        }
    }

    @Test
    void namesAndRatesComeFromTheLibrary() {
        assumeTrue(VerbsLibrary.isAvailable(), "libibverbs is not installed");

        assertThat(VerbsCalls.ibv_wc_status_str(0)).isEqualTo("success");
        assertThat(VerbsCalls.ibv_rate_to_mbps(2)).isEqualTo(2500);
        assertThat(VerbsCalls.mult_to_ibv_rate(4)).isEqualTo(3);
        assertThat(VerbsCalls.ibv_rate_to_mult(99)).isEqualTo(-1);
    }
}
