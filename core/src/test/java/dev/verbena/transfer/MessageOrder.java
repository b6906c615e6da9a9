package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.memory.Pool;
import dev.verbena.verbs.Access;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/**
 * What a message may be relied on to come behind: the pools that its sender registered before, and
 * the listener that its receiver sets up a moment later. Thirty pools, as the announcement they
 * could overtake is two milliseconds away.
 */
abstract class MessageOrder {
    private static final int TOPIC = 900;
    private static final int POOLS = 30;
    private static final long PATIENCE_SECONDS = 60;

    private final TwoNodes.Transport transport;

    MessageOrder(TwoNodes.Transport transport) {
        this.transport = transport;
    }

    @Test
    void findsThePoolsThatWereRegisteredBeforeAMessage() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(transport, 1)) {
            BlockingQueue<Boolean> known = new LinkedBlockingQueue<>();
            nodes.near()
                    .onMessage(
                            TOPIC,
                            (peer, message) -> {
                                String name = "pool-" + message.getInt();
                                known.add(
                                        peer.pools().stream()
                                                .anyMatch(pool -> pool.name().equals(name)));
                            });
            nodes.connect();
            Peer near = nodes.accepted();
            List<Pool> pools = new ArrayList<>();

            for (int i = 0; i < POOLS; i++) {
                pools.add(nodes.far().registry().allocate("pool-" + i, 4096, Access.REMOTE_WRITE));
                near.send(TOPIC, new byte[] {0, 0, 0, (byte) i});
            }

            for (int i = 0; i < POOLS; i++) {
                assertThat(known.poll(PATIENCE_SECONDS, TimeUnit.SECONDS)).isTrue();
            }
            pools.forEach(Pool::close);
        }
    }

    @Test
    void keepsAMessageForAListenerThatComesAMomentLater() throws Exception {
        try (TwoNodes nodes = TwoNodes.of(transport, 1)) {
            BlockingQueue<Byte> heard = new LinkedBlockingQueue<>();
            Peer far = nodes.connect();

            far.send(TOPIC, new byte[] {1});
            far.send(TOPIC, new byte[] {2});
            nodes.far().onMessage(TOPIC, (peer, message) -> heard.add(message.get()));

            assertThat(heard.poll(PATIENCE_SECONDS, TimeUnit.SECONDS)).isEqualTo((byte) 1);
            assertThat(heard.poll(PATIENCE_SECONDS, TimeUnit.SECONDS)).isEqualTo((byte) 2);
        }
    }
}
