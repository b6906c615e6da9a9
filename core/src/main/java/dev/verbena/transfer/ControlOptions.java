package dev.verbena.transfer;

import java.time.Duration;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/**
 * How control connections behave. Immutable: each {@code with} method gives a changed copy.
 *
 * @param connectDeadline longest time for the TCP connection to come about
 * @param handshakeDeadline longest time from then until both sides are ready, TLS and the bringing
 *     up of queue pairs included
 * @param pingInterval a side that has sent nothing for so long sends a PING
 * @param silenceLimit a peer that nothing comes from for so long is lost; longer than the interval
 * @param maxFrameBytes longest payload that is accepted or sent
 * @param tls the context of TLS connections, or null for plain ones
 * @param clientCertificates whether a listener demands a certificate of those who connect. Without
 *     it TLS hides the traffic, but lets everybody in. Means nothing without a context
 */
record ControlOptions(
        Duration connectDeadline,
        Duration handshakeDeadline,
        Duration pingInterval,
        Duration silenceLimit,
        int maxFrameBytes,
        @Nullable SSLContext tls,
        boolean clientCertificates) {

    private static final Duration SHORTEST = Duration.ofMillis(1);
    private static final Duration LONGEST = Duration.ofDays(1);
    private static final int DEFAULT_MAX_FRAME_BYTES = 16 << 20;

    ControlOptions {
        requireRange("connectDeadline", connectDeadline);
        requireRange("handshakeDeadline", handshakeDeadline);
        requireRange("pingInterval", pingInterval);
        requireRange("silenceLimit", silenceLimit);
        if (silenceLimit.compareTo(pingInterval) <= 0) {
            throw new IllegalArgumentException(
                    "silenceLimit %s must be longer than pingInterval %s"
                            .formatted(silenceLimit, pingInterval));
        }
        if (maxFrameBytes <= 0) {
            throw new IllegalArgumentException(
                    "maxFrameBytes is " + maxFrameBytes + ", must be above 0");
        }
    }

    /** Gives the options that suit most networks: plain, 5 s to connect, 10 s of silence. */
    static ControlOptions defaults() {
        return new ControlOptions(
                Duration.ofSeconds(5),
                Duration.ofSeconds(10),
                Duration.ofSeconds(1),
                Duration.ofSeconds(10),
                DEFAULT_MAX_FRAME_BYTES,
                null,
                true);
    }

    ControlOptions withConnectDeadline(Duration deadline) {
        return new ControlOptions(
                deadline,
                handshakeDeadline,
                pingInterval,
                silenceLimit,
                maxFrameBytes,
                tls,
                clientCertificates);
    }

    ControlOptions withHandshakeDeadline(Duration deadline) {
        return new ControlOptions(
                connectDeadline,
                deadline,
                pingInterval,
                silenceLimit,
                maxFrameBytes,
                tls,
                clientCertificates);
    }

    /** Both at once, as one must be longer than the other. */
    ControlOptions withHeartbeat(Duration pingInterval, Duration silenceLimit) {
        return new ControlOptions(
                connectDeadline,
                handshakeDeadline,
                pingInterval,
                silenceLimit,
                maxFrameBytes,
                tls,
                clientCertificates);
    }

    ControlOptions withMaxFrameBytes(int bytes) {
        return new ControlOptions(
                connectDeadline,
                handshakeDeadline,
                pingInterval,
                silenceLimit,
                bytes,
                tls,
                clientCertificates);
    }

    ControlOptions withTls(@Nullable SSLContext context) {
        return new ControlOptions(
                connectDeadline,
                handshakeDeadline,
                pingInterval,
                silenceLimit,
                maxFrameBytes,
                context,
                clientCertificates);
    }

    ControlOptions withClientCertificates(boolean demanded) {
        return new ControlOptions(
                connectDeadline,
                handshakeDeadline,
                pingInterval,
                silenceLimit,
                maxFrameBytes,
                tls,
                demanded);
    }

    private static void requireRange(String name, Duration value) {
        if (value.compareTo(SHORTEST) < 0 || value.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException(
                    "%s is %s, outside %s..%s".formatted(name, value, SHORTEST, LONGEST));
        }
    }
}
