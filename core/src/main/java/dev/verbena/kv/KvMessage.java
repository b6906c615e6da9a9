package dev.verbena.kv;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * What prefill and decode say to each other about requests, over the control connection.
 *
 * <pre>
 *   decode to prefill                          prefill to decode
 *   POOLS     the decode side's pools          FAILED  room, reason: nothing more will be written
 *   ANNOUNCE  room, token, pages               ENDED   room: an aborted request writes no more
 *   ABORT     room, reason
 * </pre>
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

    /** Most pools of one side. */
    int MAX_POOLS = 1 << 16;

    /** The decode side's pools, once a connection, before the first request. */
    record Pools(KvPools pools) implements KvMessage {}

    /** Slots set aside for a request: page i of the request goes to {@code pages[i]}. */
    record Announce(long room, int token, int[] pages) implements KvMessage {}

    /** The decode side gives the request up, and waits for ENDED before it reuses the pages. */
    record Abort(long room, String reason) implements KvMessage {}

    /** The prefill side gives the request up; nothing of it is in flight any more. */
    record Failed(long room, String reason) implements KvMessage {}

    /** Nothing of an aborted request is in flight any more. */
    record Ended(long room) implements KvMessage {}

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
            case Abort message -> encode(3, message.room, message.reason);
            case Failed message -> encode(4, message.room, message.reason);
            case Ended message -> encode(5, message.room, "");
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
            case 3 -> new Abort(need(in, Long.BYTES).getLong(), text(in));
            case 4 -> new Failed(need(in, Long.BYTES).getLong(), text(in));
            case 5 -> new Ended(need(in, Long.BYTES).getLong());
            default -> throw new IllegalArgumentException("KV message of unknown kind " + kind);
        };
    }

    private static byte[] encode(int kind, long room, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(1 + Long.BYTES + bytes.length)
                .put((byte) kind)
                .putLong(room)
                .put(bytes)
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

    private static String text(ByteBuffer in) {
        return StandardCharsets.UTF_8.decode(in).toString();
    }
}
