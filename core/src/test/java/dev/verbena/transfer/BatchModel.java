package dev.verbena.transfer;

import dev.verbena.memory.AddressMap;
import dev.verbena.memory.Pool;
import dev.verbena.memory.RemotePool;
import java.util.ArrayList;
import java.util.List;

/**
 * What a batch should become, found the slow way: byte by byte, each byte joining the work request
 * and the piece before it wherever that is allowed.
 */
final class BatchModel {
    /** A piece of local memory. */
    record Piece(long address, long lengthBytes, int key) {}

    /** A work request, and where in the batch it begins. */
    record Request(
            long remoteAddress, int remoteKey, List<Piece> pieces, int firstBlock, long offset) {
        long lengthBytes() {
            return pieces.stream().mapToLong(Piece::lengthBytes).sum();
        }
    }

    private final AddressMap<Pool> localMap;
    private final AddressMap<RemotePool> remoteMap;
    private final int maxSge;
    private final long maxMessageBytes;
    private final List<Request> requests = new ArrayList<>();

    // The request under way.
    private List<Piece> pieces = new ArrayList<>();
    private long lengthBytes;
    private int remoteRegion = -1;
    private int localRegion = -1;
    private long nextLocal;
    private long nextRemote;

    private BatchModel(
            AddressMap<Pool> localMap,
            AddressMap<RemotePool> remoteMap,
            int maxSge,
            long maxMessageBytes) {
        this.localMap = localMap;
        this.remoteMap = remoteMap;
        this.maxSge = maxSge;
        this.maxMessageBytes = maxMessageBytes;
    }

    static List<Request> requests(
            TransferBatch batch,
            AddressMap<Pool> localMap,
            AddressMap<RemotePool> remoteMap,
            int maxSge,
            long maxMessageBytes) {
        BatchModel model = new BatchModel(localMap, remoteMap, maxSge, maxMessageBytes);
        for (int block = 0; block < batch.size(); block++) {
            for (long offset = 0; offset < batch.length(block); offset++) {
                model.take(
                        batch.localAddress(block) + offset,
                        batch.remoteAddress(block) + offset,
                        block,
                        offset);
            }
        }
        return model.requests;
    }

    /** What a cursor finds, in the same terms. */
    static List<Request> requests(WorkRequestCursor cursor) {
        List<Request> found = new ArrayList<>();
        while (cursor.next()) {
            List<Piece> pieces = new ArrayList<>();
            for (int i = 0; i < cursor.pieces(); i++) {
                pieces.add(
                        new Piece(
                                cursor.pieceAddress(i), cursor.pieceLength(i), cursor.pieceKey(i)));
            }
            Request request =
                    new Request(
                            cursor.remoteAddress(),
                            cursor.remoteKey(),
                            List.copyOf(pieces),
                            cursor.firstBlock(),
                            cursor.firstOffset());
            if (request.lengthBytes() != cursor.bytes()) {
                throw new AssertionError(request + " is said to have " + cursor.bytes());
            }
            found.add(request);
        }
        return found;
    }

    private void take(long local, long remote, int block, long offset) {
        int localNow = localMap.find(local);
        int remoteNow = remoteMap.find(remote);
        boolean joinsPiece = local == nextLocal && localNow == localRegion;
        boolean joinsRequest =
                !pieces.isEmpty()
                        && remote == nextRemote
                        && remoteNow == remoteRegion
                        && lengthBytes < maxMessageBytes
                        && (joinsPiece || pieces.size() < maxSge);
        if (!joinsRequest) {
            pieces = new ArrayList<>();
            lengthBytes = 0;
            requests.add(new Request(remote, remoteMap.key(remoteNow), pieces, block, offset));
        }
        if (joinsRequest && joinsPiece) {
            Piece last = pieces.removeLast();
            pieces.add(new Piece(last.address, last.lengthBytes + 1, last.key));
        } else {
            pieces.add(new Piece(local, 1, localMap.key(localNow)));
        }
        lengthBytes++;
        localRegion = localNow;
        remoteRegion = remoteNow;
        nextLocal = local + 1;
        nextRemote = remote + 1;
    }
}
