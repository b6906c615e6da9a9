package dev.verbena.demo;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * What the two sides of the demo say to each other beside the request itself, which is the
 * library's business. Every message is one byte for its kind, then its fields, big-endian.
 *
 * <pre>
 *   prefill to decode                            decode to prefill
 *   BEGIN      what will be sent                 READY    where the ranks listen
 *   CHECKSUMS  of one pool, after the transfer   CHECKED  one more pool is checked
 *                                                VERDICT  what the check found
 *   TRACE      requests of a trace will follow   EXPECTING  how much of the prompt is there
 *   REPLAY     the next of them, or the end
 * </pre>
 */
sealed interface DemoMessage {
    /** The topic of all of them; the library's own are small numbers. */
    int TOPIC = 0x7062;

    /** Announces a request. */
    record Begin(Job job) implements DemoMessage {}

    /** The decode ranks listen, in their order, at these ports. */
    record Ready(List<Integer> ports) implements DemoMessage {
        /** Copies the list. */
        public Ready {
            ports = List.copyOf(ports);
        }
    }

    /** Checksums of one pool of a rank: of each item of the request, in its order. */
    record Checksums(int rank, int pool, List<Integer> items) implements DemoMessage {
        /** Copies the list. */
        public Checksums {
            items = List.copyOf(items);
        }
    }

    /** Progress of the check. */
    record Checked() implements DemoMessage {}

    /** Announces a trace. */
    record Trace(TraceShape shape) implements DemoMessage {}

    /** The next request of a trace, by its number from 1; number 0 ends the trace. */
    record Replay(int number, List<Long> hashes) implements DemoMessage {
        static final Replay END = new Replay(0, List.of());

        /** Copies the list. */
        public Replay {
            hashes = List.copyOf(hashes);
        }

        boolean isEnd() {
            return number == 0;
        }
    }

    /** Slots are set aside; so many of the first pages need not be sent. */
    record Expecting(int cachedPages) implements DemoMessage {}

    /**
     * The end of the check.
     *
     * @param itemsChecked items of the request, over all pools and ranks
     * @param itemsWrong items that are wrong, those that are not the request's included
     * @param firstWrong the first of them, or null if all is right
     */
    record Verdict(long itemsChecked, long itemsWrong, @Nullable WrongItem firstWrong)
            implements DemoMessage {
        boolean allRight() {
            return itemsWrong == 0;
        }

        /** This verdict and that on another rank. */
        Verdict and(Verdict other) {
            return new Verdict(
                    itemsChecked + other.itemsChecked,
                    itemsWrong + other.itemsWrong,
                    firstWrong == null ? other.firstWrong : firstWrong);
        }

        /** The verdict in a sentence. */
        String words() {
            return firstWrong == null
                    ? String.format(
                            Locale.ROOT,
                            "%,d items (pages, state, auxiliary data) have the right bytes, and no"
                                    + " other was touched",
                            itemsChecked)
                    : String.format(
                            Locale.ROOT, "%,d wrong items, the first %s", itemsWrong, firstWrong);
        }
    }

