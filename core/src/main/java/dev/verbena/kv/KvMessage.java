package dev.verbena.kv;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * What prefill and decode say to each other about requests, over the control connection.
 *
 * <pre>
 *   decode to prefill                          prefill to decode
 *   POOLS     the decode side's pools          FAILED  room, token, reason: no more is written
 *   ANNOUNCE  room, token, pages               ENDED   room, token: aborted, no more is written
 *   ABORT     room, token, reason
 * </pre>
 *
 * <p>The token tells a request from an earlier one of the same room: an answer that comes late must
 * not end, and so free the pages of, its successor.
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

    /** Most pages of one request. */
    int MAX_PAGES = 1 << 20;

    /** Longest text. */
    int MAX_TEXT_BYTES = 4096;

    /** A room and a token, with which most messages begin. */
    int ROOM_BYTES = Long.BYTES + Integer.BYTES;

    /** Most pools of one side. */
    int MAX_POOLS = 1 << 16;

    /** The decode side's pools, once a connection, before the first request. */
    record Pools(KvPools pools) implements KvMessage {}

    /**
     * Slots set aside for a request: page i of the request goes to {@code pages[i]}. Never
     * compared, so that the array's identity does not matter.
     */
    @SuppressWarnings("ArrayRecordComponent")
    record Announce(long room, int token, int[] pages) implements KvMessage {}

    /** The decode side gives the request up, and waits for ENDED before it reuses the pages. */
    record Abort(long room, int token, String reason) implements KvMessage {}

    /** The prefill side gives the request up; nothing of it is in flight any more. */
    record Failed(long room, int token, String reason) implements KvMessage {}

    /** Nothing of an aborted request is in flight any more. */
    record Ended(long room, int token) implements KvMessage {}

    /** Serialises a message. */
    default byte[] encode() {
        return switch (this) {
            case Pools message -> encode(message.pools);
            case Announce message -> {
                ByteBuffer out = ByteBuffer.allocate(17 + Integer.BYTES * message.pages.length);
                out.put((byte) 2).putLong(message.room).putInt(message.token);
                out.putInt(message.pages.length).asIntBuffer().put(message.pages);
                yield out.array();
            }
            case Abort message -> encode(3, message.room, message.token, message.reason);
            case Failed message -> encode(4, message.room, message.token, message.reason);
            case Ended message -> encode(5, message.room, message.token, "");
        };
    }

    /**
     * Reads a message, which may come from anybody.
     *
     * @throws IllegalArgumentException if it is cut short or makes no sense
     */
    static KvMessage decode(ByteBuffer in) {
        byte kind = need(in, 1).get();
        return switch (kind) {
            case 1 -> new Pools(decodePools(in));
            case 2 -> decodeAnnounce(in);
            case 3 -> new Abort(need(in, ROOM_BYTES).getLong(), in.getInt(), text(in));
            case 4 -> new Failed(need(in, ROOM_BYTES).getLong(), in.getInt(), text(in));
            case 5 -> new Ended(need(in, ROOM_BYTES).getLong(), in.getInt());
            default -> throw new IllegalArgumentException("KV message of unknown kind " + kind);
        };
    }

    private static byte[] encode(int kind, long room, int token, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        int length = Math.min(bytes.length, MAX_TEXT_BYTES);
        return ByteBuffer.allocate(1 + ROOM_BYTES + length)
                .put((byte) kind)
                .putLong(room)
                .putInt(token)
                .put(bytes, 0, length)
                .array();
    }

    private static byte[] encode(KvPools pools) {
        ByteBuffer out = ByteBuffer.allocate(6 + 24 * pools.size());
        out.put((byte) 1).put((byte) (pools.hasLayers() ? 1 : 0)).putInt(pools.size());
        for (int pool = 0; pool < pools.size(); pool++) {
            out.putLong(pools.base(pool)).putLong(pools.itemBytes(pool));
            out.putInt(pools.itemCount(pool)).putInt(pools.layer(pool));
        }
        return out.array();
    }

    private static KvPools decodePools(ByteBuffer in) {
        boolean hasLayers = need(in, 1 + Integer.BYTES).get() != 0;
        int size = count(in, MAX_POOLS, 24);
        long[] bases = new long[size];
        long[] itemBytes = new long[size];
        int[] itemCounts = new int[size];
        int[] layers = new int[size];
        for (int pool = 0; pool < size; pool++) {
            bases[pool] = in.getLong();
            itemBytes[pool] = in.getLong();
            itemCounts[pool] = in.getInt();
            layers[pool] = in.getInt();
        }
        KvPools pools = KvPools.of(bases, itemBytes, itemCounts);
        return hasLayers ? pools.withLayers(layers) : pools;
    }

    private static Announce decodeAnnounce(ByteBuffer in) {
        long room = need(in, Long.BYTES + 2 * Integer.BYTES).getLong();
        int token = in.getInt();
        int[] pages = new int[count(in, MAX_PAGES, Integer.BYTES)];
        in.asIntBuffer().get(pages);
        return new Announce(room, token, pages);
    }

    /** Reads a count and checks it against its limit and against the bytes there are. */
    private static int count(ByteBuffer in, int limit, int bytesEach) {
        int count = in.getInt();
        if (count < 0 || count > limit || in.remaining() != (long) count * bytesEach) {
            throw new IllegalArgumentException(
                    "KV message that counts %d entries has %d bytes for them"
                            .formatted(count, in.remaining()));
        }
        return count;
    }

    private static ByteBuffer need(ByteBuffer in, int bytes) {
        if (in.remaining() < bytes) {
            throw new IllegalArgumentException("KV message is cut short");
        }
        return in;
    }

    /** What is longer is cut: a reason is for people. */
    private static String text(ByteBuffer in) {
        in.limit(in.position() + Math.min(in.remaining(), MAX_TEXT_BYTES));
        return StandardCharsets.UTF_8.decode(in).toString();
    }
}
