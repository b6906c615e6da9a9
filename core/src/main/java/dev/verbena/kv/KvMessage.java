package dev.verbena.kv;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Optional;

/**
 * What prefill and decode say to each other about requests, over the control connection.
 *
 * <pre>
 *   decode to prefill                                prefill to decode
 *   SIDE      cache, staging ring, how aux comes     SIDE    cache
 *   ANNOUNCE  room, token, needed, slots             FAILED  room, token, reason: no more is written
 *   ABORT     room, token, reason                    ENDED   room, token: aborted, no more is written
 *   ASSIGNED  where a staged chunk goes              STAGE   a chunk wants to go through staging
 *   WATERMARK what of the ring is free               AUX     one item of every auxiliary buffer
 * </pre>
 *
 * <p>The decode side speaks first: SIDE, before the first request of a connection, which the
 * prefill side answers with its own.
 *
 * <p>The token tells a request from an earlier one of the same room: an answer that comes late must
 * not end, and so free the slots of, its successor.
 *
 * <p>That a request is done is not said here but in band: the token comes as an immediate behind
 * the data, on every queue pair. Every message is u8 kind, then its fields, big-endian; a text is
 * what remains.
 */
sealed interface KvMessage {
    /** Topic of what decode says to prefill. */
    int TO_PREFILL = 1;

    /** Topic of what prefill says to decode. */
    int TO_DECODE = 2;

    /** Of these messages. Sides of different versions do not understand each other. */
    int VERSION = 1;

    /** Most slots of one request: pages and items of states together. */
    int MAX_SLOTS = 1 << 20;

    /** Longest text. */
    int MAX_TEXT_BYTES = 4096;

    /** Most bytes of auxiliary data in a message. */
    int MAX_AUX_BYTES = 4 << 20;

    /** A side's cache, and how the decode side wants to be served. */
    record Side(KvCache cache, Optional<StagingArea> ring, boolean auxByMessage)
            implements KvMessage {}

    /**
     * Slots set aside for a request: page i of the request goes to {@code pages[i]}, states in the
     * order of the decode side's cache. A rank that is not needed, a dummy, is given no slots.
     * Never compared, so that the arrays' identity does not matter.
     *
     * @param auxSlot where auxiliary data goes, or -1 if another rank sends it
     */
    @SuppressWarnings("ArrayRecordComponent")
    record Announce(long room, int token, boolean needed, int[] pages, int[][] states, int auxSlot)
            implements KvMessage {
        /** Announces to a rank that has nothing to write. */
        static Announce dummy(long room, int token) {
            return new Announce(room, token, false, new int[0], new int[0][], -1);
        }

        /** Pages and items of states together. */
        int slotCount() {
            return pages.length + Arrays.stream(states).mapToInt(items -> items.length).sum();
        }
    }

    /** The decode side gives the request up, and waits for ENDED before it reuses the slots. */
    record Abort(long room, int token, String reason) implements KvMessage {}

    /**
     * A staged chunk has a region: this many bytes for every prefill rank, from that position of
     * the ring, and the token for the immediates behind its bytes.
     */
    record Assigned(long room, int token, int chunk, long start, long bytesPerRank, int chunkToken)
            implements KvMessage {}

    /**
     * Every position of the staging ring below this one is free again. Several threads tell: one
     * may overtake a higher one, so the highest counts.
     */
    record Watermark(long tail) implements KvMessage {}

    /** The prefill side gives the request up; nothing of it is in flight any more. */
    record Failed(long room, int token, String reason) implements KvMessage {}

    /** Nothing of an aborted request is in flight any more. */
    record Ended(long room, int token) implements KvMessage {}

    /** A chunk of a request is to go through the staging ring. */
    record Stage(long room, int token, int chunk, int firstPage, int pageCount, long bytesPerRank)
            implements KvMessage {}

    /** One item of every auxiliary buffer, back to back. Never compared. */
    @SuppressWarnings("ArrayRecordComponent")
    record Aux(long room, int token, byte[] bytes) implements KvMessage {}

