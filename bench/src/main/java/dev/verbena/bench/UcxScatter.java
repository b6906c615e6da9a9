package dev.verbena.bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import org.openucx.jucx.UcxCallback;
import org.openucx.jucx.ucp.UcpContext;
import org.openucx.jucx.ucp.UcpEndpoint;
import org.openucx.jucx.ucp.UcpEndpointParams;
import org.openucx.jucx.ucp.UcpMemMapParams;
import org.openucx.jucx.ucp.UcpMemory;
import org.openucx.jucx.ucp.UcpParams;
import org.openucx.jucx.ucp.UcpRemoteKey;
import org.openucx.jucx.ucp.UcpRequest;
import org.openucx.jucx.ucp.UcpWorker;
import org.openucx.jucx.ucp.UcpWorkerParams;

/**
 * The peer of scattered writes: UCX by its Java binding, in a process of its own with both sides in
 * it, as ours has. Pages are put one after the other, without a request for each, and then flushed.
 *
 * <p>Reads a line "PAGE_BYTES PAGES BATCHES ADJACENT" and answers with nanoseconds. The environment
 * says which transports UCX may use.
 */
public final class UcxScatter {
    private UcxScatter() {}

    /**
     * Answers until its input ends.
     *
     * @param arguments bytes of the memory of each side
     * @throws Exception what UCX throws
     */
    public static void main(String[] arguments) throws Exception {
        long bytes = Long.parseLong(arguments[0]);
        UcpParams params = new UcpParams().requestRmaFeature();
        try (Arena arena = Arena.ofShared();
                UcpContext here = new UcpContext(params);
                UcpContext there = new UcpContext(params);
                UcpWorker worker = here.newWorker(new UcpWorkerParams());
                UcpWorker target = there.newWorker(new UcpWorkerParams());
                UcpMemory local = map(here, arena, bytes);
                UcpMemory remote = map(there, arena, bytes);
                UcpEndpoint endpoint =
                        worker.newEndpoint(
                                new UcpEndpointParams().setUcpAddress(target.getAddress()));
                UcpRemoteKey key = endpoint.unpackRemoteKey(remote.getRemoteKeyBuffer())) {
            Puts puts = new Puts(worker, target, endpoint, key, local, remote);
            puts.batch(4096, 1, 0, false);
            System.out.println("ready");
            answer(puts);
        }
    }

    private static UcpMemory map(UcpContext context, Arena arena, long bytes) {
        MemorySegment memory = arena.allocate(bytes, ScatterBench.ALIGNMENT);
        return context.memoryMap(
                new UcpMemMapParams().setAddress(memory.address()).setLength(bytes));
    }

    private static void answer(Puts puts) throws Exception {
        BufferedReader requests =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = requests.readLine()) != null) {
            String[] words = line.split(" ", -1);
            int pageBytes = Integer.parseInt(words[0]);
            int pages = Integer.parseInt(words[1]);
            int batches = Integer.parseInt(words[2]);
            boolean adjacent = Boolean.parseBoolean(words[3]);
            long start = System.nanoTime();
            for (int batch = 0; batch < batches; batch++) {
                puts.batch(pageBytes, pages, batch, adjacent);
            }
            System.out.println(System.nanoTime() - start);
        }
    }

    private record Puts(
            UcpWorker worker,
            UcpWorker target,
            UcpEndpoint endpoint,
            UcpRemoteKey key,
            UcpMemory local,
            UcpMemory remote) {

        void batch(int pageBytes, int pages, int batch, boolean adjacent) throws Exception {
            long slots = local.getLength() / pageBytes;
            for (int page = 0; page < pages; page++) {
                endpoint.putNonBlockingImplicit(
                        local.getAddress() + ScatterBench.localSlot(page, batch, slots) * pageBytes,
                        pageBytes,
                        remote.getAddress()
                                + ScatterBench.remoteSlot(page, batch, slots, adjacent) * pageBytes,
                        key);
            }
            UcpRequest flushed =
                    endpoint.flushNonBlocking(
                            new UcxCallback() {
                                @Override
                                public void onError(int status, String message) {
                                    throw new IllegalStateException(message);
                                }
                            });
            while (!flushed.isCompleted()) {
                if (worker.progress() == 0) {
                    // The target takes part in setting up the connection, and in nothing else.
                    target.progress();
                }
            }
        }
    }
}
