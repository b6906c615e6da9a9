package dev.verbena.bench;

import dev.verbena.memory.Pool;
import dev.verbena.memory.RemotePool;
import dev.verbena.transfer.Node;
import dev.verbena.transfer.NodeOptions;
import dev.verbena.transfer.Peer;
import dev.verbena.transfer.PosterOptions;
import dev.verbena.verbs.Access;
import java.io.IOException;

/**
 * Two nodes of this process on the RDMA device, with a pool each.
 *
 * @param server takes no part once it is connected
 * @param client posts
 * @param peer the server, as the client sees it
 * @param local pool of the client
 * @param remote pool of the server
 */
record DevicePair(Node server, Node client, Peer peer, Pool local, RemotePool remote)
        implements AutoCloseable {

    static DevicePair open(RdmaDevice device, long poolBytes, int queuePairs, PosterOptions poster)
            throws IOException {
        NodeOptions options = device.options().queuePairs(queuePairs).poster(poster);
        Node server = Node.open(options.name("server").listen(0));
        server.registry().allocate("pages", poolBytes, Access.REMOTE_WRITE, Access.REMOTE_READ);
        Node client = Node.open(options.name("client"));
        Pool local = client.registry().allocate("pages", poolBytes, Access.LOCAL_WRITE);
        Peer peer = client.connect("127.0.0.1:" + server.listenPort());
        return new DevicePair(server, client, peer, local, peer.pool("pages"));
    }

    @Override
    public void close() {
        client.close();
        server.close();
    }
}
