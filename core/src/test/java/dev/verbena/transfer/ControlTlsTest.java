package dev.verbena.transfer;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.InputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.time.Duration;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The same over TLS, and what is said where one side speaks TLS and the other does not. */
@Timeout(60)
final class ControlTlsTest {
    private static final char[] PASSWORD = "throwaway".toCharArray();
    private static final ControlOptions PLAIN = ControlOptions.defaults();

    private static ControlOptions tls = PLAIN;
    private static ControlOptions tlsWithoutCertificate = PLAIN;

    @BeforeAll
    static void makeKeys(@TempDir Path directory) throws Exception {
        Path file = directory.resolve("node.p12");
        Process keytool =
                new ProcessBuilder(
                                Path.of(System.getProperty("java.home"), "bin", "keytool")
                                        .toString(),
                                "-genkeypair",
                                "-keyalg",
                                "EC",
                                "-alias",
                                "node",
                                "-dname",
                                "CN=node",
                                "-storetype",
                                "PKCS12",
                                "-keystore",
                                file.toString(),
                                "-storepass",
                                new String(PASSWORD))
                        .redirectErrorStream(true)
                        .start();
        String output = new String(keytool.getInputStream().readAllBytes(), UTF_8);
        assertThat(keytool.waitFor()).as(output).isZero();

        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(file)) {
            keys.load(in, PASSWORD);
        }
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("node", keys.getCertificate("node"));
        KeyStore none = KeyStore.getInstance("PKCS12");
        none.load(null, null);
        tls = PLAIN.withTls(context(keys, trusted));
        tlsWithoutCertificate = PLAIN.withTls(context(none, trusted));
    }

    private static SSLContext context(KeyStore keys, KeyStore trusted)
            throws GeneralSecurityException {
        KeyManagerFactory keyManagers =
                KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keyManagers.init(keys, PASSWORD);
        TrustManagerFactory trustManagers =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trustManagers.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keyManagers.getKeyManagers(), trustManagers.getTrustManagers(), null);
        return context;
    }

    @Test
    void carriesFramesAndTheGoodbye() throws Exception {
        ControlPeers.Notes near = new ControlPeers.Notes();
        ControlPeers.Notes far = new ControlPeers.Notes();
        try (ControlListener listener = listen(tls, far);
                ControlConnection connection = connect(listener, tls)) {
            connection.receive(ControlFrame.WELCOME);
            connection.start(near);

            byte[] large = new byte[1 << 20];
            connection.send(ControlFrame.MESSAGE, large);
            assertThat(far.frames.take().payload()).isEqualTo(large);
            connection.close("over and out");

            assertThat(far.awaitLost()).contains("said goodbye: over and out");
            assertThat(near.awaitLost()).contains("closed by this side");
        }
    }

    @Test
    void losesAPeerThatFallsSilent() throws Exception {
        ControlOptions hasty = tls.withHeartbeat(Duration.ofMillis(50), Duration.ofMillis(300));
        ControlOptions quiet = tls.withHeartbeat(Duration.ofSeconds(50), Duration.ofSeconds(55));
        ControlPeers.Notes notes = new ControlPeers.Notes();
        try (ControlListener listener = listen(quiet, new ControlPeers.Notes());
                ControlConnection connection = connect(listener, hasty)) {
            connection.receive(ControlFrame.WELCOME);
            connection.start(notes);

            assertThat(notes.awaitLost()).contains("silent for 300 ms");
        }
    }

    @Test
    void tellsAPlainPeerThatThePortSpeaksTls() throws Exception {
        try (ControlListener listener = listen(tls, new ControlPeers.Notes());
                ControlConnection connection = connect(listener, PLAIN)) {
            assertThatThrownBy(() -> connection.receive(ControlFrame.WELCOME))
                    .isInstanceOf(ControlRefusedException.class)
                    .hasMessageContaining("speaks TLS only");
            assertServes(listener);
        }
    }

    @Test
    void tellsATlsPeerThatTheHandshakeFailedOnAPlainPort() throws Exception {
        try (ControlListener listener = listen(PLAIN, new ControlPeers.Notes())) {
            assertThatThrownBy(() -> connect(listener, tls))
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("cannot connect to ")
                    .hasMessageContaining("the TLS handshake failed");
        }
    }

    @Test
    void turnsAwayAPeerWithoutACertificate() throws Exception {
        try (ControlListener listener = listen(tls, new ControlPeers.Notes())) {
            // With TLS 1.3 the side that connects learns of it with the first read only.
            assertThatThrownBy(
                            () -> {
                                try (ControlConnection connection =
                                        connect(listener, tlsWithoutCertificate)) {
                                    connection.receive(ControlFrame.WELCOME);
                                }
                            })
                    .isInstanceOf(IOException.class);
            assertServes(listener);
        }
    }

    @Test
    void letsAPeerInWithoutACertificateWhereNoneIsDemanded() throws Exception {
        try (ControlListener listener =
                        listen(tls.withClientCertificates(false), new ControlPeers.Notes());
                ControlConnection connection = connect(listener, tlsWithoutCertificate)) {
            assertThat(connection.receive(ControlFrame.WELCOME)).isNotNull();
        }
    }

    @Test
    void boundsTheTlsHandshakeOnTheSideThatConnects() throws Exception {
        try (ServerSocket mute = new ServerSocket()) {
            mute.bind(ControlPeers.loopback(0));
            ControlOptions hasty = tls.withHandshakeDeadline(Duration.ofMillis(200));

            assertThatThrownBy(() ->
                            ControlConnection.connect(
                                    ControlPeers.loopback(mute.getLocalPort()), hasty))
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("the TLS handshake took too long");
        }
    }

    @Test
    void boundsTheTlsHandshakeOnTheSideThatListens() throws Exception {
        ControlOptions hasty = tls.withHandshakeDeadline(Duration.ofMillis(200));
        try (ControlListener listener = listen(hasty, new ControlPeers.Notes());
                Socket mute = new Socket("localhost", listener.port())) {
            // Blocks until the listener hangs up.
            assertThat(mute.getInputStream().read()).isEqualTo(-1);
        }
    }

    private static void assertServes(ControlListener listener) throws IOException {
        try (ControlConnection connection = connect(listener, tls)) {
            assertThat(connection.receive(ControlFrame.WELCOME)).isNotNull();
        }
    }

    private static ControlListener listen(ControlOptions options, ControlConnection.Handler handler)
            throws IOException {
        return ControlListener.bind(
                ControlPeers.loopback(0),
                options,
                (hello, connection) -> {
                    connection.send(ControlFrame.WELCOME, ControlPeers.hello("listener").encode());
                    connection.start(handler);
                });
    }

    private static ControlConnection connect(ControlListener listener, ControlOptions options)
            throws IOException {
        ControlConnection connection =
                ControlConnection.connect(ControlPeers.loopback(listener.port()), options);
        connection.send(ControlFrame.HELLO, ControlPeers.hello("client").encode());
        return connection;
    }
}
