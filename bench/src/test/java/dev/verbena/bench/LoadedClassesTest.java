package dev.verbena.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Each class of a log is counted once, by where the JVM took it from. */
class LoadedClassesTest {
    @Test
    void eachClassIsCountedByItsSource() {
        assertThat(
                        LoadedClasses.count(
                                List.of(
                                        "[0.1s][info][class,load] java.lang.Object source: shared objects file",
                                        "[0.1s][info][class,load] a.Top source: shared objects file (top)",
                                        "[0.2s][info][class,load] java.net.Net source: jrt:/java.base",
                                        "[0.3s][info][class,load] a.B source: file:/lib/a.jar",
                                        "[0.4s][info][class,load] a.B$$Lambda/0x0000000048040210 source: a.B",
                                        "[0.4s][info][class,load] LF/0x1 source: __JVM_LookupDefineClass__")))
                .isEqualTo(Map.of("all", 6L, "archive", 2L, "jdk", 1L, "jars", 1L, "made", 2L));
    }

    @Test
    void otherLinesDoNotCount() {
        assertThat(LoadedClasses.count(List.of("[0.1s][warning][class] no class")))
                .containsEntry("all", 0L);
    }
}
