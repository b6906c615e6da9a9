package dev.verbena.tcp;

import java.nio.ByteBuffer;

/**
 * The head of what lanes say to each other, 24 bytes, big-endian. Requests are counted from 0 in
 * each direction; the other side carries them out and answers in order.
 *
 * <pre>
 *   u8 kind | 3 bytes 0 | u32 key | u64 position | u32 length | u32 number | payload
 *
 *   kind         key    position            length             number       payload
 *   WRITE        rkey   address             of the payload     0            the bytes
 *   WRITE_IMM    rkey   address             of the payload     immediate    the bytes
 *   READ         rkey   address             bytes to read      0
 *   DONE         0      requests done       0                  0
 *   READ_DATA    0      request answered    of the payload     0            the bytes
 *   REFUSED      0      request refused     0                  status
 * </pre>
 */
final class Frame {
    static final int BYTES = 24;

    static final byte WRITE = 1;
    static final byte WRITE_IMMEDIATE = 2;
    static final byte READ = 3;
    static final byte DONE = 4;
    static final byte READ_DATA = 5;
    static final byte REFUSED = 6;

    private static final int KEY = 4;
    private static final int POSITION = 8;
    private static final int LENGTH = 16;
    private static final int NUMBER = 20;

    private Frame() {}

    /** Writes a head at the buffer's position, and moves that behind it. */
    static void put(ByteBuffer out, byte kind, int key, long position, int length, int number) {
        out.putInt(kind << 24).putInt(key).putLong(position).putInt(length).putInt(number);
    }

    static byte kind(ByteBuffer in, int at) {
        return in.get(at);
    }

    static int key(ByteBuffer in, int at) {
        return in.getInt(at + KEY);
    }

    static long position(ByteBuffer in, int at) {
        return in.getLong(at + POSITION);
    }

    static int length(ByteBuffer in, int at) {
        return in.getInt(at + LENGTH);
    }

    static int number(ByteBuffer in, int at) {
        return in.getInt(at + NUMBER);
    }
}
