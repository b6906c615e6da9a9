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
 *   BEGIN      what will be sent                 CHECKED  so many pools are checked
 *   CHECKSUMS  of one pool, after the transfer   VERDICT  what the check found
 * </pre>
 */
sealed interface DemoMessage {
    /** The topic of all of them; the library's own are small numbers. */
    int TOPIC = 0x7062;

    /** Announces a request; first message of a connection. */
    record Begin(Job job) implements DemoMessage {}

    /** Checksums of one pool: of each page of the request, in the order of its tokens. */
    record Checksums(int pool, List<Integer> pages) implements DemoMessage {
        /** Copies the list. */
        public Checksums {
            pages = List.copyOf(pages);
        }
    }

    /** Progress of the check. */
    record Checked(int pools) implements DemoMessage {}

    /**
     * The end of the check.
     *
     * @param pagesChecked pages of the request, over all pools
     * @param pagesWrong pages that are wrong, those that are not the request's included
     * @param firstWrong the first of them, or null if all is right
     */
    record Verdict(long pagesChecked, long pagesWrong, @Nullable WrongPage firstWrong)
            implements DemoMessage {
        boolean allRight() {
            return pagesWrong == 0;
        }

        /** The verdict in a sentence. */
        String words() {
            return firstWrong == null
                    ? String.format(
                            Locale.ROOT,
                            "%,d pages have the same CRC32C on both sides and the right bytes, and"
                                    + " no other page was touched",
                            pagesChecked)
                    : String.format(
                            Locale.ROOT, "%,d wrong pages, the first %s", pagesWrong, firstWrong);
        }
    }

    /** Serialises a message. */
    default byte[] encode() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            switch (this) {
                case Begin(Job job) -> {
                    out.writeByte(1);
                    out.writeUTF(job.model().title());
                    out.writeInt(job.tokens());
                    out.writeLong(job.seed());
                }
                case Checksums(int pool, List<Integer> pages) -> {
                    out.writeByte(2);
                    out.writeInt(pool);
                    out.writeInt(pages.size());
                    for (int checksum : pages) {
                        out.writeInt(checksum);
                    }
                }
                case Checked(int pools) -> {
                    out.writeByte(3);
                    out.writeInt(pools);
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
                        case 3 -> new Checked(in.readInt());
                        case 4 -> readVerdict(in);
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
        out.writeLong(verdict.pagesChecked);
        out.writeLong(verdict.pagesWrong);
        WrongPage wrong = verdict.firstWrong;
        out.writeBoolean(wrong != null);
        if (wrong != null) {
            out.writeInt(wrong.pool());
            out.writeInt(wrong.requestPage());
            out.writeUTF(wrong.label());
            out.writeUTF(wrong.detail());
        }
    }

    private static Begin readBegin(DataInputStream in) throws IOException {
        return new Begin(new Job(ModelShape.of(in.readUTF()), in.readInt(), in.readLong()));
    }

    private static Checksums readChecksums(DataInputStream in) throws IOException {
        int pool = in.readInt();
        int count = in.readInt();
        if (count < 0 || in.available() != (long) count * Integer.BYTES) {
            throw new IllegalArgumentException(
                    "%d checksums in %d bytes".formatted(count, in.available()));
        }
        List<Integer> pages = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            pages.add(in.readInt());
        }
        return new Checksums(pool, pages);
    }

    private static Verdict readVerdict(DataInputStream in) throws IOException {
        long checked = in.readLong();
        long wrong = in.readLong();
        WrongPage first =
                in.readBoolean()
                        ? new WrongPage(in.readInt(), in.readInt(), in.readUTF(), in.readUTF())
                        : null;
        if (wrong < 0 || (wrong > 0) != (first != null)) {
            throw new IllegalArgumentException("verdict of " + wrong + " wrong pages names none");
        }
        return new Verdict(checked, wrong, first);
    }
}
