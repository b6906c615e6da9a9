package dev.verbena.bindings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.verbena.bindings.ibverbs.ibverbs_constants;
import dev.verbena.bindings.testing.DriverDouble;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Each way in which loading can fail ends in one exception that says what to do. */
class VerbsLibraryTest {
    private static final String LINUX = "Linux-amd64";

    @TempDir Path folder;

    @Test
    void anAbsentLibraryIsNamedWithWhatToInstall() {
        VerbsLibrary library = new VerbsLibrary("libnowhere.so.1", LINUX);

        var failure =
                catchThrowableOfType(VerbsUnavailableException.class, () -> library.find("ibv_x"));

        assertThat(failure)
                .hasMessageContaining("cannot load libnowhere.so.1")
                .hasMessageContaining("libibverbs1 and ibverbs-providers (Debian, Ubuntu)")
                .hasMessageContaining("-Dverbena.ibverbs.library=PATH")
                .hasRootCauseInstanceOf(IllegalArgumentException.class);
        assertThat(library.installedVersion()).isEqualTo("unknown");
    }

    @Test
    void aFileThatIsNoLibraryIsLikeAnAbsentOne() {
        Path program = Path.of(System.getProperty("java.home"), "bin", "java");
        VerbsLibrary library = new VerbsLibrary(program.toString(), LINUX);

        assertThatThrownBy(library::loaded)
                .isInstanceOf(VerbsUnavailableException.class)
                .hasMessageContaining("cannot load " + program);
    }

    @Test
    void anotherPlatformIsRefusedAsItsStructsDiffer() {
        VerbsLibrary library = new VerbsLibrary("libc.so.6", "Linux-aarch64");

        assertThatThrownBy(library::loaded)
                .isInstanceOf(VerbsUnavailableException.class)
                .hasMessageContaining("Linux-aarch64");
    }

    @Test
    void anAbsentSymbolIsNamedWithTheVersionThatBroughtIt() {
        VerbsLibrary library = new VerbsLibrary("libc.so.6", LINUX);

        assertThatThrownBy(() -> library.find("ibv_reg_dmabuf_mr"))
                .isInstanceOf(VerbsUnavailableException.class)
                .hasMessageContaining("libc.so.6 has no ibv_reg_dmabuf_mr")
                .hasMessageContaining("which came with IBVERBS_1.12 (rdma-core 34)")
                .hasMessageContaining("the installed version is");
        assertThatThrownBy(() -> library.find("ibv_nonsense"))
                .isInstanceOf(VerbsUnavailableException.class)
                .hasMessageStartingWith("libc.so.6 has no ibv_nonsense; the installed version is");
    }

    @Test
    void aFailureIsKeptAndToldAgainFromEachCallersStack() {
        VerbsLibrary library = new VerbsLibrary("libnowhere.so.1", LINUX);

        var first = catchThrowableOfType(VerbsUnavailableException.class, library::loaded);
        var second = catchThrowableOfType(VerbsUnavailableException.class, library::loaded);

        assertThat(second).isNotSameAs(first).hasMessage(first.getMessage());
        assertThat(second.getCause()).isSameAs(first.getCause());
    }

    @Test
    void theVersionIsThatOfTheMappedFile() {
        String maps =
                """
                7f00-7f01 r--p 00000000 08:01 11 /usr/lib/libc.so.6
                7f02-7f03 r-xp 00000000 08:01 12 /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0
                """;

        assertThat(VerbsLibrary.versionIn(maps)).isEqualTo("1.14.44.0");
        assertThat(VerbsLibrary.versionIn("7f02-7f03 r-xp 0 0 1 /opt/libibverbs.so.1"))
                .isEqualTo("unknown");
    }

    @Test
    void theInstalledLibraryIsLoadedOnce() {
        assumeTrue(VerbsLibrary.isAvailable(), "libibverbs is not installed");

        VerbsLibrary.require();

        assertThat(VerbsLibrary.has("ibv_open_device")).isTrue();
        assertThat(VerbsLibrary.has("ibv_nonsense")).isFalse();
        assertThat(VerbsLibrary.symbol("ibv_open_device")).isNotEqualTo(MemorySegment.NULL);
        assertThat(VerbsLibrary.version()).matches("1\\.\\d+\\.\\d+\\.\\d+");
    }

