package dev.verbena.kv;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The prefill ranks of a request as one decode rank sees them: which of them write to it, and which
 * one sends the auxiliary data. Pure arithmetic.
 *
 * <p>Refuses a group that does not fit the decode rank's cache: ranks or layers that are missing or
 * there twice, TP sizes that do not divide, caches that disagree.
 *
 * <p>Immutable.
 */
final class KvWriters {
    /**
     * One prefill rank.
     *
     * @param name of its peer, for messages
     * @param cache its cache
     * @param staging whether both sides have staging areas
     */
    record Member(String name, KvCache cache, boolean staging) {
        @Override
        public String toString() {
            return "prefill rank %d (%s)".formatted(cache.rank(), name);
        }
    }

    private final KvCache decode;
    private final List<Member> members;
    private final List<KvRoute> routes = new ArrayList<>();

    private KvWriters(KvCache decode, List<Member> members) {
        this.decode = decode;
        this.members = List.copyOf(members);
    }

    /**
     * Takes stock of a group.
     *
     * @param decode cache of the decode rank
     * @param members all prefill ranks, of all pipeline stages, in any order; at least one
     * @throws IllegalArgumentException if they do not fit; it names who or what
     */
    static KvWriters of(KvCache decode, List<Member> members) {
        KvWriters writers = new KvWriters(decode, members);
        writers.checkTpSizes();
        for (Member member : members) {
            writers.routes.add(writers.route(member));
        }
        writers.checkComplete("", KvCache::pools, decode.pools());
        for (KvState state : decode.states()) {
            writers.checkComplete(
                    "state '" + state.name() + "': ",
                    cache -> poolsOf(cache, state.name()),
                    state.pools());
        }
        if (decode.auxBuffers().isPresent()) {
            Member sender = members.get(writers.auxSender());
            if (sender.cache.auxBuffers().isEmpty()) {
                throw new IllegalArgumentException(
                        sender + " should send the auxiliary data, and has no auxiliary buffers");
            }
        }
        return writers;
    }

    /** Whether a member, by its position, writes to the decode rank: the others are dummies. */
    boolean isNeeded(int member) {
        return routes.get(member).takesPart();
    }

    /** Whether a member writes KV through the staging areas. */
    boolean stages(int member) {
        KvRoute route = routes.get(member);
        return route.category() == KvRoute.Category.STAGED && route.writesKv();
    }

    /** Whether a member sends the auxiliary data of a decode rank that has buffers for it. */
    boolean sendsAux(int member) {
        return decode.auxBuffers().isPresent() && member == auxSender();
    }

    /** The lowest rank that takes part, of the last pipeline stage. */
    private int auxSender() {
        int lastLayer = members.stream().mapToInt(KvWriters::lastLayer).max().orElseThrow();
        int sender = -1;
        for (int i = 0; i < members.size(); i++) {
            if (isNeeded(i)
                    && lastLayer(members.get(i)) == lastLayer
                    && (sender < 0 || rank(i) < rank(sender))) {
                sender = i;
            }
        }
        return sender;
    }

    private int rank(int member) {
        return members.get(member).cache.rank();
    }

    /** Highest layer of a rank; the same for all where pools have no layer ids. */
    private static int lastLayer(Member member) {
        KvPools pools = member.cache.pools();
        int[] order = pools.byLayer();
        return pools.hasLayers() ? pools.layer(order[order.length - 1]) : 0;
    }

    private void checkTpSizes() {
        Member first = members.getFirst();
        for (Member member : members) {
            if (!member.cache.tensorParallel().equals(first.cache.tensorParallel())) {
                throw new IllegalArgumentException(
                        "%s is of %s and %s of %s"
                                .formatted(
                                        first,
                                        first.cache.tensorParallel(),
                                        member,
                                        member.cache.tensorParallel()));
            }
        }
    }

    private KvRoute route(Member member) {
        try {
            return KvRoute.of(member.cache, decode, KvSenderOptions.defaults(), member.staging);
        } catch (IllegalArgumentException refused) {
            throw new IllegalArgumentException(
                    "%s does not fit decode rank %d: %s"
                            .formatted(member, decode.rank(), refused.getMessage()),
                    refused);
        }
    }

    /** Every rank of the group holds every layer of some pools exactly once. */
    private void checkComplete(
            String what, Function<KvCache, @Nullable KvPools> part, KvPools decodePools) {
        int size = members.getFirst().cache.tensorParallel().size();
        for (int rank = 0; rank < size; rank++) {
            Map<Integer, Member> holders = new HashMap<>();
            boolean isThere = false;
            for (Member member : members) {
                KvPools pools = member.cache.rank() == rank ? part.apply(member.cache) : null;
                isThere |= member.cache.rank() == rank;
                for (int layer : pools == null ? new int[0] : layers(pools)) {
                    Member other = holders.put(layer, member);
                    if (other != null) {
                        throw new IllegalArgumentException(
                                "%sprefill rank %d of %d is there twice%s: as %s and as %s"
                                        .formatted(
                                                what,
                                                rank,
                                                size,
                                                ofLayer(decodePools, layer),
                                                other.name,
                                                member.name));
                    }
                }
            }
            for (int layer : layers(decodePools)) {
                if (!holders.containsKey(layer)) {
                    throw new IllegalArgumentException(
                            "%sprefill rank %d of %d is missing%s"
                                    .formatted(
                                            what,
                                            rank,
                                            size,
                                            isThere ? ofLayer(decodePools, layer) : ""));
                }
            }
        }
    }

    private static String ofLayer(KvPools pools, int layer) {
        return pools.hasLayers() ? " for layer " + layer : "";
    }

    /** Layers of some pools, each once; pools without layer ids count as one. */
    private static int[] layers(KvPools pools) {
        if (!pools.hasLayers()) {
            return new int[] {0};
        }
        int[] layers = new int[pools.size()];
        int count = 0;
        for (int pool : pools.byLayer()) {
            if (count == 0 || layers[count - 1] != pools.layer(pool)) {
                layers[count++] = pools.layer(pool);
            }
        }
        return Arrays.copyOf(layers, count);
    }

    private static @Nullable KvPools poolsOf(KvCache cache, String stateName) {
        int index = cache.stateNames().indexOf(stateName);
        return index < 0 ? null : cache.states().get(index).pools();
    }
}
