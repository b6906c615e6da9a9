package dev.verbena.tcp;

import java.nio.ByteBuffer;
import java.security.SecureRandom;

/**
 * What a data connection shows to be let in: 128 random bits, drawn by the side that connects and
 * told to the listening side over the control connection, which may be encrypted.
 *
 * @param high the first 64 bits
 * @param low the last 64 bits
 */
public record LaneToken(long high, long low) {
    /** Length in bytes. */
    public static final int BYTES = 16;

    private static final SecureRandom RANDOM = new SecureRandom();

    /**
     * Draws a token.
     *
     * @return one that nobody can guess
     */
    public static LaneToken random() {
        return new LaneToken(RANDOM.nextLong(), RANDOM.nextLong());
    }

    /**
     * Reads a token.
     *
     * @param in at least {@link #BYTES} bytes, big-endian
     * @return the token
     */
    public static LaneToken get(ByteBuffer in) {
        return new LaneToken(in.getLong(), in.getLong());
    }

    /**
     * Writes the token.
     *
     * @param out takes {@link #BYTES} bytes, big-endian
     */
    public void put(ByteBuffer out) {
        out.putLong(high).putLong(low);
    }

    /** Keeps the secret out of messages and logs. */
    @Override
    public String toString() {
        return "LaneToken";
    }
}