    // --- In a process of its own -----------------------------------------------------------------

    @Test
    void everyMethodSaysSoWhereThereIsNoLibrary() throws Exception {
        String output =
                ChildJvm.run(
                        Unavailable.class,
                        "--enable-native-access=ALL-UNNAMED",
                        "-Dverbena.ibverbs.library=libnowhere.so.1");

        assertThat(output.lines())
                .hasSize(NativeCalls.all().size() + 3)
                .contains("isAvailable false", "has false", "version unknown")
                .filteredOn(line -> line.contains("ibv_"))
                .allMatch(line -> line.contains(" VerbsUnavailableException cannot load"));
    }

    @Test
    void deniedNativeAccessIsNamedWithTheOption() throws Exception {
        String output =
                ChildJvm.run(
                        Unavailable.class,
                        "--illegal-native-access=deny",
                        "-Dverbena.ibverbs.library=libc.so.6");

        assertThat(output).contains("isAvailable false");
        assertThat(output.lines())
                .filteredOn(line -> line.startsWith("ibv_open_device"))
                .allMatch(line -> line.contains("--enable-native-access=dev.verbena.bindings"));
    }

    @Test
    void anOldLibraryHurtsOnlyTheCallerOfWhatItLacks() throws Exception {
        CCompiler.assumeCompiler();
        Path library = folder.resolve("libibverbs.so.1.8.28.0");
        FakeLibrary.compile(library, Set.of("ibv_reg_dmabuf_mr"));

        String output =
                ChildJvm.run(
                        FakeLibraryMain.class,
                        "--enable-native-access=ALL-UNNAMED",
                        "-Dverbena.ibverbs.library=" + library);

        assertThat(output)
                .contains("ibv_reg_mr 22 0 | 48 0")
                .contains(library + " has no ibv_reg_dmabuf_mr, which came with IBVERBS_1.12")
                .contains("the installed version is 1.8.28.0");
    }

    @Test
    void layoutsAndConstantsAndTheInlineVerbsLoadNoLibrary() throws Exception {
        String output =
                ChildJvm.run(
                        Untouched.class,
                        "--enable-native-access=ALL-UNNAMED",
                        "-Dverbena.ibverbs.library=libnowhere.so.1");

        assertThat(output).isEqualTo("loaded false\n");
    }

    /** Calls everything and prints how it fails. */
    static final class Unavailable {
        private Unavailable() {}

        public static void main(String[] args) throws Exception {
            System.out.println("isAvailable " + VerbsLibrary.isAvailable());
            System.out.println("has " + VerbsLibrary.has("ibv_open_device"));
            System.out.println("version " + VerbsLibrary.version());
            for (NativeCall call : NativeCalls.all()) {
                try {
                    Object _ = call.handle();
                } catch (RuntimeException | LinkageError thrown) {
                    System.out.println(
                            call.name()
                                    + " "
                                    + thrown.getClass().getSimpleName()
                                    + " "
                                    + thrown.getMessage());
                }
            }
        }
    }

    /** Touches everything that should do without the library. */
    static final class Untouched {
        private Untouched() {}

        public static void main(String[] args) throws Exception {
            for (Class<?> struct : Structs.all()) {
                Structs.layout(struct);
            }
            for (Method method : ibverbs_constants.class.getDeclaredMethods()) {
                try {
                    method.invoke(null);
                } catch (InvocationTargetException thrown) {
                    throw new AssertionError(method.toString(), thrown);
                }
            }
            try (DriverDouble driver = new DriverDouble()) {
                driver.useNativeNoOp();
                VerbsInline.ibv_req_notify_cq(driver.newCq(1), 0);
                ExtendedVerbs.ibv_alloc_null_mr(driver.newPd());
            }
            String maps = Files.readString(Path.of("/proc/self/maps"));
            System.out.println("loaded " + maps.contains("libibverbs"));
        }
    }
}