    /** Serialises a message. */
    default byte[] encode() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            switch (this) {
                case Begin(Job job) -> {
                    out.writeByte(1);
                    out.writeUTF(job.scenario().name());
                    out.writeInt(job.scenario().tokens());
                    out.writeLong(job.seed());
                }
                case Checksums(int rank, int pool, List<Integer> items) -> {
                    out.writeByte(2);
                    out.writeInt(rank);
                    out.writeInt(pool);
                    write(out, items);
                }
                case Checked() -> out.writeByte(3);
                case Ready(List<Integer> ports) -> {
                    out.writeByte(5);
                    write(out, ports);
                }
                case Trace(TraceShape shape) -> {
                    out.writeByte(6);
                    out.writeUTF(shape.model().title());
                    out.writeInt(shape.blockPages());
                    out.writeInt(shape.cachePages());
                    out.writeLong(shape.seed());
                }
                case Replay(int number, List<Long> hashes) -> {
                    out.writeByte(7);
                    out.writeInt(number);
                    out.writeInt(hashes.size());
                    for (long hash : hashes) {
                        out.writeLong(hash);
                    }
                }
                case Expecting(int cachedPages) -> {
                    out.writeByte(8);
                    out.writeInt(cachedPages);
                }
                case Verdict verdict -> {
                    out.writeByte(4);
                    write(out, verdict);
                }
            }
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return bytes.toByteArray();
    }

    /**
     * Reads a message, which may come from anybody.
     *
     * @throws IllegalArgumentException if it is cut short, too long, or makes no sense
     */
    static DemoMessage decode(ByteBuffer message) {
        byte[] bytes = new byte[message.remaining()];
        message.get(bytes);
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            int kind = in.readByte();
            DemoMessage decoded =
                    switch (kind) {
                        case 1 -> readBegin(in);
                        case 2 -> readChecksums(in);
                        case 3 -> new Checked();
                        case 4 -> readVerdict(in);
                        case 5 -> new Ready(readInts(in));
                        case 6 -> readTrace(in);
                        case 7 -> readReplay(in);
                        case 8 -> new Expecting(in.readInt());
                        default ->
                                throw new IllegalArgumentException(
                                        "demo message of unknown kind " + kind);
                    };
            if (in.available() > 0) {
                throw new IllegalArgumentException(
                        "demo message of kind " + kind + " has bytes left over");
            }
            return decoded;
        } catch (IOException cutShort) {
            throw new IllegalArgumentException("demo message is cut short", cutShort);
        }
    }

    private static void write(DataOutputStream out, Verdict verdict) throws IOException {
        out.writeLong(verdict.itemsChecked);
        out.writeLong(verdict.itemsWrong);
        WrongItem wrong = verdict.firstWrong;
        out.writeBoolean(wrong != null);
        if (wrong != null) {
            out.writeUTF(wrong.label());
            out.writeUTF(wrong.detail());
        }
    }

    private static void write(DataOutputStream out, List<Integer> numbers) throws IOException {
        out.writeInt(numbers.size());
        for (int number : numbers) {
            out.writeInt(number);
        }
    }

    private static Begin readBegin(DataInputStream in) throws IOException {
        Scenario scenario = Scenario.named(in.readUTF()).withTokens(in.readInt());
        return new Begin(new Job(scenario, in.readLong()));
    }

    private static Trace readTrace(DataInputStream in) throws IOException {
        return new Trace(
                new TraceShape(
                        ModelShape.of(in.readUTF()), in.readInt(), in.readInt(), in.readLong()));
    }

    private static Replay readReplay(DataInputStream in) throws IOException {
        int number = in.readInt();
        int count = in.readInt();
        if (count < 0 || in.available() != (long) count * Long.BYTES) {
            throw new IllegalArgumentException(
                    "%d hashes in %d bytes".formatted(count, in.available()));
        }
        List<Long> hashes = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            hashes.add(in.readLong());
        }
        return new Replay(number, hashes);
    }

    private static Checksums readChecksums(DataInputStream in) throws IOException {
        return new Checksums(in.readInt(), in.readInt(), readInts(in));
    }

    private static List<Integer> readInts(DataInputStream in) throws IOException {
        int count = in.readInt();
        if (count < 0 || in.available() != (long) count * Integer.BYTES) {
            throw new IllegalArgumentException(
                    "%d numbers in %d bytes".formatted(count, in.available()));
        }
        List<Integer> numbers = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            numbers.add(in.readInt());
        }
        return numbers;
    }

    private static Verdict readVerdict(DataInputStream in) throws IOException {
        long checked = in.readLong();
        long wrong = in.readLong();
        WrongItem first = in.readBoolean() ? new WrongItem(in.readUTF(), in.readUTF()) : null;
        if (wrong < 0 || (wrong > 0) != (first != null)) {
            throw new IllegalArgumentException("verdict of " + wrong + " wrong items names none");
        }
        return new Verdict(checked, wrong, first);
    }
}
