package dev.verbena.transfer;

import dev.verbena.verbs.Gid;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.Collectors;

/**
 * Chooses the GID that queue pairs send from. A wrong one shows as a peer that never answers, so
 * the choice is made by rule, and what cannot work is told before anything hangs.
 *
 * <p>On Ethernet RoCE v2 goes before v1, which is not routed; then IPv4, then a global IPv6
 * address, and last a link-local one, which ends at the first router; then the lower index. On
 * InfiniBand it is the first GID of the table.
 *
 * <p>Pure functions, safe for any thread.
 */
final class GidChoice {
    private static final Comparator<Gid> FIRST = Comparator.comparingInt(Gid::index);
    private static final Comparator<Gid> BEST_ON_ETHERNET =
            Comparator.comparing((Gid gid) -> gid.type() != Gid.Type.ROCE_V2)
                    .thenComparingInt(gid -> scopeRank(gid.scope()))
                    .thenComparing(FIRST);

    private GidChoice() {}

    /**
     * Chooses without knowledge of a peer.
     *
     * @param gids the port's GIDs
     * @param ethernet true for RoCE, false for InfiniBand
     * @param wanted the index that the user insists on
     * @throws IllegalArgumentException if there is no GID of the wanted index
     * @throws IllegalStateException if there is no usable GID
     */
    static Gid choose(List<Gid> gids, boolean ethernet, OptionalInt wanted) {
        return wanted.isPresent()
                ? wanted(gids, wanted.getAsInt())
                : usable(gids, ethernet).getFirst();
    }

    /**
     * Chooses for a peer that sends from a known GID: the best of the same scope, else the best of
     * all; but a link-local GID only for a link-local peer. A wanted index is not questioned.
     *
     * @throws IllegalArgumentException if there is no GID of the wanted index
     * @throws IllegalStateException if there is no GID that can reach the peer
     */
    static Gid chooseTowards(
            List<Gid> gids, boolean ethernet, OptionalInt wanted, Gid.Address peer) {
        if (wanted.isPresent() || !ethernet) {
            return choose(gids, ethernet, wanted);
        }
        List<Gid> usable = usable(gids, ethernet);
        Optional<Gid> sameScope =
                usable.stream().filter(gid -> gid.scope() == peer.scope()).findFirst();
        return sameScope
                .or(() ->
                        usable.stream()
                                .filter(gid -> gid.scope() != Gid.Scope.LINK_LOCAL)
                                .findFirst())
                .orElseThrow(() ->
                        new IllegalStateException(
                                explainMismatch(usable.getFirst().address(), peer).orElseThrow()));
    }

    /**
     * Says why two GIDs are unlikely to reach each other on Ethernet.
     *
     * @return a sentence, or nothing if their scopes agree
     */
    static Optional<String> explainMismatch(Gid.Address local, Gid.Address peer) {
        if (local.scope() == peer.scope()) {
            return Optional.empty();
        }
        return Optional.of(
                ("this side's GID %s is %s, and the peer's GID %s is %s: packets would not pass."
                                + " Choose GID indices of one kind on both sides")
                        .formatted(local, scopeName(local.scope()), peer, scopeName(peer.scope())));
    }

    private static Gid wanted(List<Gid> gids, int index) {
        return gids.stream()
                .filter(gid -> gid.index() == index && gid.scope() != Gid.Scope.EMPTY)
                .findFirst()
                .orElseThrow(() ->
                        new IllegalArgumentException(
                                "there is no GID of index %d; the port has %s"
                                        .formatted(index, list(gids))));
    }

    private static List<Gid> usable(List<Gid> gids, boolean ethernet) {
        List<Gid> usable =
                gids.stream()
                        .filter(gid -> (gid.type() != Gid.Type.INFINIBAND) == ethernet)
                        .filter(gid -> gid.scope() != Gid.Scope.EMPTY)
                        .sorted(ethernet ? BEST_ON_ETHERNET : FIRST)
                        .toList();
        if (usable.isEmpty()) {
            String why =
                    ethernet
                            ? "is its network interface down, or without an address?"
                            : "is a subnet manager running?";
            throw new IllegalStateException(
                    "the port has no usable GID; %s It has %s".formatted(why, list(gids)));
        }
        return usable;
    }

    private static int scopeRank(Gid.Scope scope) {
        return switch (scope) {
            case IPV4 -> 0;
            case GLOBAL -> 1;
            case LINK_LOCAL -> 2;
            case EMPTY -> 3;
        };
    }

    private static String scopeName(Gid.Scope scope) {
        return switch (scope) {
            case IPV4 -> "an IPv4 address";
            case GLOBAL -> "a global IPv6 address";
            case LINK_LOCAL -> "link-local";
            case EMPTY -> "empty";
        };
    }

    private static String list(List<Gid> gids) {
        return gids.isEmpty()
                ? "none at all"
                : gids.stream().map(Gid::toString).collect(Collectors.joining(", "));
    }
}
