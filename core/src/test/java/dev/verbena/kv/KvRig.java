package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.memory.Pool;
import dev.verbena.transfer.Peer;
import dev.verbena.transfer.TwoNodes;
import dev.verbena.transfer.TwoNodes.Transport;
import dev.verbena.verbs.Access;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/** A prefill node and a decode node with a cache each, connected. */
final class KvRig implements AutoCloseable {
    static final KvLayout HEADS = new KvLayout.Heads(3, 2, 16, 2, 4);
    static final KvLayout LATENT = new KvLayout.Latent(4, 72, 2, 8);
    static final int PAGES = 64;

    final TwoNodes nodes;
    final Pool prefillPool;
    final Pool decodePool;
    final KvPools prefillPools;
    final KvPools decodePools;
    final KvSender sender;
    final KvReceiver receiver;
    Peer toDecode;
    Peer toPrefill;

    KvRig(Transport transport, KvLayout layout) throws IOException {
        this(transport, layout, PAGES);
    }

    KvRig(Transport transport, KvLayout layout, int pages) throws IOException {
        nodes = new TwoNodes(transport, options -> options);
        long bytes = layout.bytes(pages);
        prefillPool = nodes.near().registry().allocate("kv", bytes, Access.LOCAL_WRITE);
        decodePool = nodes.far().registry().allocate("kv", bytes, Access.REMOTE_WRITE);
        prefillPools = layout.pools(prefillPool.address(), pages);
        decodePools = layout.pools(decodePool.address(), pages);
        Random random = new Random(bytes);
        MemorySegment memory = prefillPool.segment();
        for (long i = 0; i + 8 <= bytes; i += 8) {
            memory.set(ValueLayout.JAVA_LONG, i, random.nextLong());
        }
        sender = KvSender.on(nodes.near(), KvCache.of(layout, prefillPools));
        receiver = KvReceiver.on(nodes.far(), KvCache.of(layout, decodePools));
        toDecode = nodes.connect();
        toPrefill = nodes.accepted();
    }

    void connectAgain() throws IOException {
        toDecode = nodes.connect();
        toPrefill = nodes.accepted();
    }

    /** Whether a page of decode holds what a page of prefill does, in all pools. */
    boolean filled(int prefillPage, int decodePage) {
        for (int pool = 0; pool < prefillPools.size(); pool++) {
            long bytes = prefillPools.itemBytes(pool);
            long from = prefillPools.base(pool) + prefillPage * bytes - prefillPool.address();
            long to = decodePools.base(pool) + decodePage * bytes - decodePool.address();
            if (MemorySegment.mismatch(
                            prefillPool.segment(),
                            from,
                            from + bytes,
                            decodePool.segment(),
                            to,
                            to + bytes)
                    >= 0) {
                return false;
            }
        }
        return true;
    }

    /** Whether no byte of a page of decode was written. */
    boolean untouched(int decodePage) {
        for (int pool = 0; pool < decodePools.size(); pool++) {
            long bytes = decodePools.itemBytes(pool);
            long at = decodePools.base(pool) + decodePage * bytes - decodePool.address();
            for (byte b : decodePool.segment().asSlice(at, bytes).toArray(ValueLayout.JAVA_BYTE)) {
                if (b != 0) {
                    return false;
                }
            }
        }
        return true;
    }

    @Override
    public void close() {
        nodes.close();
    }

    /** Whoever waits for an end may be woken before a stage that hangs on it has run. */
    static void assertEndedOnce(AtomicInteger ends) {
        while (ends.get() == 0) {
            LockSupport.parkNanos(1_000_000);
        }
        assertThat(ends).hasValue(1);
    }
}
