package dev.verbena.bindings;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The inline functions that end in an exported one choose it as the C macros do. */
class FallbacksTest {
    private static final int WRITE = 1;
    private static final int RELAXED_WRITE = 1 << 20 | WRITE;

    @TempDir Path folder;

    @BeforeEach
    void needsACompiler() {
        CCompiler.assumeCompiler();
    }

    private String run(Set<String> without) throws Exception {
        Path library = folder.resolve("libibverbs.so.1.0.0.0");
        FakeLibrary.compile(library, without);
        return ChildJvm.run(
                FallbacksMain.class,
                "--enable-native-access=ALL-UNNAMED",
                "-Dverbena.ibverbs.library=" + library);
    }

    @Test
    void eachEndsInTheExportedFunctionThatCTakes() throws Exception {
        assertThat(run(Set.of()).lines())
                .map(line ->
                        line.replaceFirst("(_qp|_srq|_port|_device) (returned \\d+).*", "$1 $2"))
                .containsExactly(
                        "query_port -> ibv_query_port returned 22",
                        "zeroed true",
                        "query_device_ex -> ibv_query_device returned 22",
                        "zeroed true",
                        "create_qp_ex -> ibv_create_qp returned 160",
                        "create_srq_ex -> ibv_create_srq returned 128",
                        "reg_mr -> ibv_reg_mr returned 48 last " + WRITE,
                        "reg_mr relaxed -> ibv_reg_mr_iova2 returned 48 last " + RELAXED_WRITE,
                        "iova -> ibv_reg_mr_iova returned 48 last " + WRITE,
                        "iova relaxed -> ibv_reg_mr_iova2 returned 48 last " + RELAXED_WRITE,
                        "gid_ex -> _ibv_query_gid_ex returned 22 last 32",
                        "gid_table -> _ibv_query_gid_table returned 22 last 32");
    }

    @Test
    void anOldLibraryGetsNoOptionalAccessFlags() throws Exception {
        assertThat(run(Set.of("ibv_reg_mr_iova2")))
                .contains("reg_mr relaxed -> ibv_reg_mr returned 48 last " + WRITE)
                .contains("iova relaxed -> ibv_reg_mr_iova returned 48 last " + WRITE);
    }
}