    /** Serialises a message. */
    default byte[] encode() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try {
            encode(new DataOutputStream(bytes));
        } catch (IOException impossible) {
            throw new UncheckedIOException("memory does not fail", impossible);
        }
        return bytes.toByteArray();
    }

    private void encode(DataOutputStream out) throws IOException {
        switch (this) {
            case Side side -> {
                out.writeByte(Kind.SIDE);
                out.writeShort(VERSION);
                KvCacheCodec.encode(side.cache, out);
                out.writeBoolean(side.auxByMessage);
                out.writeBoolean(side.ring.isPresent());
                out.writeLong(side.ring.map(StagingArea::base).orElse(0L));
                out.writeLong(side.ring.map(StagingArea::lengthBytes).orElse(0L));
            }
            case Announce announce -> {
                begin(out, Kind.ANNOUNCE, announce.room, announce.token);
                out.writeBoolean(announce.needed);
                out.writeInt(announce.auxSlot);
                encode(announce.pages, out);
                out.writeByte(announce.states.length);
                for (int[] items : announce.states) {
                    encode(items, out);
                }
            }
            case Abort abort -> {
                begin(out, Kind.ABORT, abort.room, abort.token);
                encode(abort.reason, out);
            }
            case Assigned assigned -> {
                begin(out, Kind.ASSIGNED, assigned.room, assigned.token);
                out.writeInt(assigned.chunk);
                out.writeLong(assigned.start);
                out.writeLong(assigned.bytesPerRank);
                out.writeInt(assigned.chunkToken);
            }
            case Watermark watermark -> {
                out.writeByte(Kind.WATERMARK);
                out.writeLong(watermark.tail);
            }
            case Failed failed -> {
                begin(out, Kind.FAILED, failed.room, failed.token);
                encode(failed.reason, out);
            }
            case Ended ended -> begin(out, Kind.ENDED, ended.room, ended.token);
            case Stage stage -> {
                begin(out, Kind.STAGE, stage.room, stage.token);
                out.writeInt(stage.chunk);
                out.writeInt(stage.firstPage);
                out.writeInt(stage.pageCount);
                out.writeLong(stage.bytesPerRank);
            }
            case Aux aux -> {
                begin(out, Kind.AUX, aux.room, aux.token);
                out.writeInt(aux.bytes.length);
                out.write(aux.bytes);
            }
        }
    }

    /**
     * Reads a message, which may come from anybody.
     *
     * @throws IllegalArgumentException if it is cut short, too long, or makes no sense
     */
    static KvMessage decode(ByteBuffer in) {
        try {
            KvMessage message = decodeBody(in);
            if (in.hasRemaining()) {
                throw new IllegalArgumentException(
                        "KV message has %d bytes too many".formatted(in.remaining()));
            }
            return message;
        } catch (BufferUnderflowException cut) {
            throw new IllegalArgumentException("KV message is cut short", cut);
        }
    }

    private static KvMessage decodeBody(ByteBuffer in) {
        byte kind = in.get();
        return switch (kind) {
            case Kind.SIDE -> decodeSide(in);
            case Kind.ANNOUNCE -> decodeAnnounce(in);
            case Kind.ABORT -> new Abort(in.getLong(), in.getInt(), text(in));
            case Kind.ASSIGNED ->
                    new Assigned(
                            in.getLong(),
                            in.getInt(),
                            in.getInt(),
                            in.getLong(),
                            in.getLong(),
                            in.getInt());
            case Kind.WATERMARK -> new Watermark(in.getLong());
            case Kind.FAILED -> new Failed(in.getLong(), in.getInt(), text(in));
            case Kind.ENDED -> new Ended(in.getLong(), in.getInt());
            case Kind.STAGE ->
                    new Stage(
                            in.getLong(),
                            in.getInt(),
                            in.getInt(),
                            in.getInt(),
                            in.getInt(),
                            in.getLong());
            case Kind.AUX -> decodeAux(in);
            default -> throw new IllegalArgumentException("KV message of unknown kind " + kind);
        };
    }

    private static Side decodeSide(ByteBuffer in) {
        int version = Short.toUnsignedInt(in.getShort());
        if (version != VERSION) {
            throw new IllegalArgumentException(
                    "the other side speaks version %d of KV requests, this side %d"
                            .formatted(version, VERSION));
        }
        KvCache cache = KvCacheCodec.decode(in);
        boolean auxByMessage = in.get() != 0;
        boolean hasRing = in.get() != 0;
        StagingArea ring = new StagingArea(in.getLong(), in.getLong());
        return new Side(cache, hasRing ? Optional.of(ring) : Optional.empty(), auxByMessage);
    }

    private static Announce decodeAnnounce(ByteBuffer in) {
        long room = in.getLong();
        int token = in.getInt();
        boolean needed = in.get() != 0;
        int auxSlot = in.getInt();
        int[] pages = ints(in);
        int[][] states = new int[Byte.toUnsignedInt(in.get())][];
        for (int i = 0; i < states.length; i++) {
            states[i] = ints(in);
        }
        Announce announce = new Announce(room, token, needed, pages, states, auxSlot);
        if (announce.slotCount() > MAX_SLOTS) {
            throw new IllegalArgumentException(
                    "a request of %d slots; at most %d are possible"
                            .formatted(announce.slotCount(), MAX_SLOTS));
        }
        return announce;
    }

    private static Aux decodeAux(ByteBuffer in) {
        long room = in.getLong();
        int token = in.getInt();
        byte[] bytes = new byte[count(in, 1, MAX_AUX_BYTES)];
        in.get(bytes);
        return new Aux(room, token, bytes);
    }

    /** Reads a count, and checks it against its limit and against the bytes there are. */
    static int count(ByteBuffer in, int bytesEach, int limit) {
        int count = in.getInt();
        if (count < 0 || count > limit || in.remaining() < (long) count * bytesEach) {
            throw new IllegalArgumentException(
                    "KV message that counts %d entries, of at most %d, has %d bytes for them"
                            .formatted(count, limit, in.remaining()));
        }
        return count;
    }

    private static int[] ints(ByteBuffer in) {
        int[] ints = new int[count(in, Integer.BYTES, MAX_SLOTS)];
        in.asIntBuffer().get(ints);
        in.position(in.position() + Integer.BYTES * ints.length);
        return ints;
    }

    /** What is longer is cut: a reason is for people. */
    private static String text(ByteBuffer in) {
        byte[] bytes = new byte[in.remaining()];
        in.get(bytes);
        int length = Math.min(bytes.length, MAX_TEXT_BYTES);
        return new String(bytes, 0, length, StandardCharsets.UTF_8);
    }

    private static void begin(DataOutputStream out, int kind, long room, int token)
            throws IOException {
        out.writeByte(kind);
        out.writeLong(room);
        out.writeInt(token);
    }

    private static void encode(String text, DataOutputStream out) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        out.write(bytes, 0, Math.min(bytes.length, MAX_TEXT_BYTES));
    }

    private static void encode(int[] ints, DataOutputStream out) throws IOException {
        out.writeInt(ints.length);
        ByteBuffer bytes = ByteBuffer.allocate(Integer.BYTES * ints.length);
        bytes.asIntBuffer().put(ints);
        out.write(bytes.array());
    }

    /** First byte of a message. */
    final class Kind {
        static final byte SIDE = 1;
        static final byte ANNOUNCE = 2;
        static final byte ABORT = 3;
        static final byte ASSIGNED = 4;
        static final byte WATERMARK = 5;
        static final byte FAILED = 6;
        static final byte ENDED = 7;
        static final byte STAGE = 8;
        static final byte AUX = 9;

        private Kind() {}
    }
}
