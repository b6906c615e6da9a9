package dev.verbena.transfer;

import dev.verbena.memory.RegionSource;
import dev.verbena.verbs.AsyncEvent;
import dev.verbena.verbs.CompletionEvents;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** What a node stands on: an RDMA device, or TCP. Makes the links to its peers. */
interface Fabric extends AutoCloseable {
    /** Names the transport, as "verbs" or "tcp". */
    String transport();

    /** Names the device, or the transport if there is none. */
    String deviceName();

    /** Where the node's memory is registered. */
    RegionSource regions();

    /** Where completions of all links are announced. */
    CompletionEvents events();

    /** Has the device's events told from now on, on a thread of its own. */
    void watch(Consumer<AsyncEvent> handler);

    /**
     * Makes this side's end of a link.
     *
     * @param peer what the other side has said, on the side that listens; null on the side that
     *     connects
     * @throws IllegalStateException if it cannot be reached, or is on another transport
     */
    Link link(@Nullable Hello peer);

    /** Closes all of it, even where a part fails. */
    @Override
    void close();
}
