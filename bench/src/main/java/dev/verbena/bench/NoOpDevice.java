package dev.verbena.bench;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.verbena.bindings.ibverbs.ibv_context;
import dev.verbena.bindings.ibverbs.ibv_cq;
import dev.verbena.bindings.ibverbs.ibv_qp;
import dev.verbena.verbs.CompletionQueue;
import dev.verbena.verbs.QueuePair;
import dev.verbena.verbs.QueuePairOptions;
import dev.verbena.verbs.WrappedQueues;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * The no-op driver of {@code noop.c}, and the C programs that post to it.
 *
 * <p>Life: open, use from one thread, close.
 */
final class NoOpDevice implements AutoCloseable {
    private static final MemoryLayout LAYOUT =
            MemoryLayout.structLayout(
                    ibv_context.layout().withName("context"),
                    ibv_qp.layout().withName("qp"),
                    ibv_cq.layout().withName("cq"),
                    JAVA_LONG.withName("checksum"),
                    JAVA_LONG.withName("requests"),
                    JAVA_LONG.withName("doorbells"),
                    JAVA_LONG.withName("endless"));

    private static final long QP = offset("qp");
    private static final long CQ = offset("cq");
    private static final long CHECKSUM = offset("checksum");
    private static final long REQUESTS = offset("requests");
    private static final long ENDLESS = offset("endless");

    private final Arena arena = Arena.ofShared();
    private final MemorySegment device;
    private final MethodHandle close;
    private final MethodHandle peerPost;
    private final MethodHandle peerPostListed;
    private final MethodHandle peerPoll;
    private final MethodHandle peerCall;
    private final MethodHandle peerAdd;
    private final MethodHandle peerFill;

    /**
     * Opens a device.
     *
     * @param programs folder with the compiled library
     */
    NoOpDevice(Path programs) {
        SymbolLookup library = SymbolLookup.libraryLookup(programs.resolve("libpeers.so"), arena);
        MethodHandle open = handle(library, "noop_open", FunctionDescriptor.of(ADDRESS));
        close = handle(library, "noop_close", FunctionDescriptor.ofVoid(ADDRESS));
        peerPost =
                handle(
                        library,
                        "peer_post",
                        FunctionDescriptor.of(
                                JAVA_LONG, ADDRESS, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_INT,
                                JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_INT));
        peerPostListed =
                handle(
                        library,
                        "peer_post_listed",
                        FunctionDescriptor.of(
                                JAVA_LONG, ADDRESS, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT,
                                ADDRESS, JAVA_INT, ADDRESS));
        peerPoll =
                handle(
                        library,
                        "peer_poll",
                        FunctionDescriptor.of(JAVA_LONG, ADDRESS, JAVA_INT, JAVA_INT));
        peerCall = handle(library, "peer_call", FunctionDescriptor.ofVoid(ADDRESS, JAVA_INT));
        peerAdd = handle(library, "peer_add", FunctionDescriptor.of(JAVA_LONG, JAVA_INT));
        peerFill =
                handle(
                        library,
                        "peer_fill",
                        FunctionDescriptor.of(
                                JAVA_LONG, JAVA_INT, JAVA_INT, ADDRESS, ADDRESS, ADDRESS, JAVA_INT,
                                JAVA_INT));
        try {
            device = ((MemorySegment) open.invokeExact()).reinterpret(LAYOUT.byteSize());
        } catch (Throwable thrown) {
            throw new LinkageError("the no-op driver cannot be opened", thrown);
        }
    }

    QueuePair queuePair(QueuePairOptions options) {
        return WrappedQueues.queuePair(device.asSlice(QP, ibv_qp.layout()), options);
    }

    CompletionQueue completionQueue(int entries) {
        return WrappedQueues.completionQueue(device.asSlice(CQ, ibv_cq.layout()), entries);
    }

    /** Where the completion queue is, for calls that want nothing else of it. */
    long completionQueueAddress() {
        return device.address() + CQ;
    }

    /** Sum over all that was posted since the last reset: addresses, keys and lengths. */
    long checksum() {
        return device.get(JAVA_LONG, CHECKSUM);
    }

    /** Requests posted since the last reset. */
    long requests() {
        return device.get(JAVA_LONG, REQUESTS);
    }

    /** Begins to sum and to count anew. */
    void reset() {
        device.set(JAVA_LONG, CHECKSUM, 0);
        device.set(JAVA_LONG, REQUESTS, 0);
    }

    /** From now on every poll is filled, with identities that count up from 1; or no longer. */
    void endless(boolean on) {
        device.set(JAVA_LONG, ENDLESS, on ? 1 : 0);
    }

