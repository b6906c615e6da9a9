package com.example.consumer;

import dev.verbena.memory.Pool;
import dev.verbena.memory.RemotePool;
import dev.verbena.transfer.Node;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.transfer.Peer;
import dev.verbena.transfer.Transfer;
import dev.verbena.transfer.TransferBatch;
import dev.verbena.verbs.Access;
import java.lang.foreign.MemorySegment;
import java.time.Duration;

/** Writes scattered pages from one node into another and compares them. Both are in this process. */
public final class Consumer {
    private static final int PAGES = 64;
    private static final long PAGE_BYTES = 16_384;

    private Consumer() {}

    /**
     * Runs the transfer.
     *
     * @param args none
     * @throws Exception if anything goes wrong
     */
    public static void main(String[] args) throws Exception {
        try (Node decode = Node.open(NodeOptions.onlyDevice().name("decode").listen(0));
                Node prefill = Node.open(NodeOptions.onlyDevice().name("prefill"))) {
            Pool slots = decode.registry().allocate("kv", PAGES * PAGE_BYTES, Access.REMOTE_WRITE);
            Pool pages = prefill.registry().allocate("kv", PAGES * PAGE_BYTES);
            for (int page = 0; page < PAGES; page++) {
                pages.segment().asSlice(page * PAGE_BYTES, PAGE_BYTES).fill((byte) (page + 1));
            }

            try (Peer peer = prefill.connect("127.0.0.1:" + decode.listenPort())) {
                RemotePool remote = peer.pool("kv");
                TransferBatch batch = new TransferBatch(PAGES);
                for (int page = 0; page < PAGES; page++) {
                    int slot = (page * 5) % PAGES;
                    batch.add(
                            pages.address(page * PAGE_BYTES, PAGE_BYTES),
                            remote.address(slot * PAGE_BYTES, PAGE_BYTES),
                            PAGE_BYTES);
                }
                System.out.println(peer.plan(batch));
                Transfer transfer = peer.write(batch);
                transfer.await(Duration.ofSeconds(10));
            }

            for (int page = 0; page < PAGES; page++) {
                long source = page * PAGE_BYTES;
                long target = (page * 5) % PAGES * PAGE_BYTES;
                if (MemorySegment.mismatch(
                                pages.segment(), source, source + PAGE_BYTES,
                                slots.segment(), target, target + PAGE_BYTES)
                        != -1) {
                    throw new AssertionError("page " + page + " has not arrived");
                }
            }
        }
        System.out.println("All " + PAGES + " pages arrived.");
    }
}
