package dev.verbena.transfer;

import dev.verbena.memory.PoolDescriptor;
import dev.verbena.tcp.LaneToken;
import dev.verbena.verbs.Gid;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * What one node tells another when they meet: who it is, how its end of the link is reached, and
 * its pools. Payload of a HELLO frame from the side that connects, and of a WELCOME frame from the
 * side that listens.
 *
 * <p>Serialised form, big-endian:
 *
 * <pre>
 *   u16 length of name | name in UTF-8
 *   u64 incarnation | u8 transport: 1 for RDMA, 2 for TCP
 *     RDMA: u8 ethernet, 0 or 1 | 16 bytes GID | u16 LID | u16 MTU in bytes | u8 reads as responder
 *           u16 count of queue pairs | per queue pair: u32 number, u32 PSN
 *     TCP:  u16 port of the data connections | u16 count of lanes | per lane: 16 bytes token
 *   u32 count of pools | per pool: a {@link PoolDescriptor}
 * </pre>
 *
 * <p>Immutable and safe for any thread. Decoding trusts nothing: whatever the bytes, it gives a
 * hello that makes sense or throws {@link IllegalArgumentException}, and memory grows only with the
 * bytes there are.
 *
 * @param nodeName the node's name, 1 to 255 bytes of UTF-8 without control characters
 * @param incarnation random, another one at each start of the node
 * @param address how its end of the link is reached
 * @param pools the pools it offers
 */
record Hello(String nodeName, long incarnation, Address address, List<PoolDescriptor> pools) {

    /** Longest name of a node, in bytes of UTF-8. */
    static final int MAX_NAME_BYTES = 255;

    /** Most queue pairs between two nodes. */
    static final int MAX_QUEUE_PAIRS = 256;

    private static final int MAX_16_BITS = (1 << 16) - 1;
    private static final int MAX_24_BITS = (1 << 24) - 1;
    private static final int MAX_READS = 255;
    private static final int MIN_MTU_BYTES = 256;
    private static final int MAX_MTU_BYTES = 4096;
    private static final int ENDPOINT_BYTES = 2 * Integer.BYTES;
    private static final int RDMA = 1;
    private static final int TCP = 2;

    /** How one end of a link is reached. */
    sealed interface Address {
        /** Names the transport. */
        String transport();
    }

    /**
     * Queue pairs of a device's port.
     *
     * @param ethernet true for RoCE, false for InfiniBand
     * @param gid the GID that its queue pairs send from
     * @param lid the port's local identifier, 0 on Ethernet
     * @param mtuBytes the port's active MTU: 256, 512, 1024, 2048 or 4096
     * @param readsAsResponder RDMA reads that a queue pair answers at a time
     * @param queuePairs its queue pairs, which the other side pairs with its own in this order
     */
    record Rdma(
            boolean ethernet,
            Gid.Address gid,
            int lid,
            int mtuBytes,
            int readsAsResponder,
            List<Endpoint> queuePairs)
            implements Address {
        static final String TRANSPORT = "verbs";

        /** Everything but the queue pairs. */
        private static final int FIXED_BYTES = 1 + Gid.Address.LENGTH + 2 + 2 + 1 + 2;

        Rdma {
            requireRange("LID", lid, 0, MAX_16_BITS);
            requireRange("MTU", mtuBytes, MIN_MTU_BYTES, MAX_MTU_BYTES);
            if (Integer.bitCount(mtuBytes) != 1) {
                throw new IllegalArgumentException("MTU is " + mtuBytes + ", not a power of two");
            }
            requireRange("number of reads as responder", readsAsResponder, 0, MAX_READS);
            requireRange("number of queue pairs", queuePairs.size(), 1, MAX_QUEUE_PAIRS);
            queuePairs = List.copyOf(queuePairs);
        }

        @Override
        public String transport() {
            return TRANSPORT;
        }
    }

    /**
     * Data connections over TCP.
     *
     * @param port where the listening side takes them; 0 from the side that connects
     * @param lanes what each must show; the listening side repeats those that it takes
     */
    record Tcp(int port, List<LaneToken> lanes) implements Address {
        static final String TRANSPORT = "tcp";

