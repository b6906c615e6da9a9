package dev.verbena.transfer;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A node over TCP needs no libibverbs: in a process that has no other it is not even loaded. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class TcpOnlyTest {
    @Test
    void loadsNoLibraryOfRdma() throws Exception {
        Process child =
                new ProcessBuilder(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "-Xmx128m",
                                "--enable-native-access=ALL-UNNAMED",
                                "-cp",
                                PeerChild.classPath(),
                                TcpOnlyMain.class.getName())
                        .redirectErrorStream(true)
                        .start();

        String output = new String(child.getInputStream().readAllBytes(), UTF_8);

        assertThat(output).contains("moved 1048576 by tcp").contains("libraries of RDMA: []");
        assertThat(child.waitFor()).isZero();
    }
}
