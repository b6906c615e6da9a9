package dev.verbena.bench;

import dev.verbena.transfer.Node;
import dev.verbena.transfer.Peer;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** The other process of {@link LatencyBench}. */
public final class LatencyPong {
    private LatencyPong() {}

    /**
     * Answers each ping of a round that its input announces, a line "BYTES ITERATIONS".
     *
     * @param arguments none
     * @throws IOException if the node cannot be opened
     * @throws InterruptedException if this thread is interrupted
     */
    public static void main(String[] arguments) throws IOException, InterruptedException {
        BlockingQueue<Peer> peers = new LinkedBlockingQueue<>();
        try (Node node =
                Node.open(LatencyBench.Side.options(RdmaDevice.first()).name("pong").listen(0))) {
            LatencyBench.Side.allocate(node);
            node.onPeer(peers::add);
            System.out.println(node.listenPort());
            LatencyBench.Side side = LatencyBench.Side.of(node, peers.take());
            System.out.println("ready");
            BufferedReader requests =
                    new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            String line;
            while ((line = requests.readLine()) != null) {
                String[] words = line.split(" ", -1);
                int size = Integer.parseInt(words[0]);
                int iterations = Integer.parseInt(words[1]);
                for (int i = 0; i < iterations; i++) {
                    side.awaitByte(size, i);
                    side.send(size, i);
                }
                System.out.println("done");
            }
        }
    }
}