        private static final int FIXED_BYTES = 2 + 2;

        Tcp {
            requireRange("port of the data connections", port, 0, MAX_16_BITS);
            requireRange("number of lanes", lanes.size(), 1, MAX_QUEUE_PAIRS);
            lanes = List.copyOf(lanes);
        }

        @Override
        public String transport() {
            return TRANSPORT;
        }
    }

    /**
     * One queue pair.
     *
     * @param number its number, 24 bits
     * @param psn the packet sequence number that it starts from, 24 bits
     */
    record Endpoint(int number, int psn) {
        Endpoint {
            requireRange("number of a queue pair", number, 0, MAX_24_BITS);
            requireRange("packet sequence number", psn, 0, MAX_24_BITS);
        }
    }

    Hello {
        encodeName(nodeName);
        pools = List.copyOf(pools);
    }

    /** The refusal of a node that speaks another transport than this side. */
    IllegalStateException otherTransport(String own) {
        return new IllegalStateException(
                "%s speaks %s and this node %s: open both with NodeOptions of the same transport"
                        .formatted(nodeName, address.transport(), own));
    }

    /** Serialises this hello. */
    byte[] encode() {
        byte[] name = encodeName(nodeName);
        long bytes =
                Short.BYTES + name.length + Long.BYTES + 1 + addressBytes() + poolsBytes(pools);
        byte[] payload = allocate(bytes);
        ByteBuffer out = ByteBuffer.wrap(payload);
        out.putShort((short) name.length).put(name);
        out.putLong(incarnation);
        switch (address) {
            case Rdma rdma -> put(out, rdma);
            case Tcp tcp -> put(out, tcp);
        }
        putPools(out, pools);
        return payload;
    }

    private int addressBytes() {
        return switch (address) {
            case Rdma rdma -> Rdma.FIXED_BYTES + ENDPOINT_BYTES * rdma.queuePairs.size();
            case Tcp tcp -> Tcp.FIXED_BYTES + LaneToken.BYTES * tcp.lanes.size();
        };
    }

    private static void put(ByteBuffer out, Rdma rdma) {
        out.put((byte) RDMA).put((byte) (rdma.ethernet ? 1 : 0)).put(rdma.gid.toArray());
        out.putShort((short) rdma.lid).putShort((short) rdma.mtuBytes);
        out.put((byte) rdma.readsAsResponder);
        out.putShort((short) rdma.queuePairs.size());
        for (Endpoint endpoint : rdma.queuePairs) {
            out.putInt(endpoint.number).putInt(endpoint.psn);
        }
    }

    private static void put(ByteBuffer out, Tcp tcp) {
        out.put((byte) TCP).putShort((short) tcp.port).putShort((short) tcp.lanes.size());
        tcp.lanes.forEach(token -> token.put(out));
    }

    /**
     * Reads a hello, which may come from anybody.
     *
     * @throws IllegalArgumentException if it is cut short, too long, or makes no sense
     */
    static Hello decode(byte[] payload) {
        ByteBuffer in = ByteBuffer.wrap(payload);
        String name = takeName(in);
        need(in, Long.BYTES + 1);
        long incarnation = in.getLong();
        int transport = in.get();
        Address address =
                switch (transport) {
                    case RDMA -> takeRdma(in);
                    case TCP -> takeTcp(in);
                    default ->
                            throw new IllegalArgumentException(
                                    "transport is " + transport + ", which is unknown");
                };
        return new Hello(name, incarnation, address, takePools(in));
    }

