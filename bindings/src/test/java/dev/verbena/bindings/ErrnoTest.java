package dev.verbena.bindings;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Field;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Names are those of the C library, and a status is folded alike whichever convention it has. */
class ErrnoTest {
    @TempDir Path folder;

    @Test
    void everyValueHasTheNameOfTheCLibrary() throws Exception {
        CCompiler.assumeCompiler();
        Path program = folder.resolve("names");
        CCompiler.compile(
                """
                #define _GNU_SOURCE
                #include <stdio.h>
                #include <string.h>
                int main(void) {
                  for (int e = 1; e < 134; e++)
                    printf("%s\\n", strerrorname_np(e) ? strerrorname_np(e) : "none");
                  return 0;
                }
                """,
                program);

        List<String> names = CCompiler.run(List.of(program.toString())).lines().toList();

        for (int error = 1; error < 134; error++) {
            String name = names.get(error - 1);
            assertThat(Errno.name(error)).isEqualTo(name.equals("none") ? "errno " + error : name);
        }
    }

    @Test
    void constantsHaveTheValueOfTheirName() throws Exception {
        for (Field field : Errno.class.getFields()) {
            assertThat(Errno.name(field.getInt(null))).isEqualTo(field.getName());
        }
    }

    @Test
    void describesForPeople() {
        assertThat(Errno.describe(Errno.ENOMEM)).isEqualTo("ENOMEM (12)");
        assertThat(Errno.text(Errno.EAGAIN)).isEqualTo("not now, try again");
        assertThat(Errno.describe(4711)).isEqualTo("errno 4711");
        assertThat(Errno.text(0)).isEqualTo("unknown error");
        assertThat(Errno.name(-12)).isEqualTo("errno -12");
    }

    @Test
    void aStatusIsPositiveInEveryConvention() {
        ThreadState.errno(Errno.ENODEV);
        assertThat(ThreadState.status(-1)).as("-1 and errno").isEqualTo(Errno.ENODEV);
        assertThat(ThreadState.status(Errno.EINVAL)).isEqualTo(Errno.EINVAL);
        assertThat(ThreadState.errno()).as("errno tells the same").isEqualTo(Errno.EINVAL);
        assertThat(ThreadState.status(-Errno.ENOMEM)).isEqualTo(Errno.ENOMEM);
        assertThat(ThreadState.status(0)).isZero();
        ThreadState.errno(0);
        assertThat(ThreadState.status(-1)).as("-1 and no errno").isEqualTo(Errno.EPERM);
        assertThat(ThreadState.number(17)).isEqualTo(17);
    }
}
