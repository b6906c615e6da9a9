package dev.verbena.transfer;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * One frame of the control connection: a kind and a payload.
 *
 * <p>On the wire, big-endian, so that the first four bytes tell a stranger at once:
 *
 * <pre>
 *    0        4         5      6              8        12
 *   +--------+---------+------+--------------+--------+----------
 *   | "VRBN" | version | kind | reserved = 0 | length | payload
 *   +--------+---------+------+--------------+--------+----------
 *    u32      u8 = 1    u8     u16            u32      length bytes
 * </pre>
 *
 * <p>A value: whoever makes a frame hands the payload over and leaves it unchanged. Safe for any
 * thread on these terms.
 *
 * @param kind one of the constants below
 * @param payload its content, whose form depends on the kind
 */
// The payload is not copied: frames may be long, and have one owner at a time.
@SuppressWarnings("ArrayRecordComponent")
record ControlFrame(byte kind, byte[] payload) {
    /** The first frame, from the side that connects: a {@link Hello}. */
    static final byte HELLO = 1;

    /** The answer of the side that listens: a {@link Hello}. */
    static final byte WELCOME = 2;

    /** The sender's queue pairs can receive. */
    static final byte READY = 3;

    /** The sender does not want the connection; the payload is the reason in UTF-8. */
    static final byte REFUSED = 4;

    /** The sender's pools have changed: the list of {@link Hello#encodePools}. */
    static final byte POOLS = 5;

    /** Something of the layers above; this one does not look inside. */
    static final byte MESSAGE = 6;

    /** A sign of life, without an answer. */
    static final byte PING = 7;

    /** The last frame of a sender that leaves; the payload is the reason in UTF-8. */
    static final byte GOODBYE = 8;

    /** The first four bytes of every frame: "VRBN". */
    static final int MAGIC = 0x5652424e;

    /** The version of the protocol that this side speaks. */
    static final byte VERSION = 1;

    /** Bytes before the payload. */
    static final int HEADER_BYTES = 12;

    private static final int MAX_WORDS = 500;
    private static final byte TLS_ALERT = 0x15;
    private static final byte TLS_HANDSHAKE = 0x16;

    ControlFrame {
        if (kind < HELLO || kind > GOODBYE) {
            throw new IllegalArgumentException("there is no frame of kind " + kind);
        }
    }

    /** Makes a frame whose payload is text, cut where it is very long. */
    static ControlFrame ofWords(byte kind, String words) {
        String cut = words.length() <= MAX_WORDS ? words : words.substring(0, MAX_WORDS) + "...";
        return new ControlFrame(kind, cut.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * Gives the payload as text that is fit for a message: a peer's words must neither break the
     * lines of a log nor fill it.
     */
    String words() {
        String text = new String(payload, StandardCharsets.UTF_8);
        StringBuilder clean = new StringBuilder();
        text.codePoints()
                .limit(MAX_WORDS + 3)
                .map(c -> Character.isISOControl(c) ? '?' : c)
                .forEach(clean::appendCodePoint);
        return clean.isEmpty() ? "(no reason given)" : clean.toString();
    }

    void write(OutputStream out) throws IOException {
        ByteBuffer header = ByteBuffer.allocate(HEADER_BYTES);
        header.putInt(MAGIC).put(VERSION).put(kind).putShort((short) 0).putInt(payload.length);
        out.write(header.array());
        out.write(payload);
    }

    /**
     * Reads one frame. Memory grows with the bytes that arrive, not with the length they announce.
     *
     * @throws ControlProtocolException if the bytes are not a frame, or one that is too long
     * @throws EOFException if the stream ends, in the frame or before it
     */
    static ControlFrame read(InputStream in, int maxPayloadBytes) throws IOException {
        byte[] magic = in.readNBytes(Integer.BYTES);
        if (magic.length == 0) {
            throw new EOFException("the other side closed the connection");
        }
        // A stranger may send less than a header and wait: so its first bytes are judged alone.
        requireWhole("the first bytes", magic, Integer.BYTES);
        if (ByteBuffer.wrap(magic).getInt() != MAGIC) {
            throw new ControlProtocolException("not a Verbena node: " + describeStranger(magic));
        }
        int restBytes = HEADER_BYTES - Integer.BYTES;
        ByteBuffer rest =
                ByteBuffer.wrap(requireWhole("a header", in.readNBytes(restBytes), restBytes));
        byte version = rest.get();
        if (version != VERSION) {
            throw new ControlProtocolException(
                    "another version of Verbena: it speaks protocol %d, this side %d"
                            .formatted(Byte.toUnsignedInt(version), VERSION));
        }
        byte kind = rest.get();
        if (kind < HELLO || kind > GOODBYE || rest.getShort() != 0) {
            throw new ControlProtocolException(
                    "garbage: a frame of kind %d that no version %d has"
                            .formatted(Byte.toUnsignedInt(kind), VERSION));
        }
        long length = Integer.toUnsignedLong(rest.getInt());
        if (length > maxPayloadBytes) {
            throw new ControlProtocolException(
                    "a %s frame of %d bytes, where the limit is %d"
                            .formatted(kindName(kind), length, maxPayloadBytes));
        }
        byte[] payload = in.readNBytes((int) length);
        return new ControlFrame(kind, requireWhole(kindName(kind), payload, (int) length));
    }

    private static byte[] requireWhole(String what, byte[] bytes, int dueBytes)
            throws EOFException {
        if (bytes.length < dueBytes) {
            throw new EOFException(
                    "the connection ended in mid-frame: %s cut short, %d of %d bytes"
                            .formatted(what, bytes.length, dueBytes));
        }
        return bytes;
    }

    /** Says what four bytes, which are not ours, look like. */
    private static String describeStranger(byte[] first) {
        String text = new String(first, StandardCharsets.ISO_8859_1);
        return switch (text) {
            case "GET ", "HEAD", "POST", "PUT ", "DELE", "CONN", "OPTI", "TRAC", "PATC", "PRI " ->
                    "it sent an HTTP request";
            case "HTTP" -> "it sent an HTTP response";
            case "SSH-" -> "it speaks SSH";
            default -> {
                boolean tls = first[0] == TLS_HANDSHAKE || first[0] == TLS_ALERT;
                yield tls && first[1] == 3
                        ? "it speaks TLS, and this side was not given an SSLContext"
                        : "it sent garbage that begins with 0x" + HexFormat.of().formatHex(first);
            }
        };
    }

    static String kindName(byte kind) {
        return switch (kind) {
            case HELLO -> "HELLO";
            case WELCOME -> "WELCOME";
            case READY -> "READY";
            case REFUSED -> "REFUSED";
            case POOLS -> "POOLS";
            case MESSAGE -> "MESSAGE";
            case PING -> "PING";
            case GOODBYE -> "GOODBYE";
            default -> "unknown";
        };
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ControlFrame that
                && kind == that.kind
                && Arrays.equals(payload, that.payload);
    }

    @Override
    public int hashCode() {
        return 31 * kind + Arrays.hashCode(payload);
    }

    @Override
    public String toString() {
        return kindName(kind) + " frame of " + payload.length + " bytes";
    }
}