    /** The C program that posts batches; gives the completions it polled. */
    long peerPost(Pages pages, int size, int batches) {
        try {
            return (long)
                    peerPost.invokeExact(
                            device,
                            size,
                            batches,
                            pages.local(),
                            pages.localKey(),
                            pages.remote(),
                            pages.remoteKey(),
                            (long) pages.count(),
                            pages.bytes());
        } catch (Throwable thrown) {
            throw new AssertionError(thrown);
        }
    }

    /** The C program that posts batches of listed blocks; gives the completions it polled. */
    long peerPost(Blocks blocks, int size, int batches) {
        try {
            return (long)
                    peerPostListed.invokeExact(
                            device,
                            size,
                            batches,
                            blocks.batches(size),
                            blocks.localsInC,
                            blocks.pages.localKey(),
                            blocks.remotesInC,
                            blocks.pages.remoteKey(),
                            blocks.lengthsInC);
        } catch (Throwable thrown) {
            throw new AssertionError(thrown);
        }
    }

    /** The C program that polls; gives the sum of the identities. */
    long peerPoll(int entries, int polls) {
        try {
            return (long) peerPoll.invokeExact(device, entries, polls);
        } catch (Throwable thrown) {
            throw new AssertionError(thrown);
        }
    }

    /** The C program that calls the driver, and nothing else. */
    void peerCall(int calls) {
        try {
            peerCall.invokeExact(device, calls);
        } catch (Throwable thrown) {
            throw new AssertionError(thrown);
        }
    }

    /** The C program that adds, as if other threads did too; gives the number. */
    long peerAdd(int additions) {
        try {
            return (long) peerAdd.invokeExact(additions);
        } catch (Throwable thrown) {
            throw new AssertionError(thrown);
        }
    }

    /** The C program that fills work requests; gives the identity of the last one. */
    long peerFill(Blocks blocks, int size, int times) {
        try {
            return (long)
                    peerFill.invokeExact(
                            size,
                            times,
                            blocks.localsInC,
                            blocks.remotesInC,
                            blocks.lengthsInC,
                            blocks.pages.localKey(),
                            blocks.pages.remoteKey());
        } catch (Throwable thrown) {
            throw new AssertionError(thrown);
        }
    }

    @Override
    public void close() {
        try {
            close.invokeExact(device);
        } catch (Throwable thrown) {
            throw new AssertionError(thrown);
        }
        arena.close();
    }

    /**
     * Pages of both sides, from which batches with fresh addresses are made.
     *
     * @param local address of the first page here
     * @param localKey its lkey
     * @param remote address of the first page at the peer
     * @param remoteKey its rkey
     * @param count pages of each side, a power of two
     * @param bytes of a page
     */
    record Pages(long local, int localKey, long remote, int remoteKey, int count, int bytes) {
        /** Where block k of batch b is here; no two blocks of a batch are adjacent. */
        long localOf(int k, int b) {
            return local + ((k * 5L + b * 3L) & (count - 1)) * bytes;
        }

        /** Where block k of batch b goes at the peer. */
        long remoteOf(int k, int b) {
            return remote + ((k * 11L + b * 7L) & (count - 1)) * bytes;
        }
    }

    /**
     * Blocks listed in arrays, as page tables list them, and once more in memory that C can read.
     */
    static final class Blocks {
        final Pages pages;
        final long[] locals;
        final long[] remotes;
        final long[] lengths;
        private final MemorySegment localsInC;
        private final MemorySegment remotesInC;
        private final MemorySegment lengthsInC;

        /** Lists so many pages, no two of which are adjacent to each other. */
        Blocks(Pages pages, int count) {
            this.pages = pages;
            locals = new long[count];
            remotes = new long[count];
            lengths = new long[count];
            Arrays.setAll(locals, k -> pages.localOf(k, 0));
            Arrays.setAll(remotes, k -> pages.remoteOf(k, 0));
            Arrays.fill(lengths, pages.bytes());
            localsInC = Arena.ofAuto().allocateFrom(JAVA_LONG, locals);
            remotesInC = Arena.ofAuto().allocateFrom(JAVA_LONG, remotes);
            lengthsInC = Arena.ofAuto().allocateFrom(JAVA_LONG, lengths);
        }

        /** Batches of a size that have no block in common. */
        int batches(int size) {
            return locals.length / size;
        }
    }

    private static MethodHandle handle(
            SymbolLookup library, String name, FunctionDescriptor descriptor) {
        return Linker.nativeLinker().downcallHandle(library.findOrThrow(name), descriptor);
    }

    private static long offset(String field) {
        return LAYOUT.byteOffset(MemoryLayout.PathElement.groupElement(field));
    }
}
