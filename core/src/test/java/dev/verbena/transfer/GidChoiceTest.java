package dev.verbena.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.verbs.Gid;
import java.util.HexFormat;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Tables of GIDs, one word an entry: protocol (1 RoCE v1, 2 RoCE v2, i InfiniBand) and address (v4,
 * g global, l link-local, e empty), in the order of the port's table.
 */
final class GidChoiceTest {
    private static final OptionalInt NONE = OptionalInt.empty();
    private static final Gid.Address V4 = address("v4");
    private static final Gid.Address GLOBAL = address("g");
    private static final Gid.Address LINK_LOCAL = address("l");

    @ParameterizedTest
    @CsvSource({
        // Soft-RoCE, and hardware with both protocols.
        "2l 2v4, 1",
        "1l 2l 1v4 2v4, 3",
        // RoCE v2 beats v1, whatever the addresses.
        "1v4 2l, 1",
        "1l 1v4, 1",
        // IPv4, then global, then link-local, then the lower index.
        "2l 2g 2v4, 2",
        "2l 2g, 1",
        "2l, 0",
        "2v4 2v4, 0",
        // Empty entries are none, and neither is one of another protocol.
        "2e 2l, 1",
        "iv4 2l, 1",
    })
    void choosesTheFarthestReachingOnEthernet(String table, int index) {
        assertThat(GidChoice.choose(gids(table), true, NONE).index()).isEqualTo(index);
    }

    @ParameterizedTest
    @CsvSource({"il, 0", "il ig, 0", "ig il, 0", "ie il, 1"})
    void choosesTheFirstOnInfiniBand(String table, int index) {
        assertThat(GidChoice.choose(gids(table), false, NONE).index()).isEqualTo(index);
        assertThat(GidChoice.chooseTowards(gids(table), false, NONE, GLOBAL).index())
                .isEqualTo(index);
    }

    @Test
    void doesNotDependOnTheOrderOfTheList() {
        List<Gid> gids = gids("1l 2l 1v4 2v4 2g");

        assertThat(GidChoice.choose(gids.reversed(), true, NONE))
                .isEqualTo(GidChoice.choose(gids, true, NONE));
    }

    @Test
    void honoursAWantedIndex() {
        List<Gid> gids = gids("1l 2v4");

        assertThat(GidChoice.choose(gids, true, OptionalInt.of(0)).index()).isZero();
        assertThat(GidChoice.chooseTowards(gids, true, OptionalInt.of(0), V4).index()).isZero();
    }

    @ParameterizedTest
    @CsvSource({"2l 2v4, 2", "2l 2v4, -1", "2l 2e, 1"})
    void refusesAWantedIndexWithTheListOfWhatThereIs(String table, int wanted) {
        assertThatThrownBy(() -> GidChoice.choose(gids(table), true, OptionalInt.of(wanted)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("no GID of index " + wanted)
                .hasMessageContaining("gid[0] fe80:0:0:0:0:0:0:1 ROCE_V2");
    }

    @Test
    void explainsAPortWithoutAUsableGid() {
        assertThatThrownBy(() -> GidChoice.choose(List.of(), true, NONE))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("interface down, or without an address")
                .hasMessageContaining("none at all");
        assertThatThrownBy(() -> GidChoice.choose(gids("2e 1e"), true, NONE))
                .isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> GidChoice.choose(gids("2v4"), false, NONE))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("subnet manager");
    }

    @ParameterizedTest
    @CsvSource({
        "2l 2g 2v4, v4, 2",
        "2l 2g 2v4, g, 1",
        "2l 2g 2v4, l, 0",
        // The same scope counts more than the protocol, which the peer's address does not tell.
        "2l 1v4, v4, 1",
        "1v4 2v4, v4, 1",
        // Without one of the same scope: the best, but no link-local one.
        "2l 2v4, g, 1",
        "2l 2g, v4, 1",
        "2v4, l, 0",
    })
    void choosesTheScopeOfThePeer(String table, String peer, int index) {
        assertThat(GidChoice.chooseTowards(gids(table), true, NONE, address(peer)).index())
                .isEqualTo(index);
    }

    @Test
    void refusesALinkLocalGidTowardsAPeerThatIsNot() {
        assertThatThrownBy(() -> GidChoice.chooseTowards(gids("2l"), true, NONE, V4))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("link-local");
    }

    @Test
    void explainsScopesThatDiffer() {
        assertThat(GidChoice.explainMismatch(LINK_LOCAL, V4))
                .hasValueSatisfying(text ->
                        assertThat(text)
                                .contains("fe80:0:0:0:0:0:0:1 is link-local")
                                .contains("::ffff:10.0.0.1 is an IPv4 address"));
        assertThat(GidChoice.explainMismatch(V4, GLOBAL)).isPresent();
        assertThat(GidChoice.explainMismatch(V4, V4)).isEmpty();
        assertThat(GidChoice.explainMismatch(LINK_LOCAL, LINK_LOCAL)).isEmpty();
    }

    private static List<Gid> gids(String table) {
        List<String> entries = List.of(table.split(" ", -1));
        return IntStream.range(0, entries.size()).mapToObj(i -> gid(entries.get(i), i)).toList();
    }

    private static Gid gid(String entry, int index) {
        Gid.Type type =
                switch (entry.charAt(0)) {
                    case '1' -> Gid.Type.ROCE_V1;
                    case '2' -> Gid.Type.ROCE_V2;
                    default -> Gid.Type.INFINIBAND;
                };
        return new Gid(index, type, address(entry.substring(1)), 1);
    }

    private static Gid.Address address(String kind) {
        return new Gid.Address(
                HexFormat.of()
                        .parseHex(
                                switch (kind) {
                                    case "v4" -> "00000000000000000000ffff0a000001";
                                    case "g" -> "20010db8000000000000000000000001";
                                    case "l" -> "fe800000000000000000000000000001";
                                    default -> "00000000000000000000000000000000";
                                }));
    }
}