    private static Rdma takeRdma(ByteBuffer in) {
        need(in, Rdma.FIXED_BYTES);
        int ethernet = requireRange("ethernet flag", in.get(), 0, 1);
        byte[] gid = new byte[Gid.Address.LENGTH];
        in.get(gid);
        int lid = Short.toUnsignedInt(in.getShort());
        int mtuBytes = Short.toUnsignedInt(in.getShort());
        int readsAsResponder = Byte.toUnsignedInt(in.get());
        int count = takeCount(in, "number of queue pairs", ENDPOINT_BYTES);
        List<Endpoint> queuePairs = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            queuePairs.add(new Endpoint(in.getInt(), in.getInt()));
        }
        return new Rdma(
                ethernet == 1, new Gid.Address(gid), lid, mtuBytes, readsAsResponder, queuePairs);
    }

    private static Tcp takeTcp(ByteBuffer in) {
        need(in, Tcp.FIXED_BYTES);
        int port = Short.toUnsignedInt(in.getShort());
        int count = takeCount(in, "number of lanes", LaneToken.BYTES);
        List<LaneToken> lanes = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            lanes.add(LaneToken.get(in));
        }
        return new Tcp(port, lanes);
    }

    private static int takeCount(ByteBuffer in, String what, int bytesEach) {
        int count = requireRange(what, Short.toUnsignedInt(in.getShort()), 1, MAX_QUEUE_PAIRS);
        need(in, count * bytesEach);
        return count;
    }

    /** Serialises a list of pools alone: the payload of a POOLS frame. */
    static byte[] encodePools(List<PoolDescriptor> pools) {
        byte[] payload = allocate(poolsBytes(pools));
        putPools(ByteBuffer.wrap(payload), pools);
        return payload;
    }

    /**
     * Reads a list of pools, which may come from anybody.
     *
     * @throws IllegalArgumentException if it is cut short, too long, or makes no sense
     */
    static List<PoolDescriptor> decodePools(byte[] payload) {
        return takePools(ByteBuffer.wrap(payload));
    }

    private static long poolsBytes(List<PoolDescriptor> pools) {
        return Integer.BYTES + pools.stream().mapToLong(PoolDescriptor::encodedBytes).sum();
    }

    private static void putPools(ByteBuffer out, List<PoolDescriptor> pools) {
        out.putInt(pools.size());
        pools.forEach(pool -> pool.encode(out));
    }

    /** Reads the pools, which are the last part: nothing may follow them. */
    private static List<PoolDescriptor> takePools(ByteBuffer in) {
        need(in, Integer.BYTES);
        int count = requireRange("number of pools", in.getInt(), 0, in.remaining());
        List<PoolDescriptor> pools = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            pools.add(PoolDescriptor.decode(in));
        }
        if (in.hasRemaining()) {
            throw new IllegalArgumentException(in.remaining() + " bytes follow the last pool");
        }
        return List.copyOf(pools);
    }

    private static String takeName(ByteBuffer in) {
        need(in, Short.BYTES);
        int length = need(in, Short.toUnsignedInt(in.getShort()));
        ByteBuffer name = in.slice(in.position(), length);
        in.position(in.position() + length);
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(name).toString();
        } catch (CharacterCodingException e) {
            throw new IllegalArgumentException("the node's name is not UTF-8", e);
        }
    }

    /** Checks a name on the way: what cannot be sent cannot be a name. */
    private static byte[] encodeName(String name) {
        if (name.chars().anyMatch(Character::isISOControl)) {
            throw new IllegalArgumentException("the node's name has a control character");
        }
        try {
            ByteBuffer encoded = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(name));
            requireRange(
                    "length of the node's name in bytes", encoded.remaining(), 1, MAX_NAME_BYTES);
            byte[] bytes = new byte[encoded.remaining()];
            encoded.get(bytes);
            return bytes;
        } catch (CharacterCodingException e) {
            throw new IllegalArgumentException("the node's name is not Unicode", e);
        }
    }

    private static byte[] allocate(long bytes) {
        if (bytes > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(bytes + " bytes of pools are more than one frame");
        }
        return new byte[(int) bytes];
    }

    private static int need(ByteBuffer in, int bytes) {
        if (in.remaining() < bytes) {
            throw new IllegalArgumentException(
                    "cut short: %d bytes needed, %d left".formatted(bytes, in.remaining()));
        }
        return bytes;
    }

    private static int requireRange(String what, int value, int min, int max) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(
                    "%s is %d, outside %d..%d".formatted(what, value, min, max));
        }
        return value;
    }
}
