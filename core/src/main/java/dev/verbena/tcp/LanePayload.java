package dev.verbena.tcp;

import java.nio.ByteBuffer;

/**
 * Where the payload of a frame goes: pieces of registered memory, filled from the front. For the
 * lane's thread alone.
 */
final class LanePayload {
    private final TcpRegion[] regions;
    private final long[] addresses;
    private final int[] lengths;
    private int count;
    private int first;
    private long left;

    LanePayload(int maxPieces) {
        regions = new TcpRegion[maxPieces];
        addresses = new long[maxPieces];
        lengths = new int[maxPieces];
    }

    void clear() {
        count = 0;
        first = 0;
        left = 0;
    }

    /** Adds a piece, which the region covers. */
    void add(TcpRegion region, long address, int lengthBytes) {
        if (lengthBytes > 0) {
            regions[count] = region;
            addresses[count] = address;
            lengths[count] = lengthBytes;
            count++;
            left += lengthBytes;
        }
    }

    /** Bytes that have yet to come. */
    long left() {
        return left;
    }

    /** Fills from what has come. */
    void take(ByteBuffer from) {
        while (left > 0 && from.hasRemaining()) {
            int part = Math.min(lengths[first], from.remaining());
            regions[first].put(addresses[first], from, part);
            filled(part);
        }
    }

    /** Views of what has yet to come, and one buffer behind them. */
    ByteBuffer[] views(ByteBuffer behind) {
        ByteBuffer[] views = new ByteBuffer[count - first + 1];
        for (int i = first; i < count; i++) {
            views[i - first] = regions[i].view(addresses[i], lengths[i]);
        }
        views[count - first] = behind;
        return views;
    }

    /** Counts bytes as there, at most those that are left. */
    void filled(long bytes) {
        left -= bytes;
        long more = bytes;
        while (more > 0) {
            int part = (int) Math.min(more, lengths[first]);
            addresses[first] += part;
            lengths[first] -= part;
            more -= part;
            if (lengths[first] == 0) {
                first++;
            }
        }
    }
}
