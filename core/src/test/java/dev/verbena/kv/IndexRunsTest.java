package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/**
 * Runs against a sorted map, in pools that are crowded (ordered by a table) and nearly empty
 * (ordered by a sort).
 */
class IndexRunsTest {
    private record Run(int source, int destination, int length) {}

    @Test
    void groupsIndicesIntoTheLongestRuns() {
        Seeds.forEach(
                5000,
                random -> {
                    int[] destinations = destinations(random);
                    int[] sources =
                            RandomLayouts.sources(
                                    random, destinations.length, destinations.length + 4);

                    IndexRuns runs = IndexRuns.of(sources, destinations, "list", 0);

                    assertThat(listed(runs)).isEqualTo(model(sources, destinations));
                    assertThat(runs.items()).isEqualTo(sources.length);
                });
    }

    @Test
    void cutsIntoPartsThatGroupTheSameIndices() {
        Seeds.forEach(
                2000,
                random -> {
                    int[] destinations = destinations(random);
                    int[] sources =
                            RandomLayouts.distinct(
                                    random, destinations.length, destinations.length + 4);
                    int most = 1 + random.nextInt(9);
                    IndexRuns runs = IndexRuns.of(sources, destinations, "list", 0);

                    List<IndexRuns> parts = runs.cut(most);

                    List<Run> singles = new ArrayList<>();
                    for (int i = 0; i < parts.size(); i++) {
                        boolean last = i == parts.size() - 1;
                        int items = parts.get(i).items();
                        assertThat(items).isBetween(last ? 1 : most, most);
                        List<Run> part = singles(parts.get(i));
                        assertThat(part).hasSize(items);
                        assertThat(listed(parts.get(i))).allMatch(run -> run.length() > 0);
                        singles.addAll(part);
                    }
                    assertThat(singles).isEqualTo(singles(runs));
                });
    }

    @Test
    void findsADestinationNamedTwiceWhereverItIs() {
        Seeds.forEach(
                3000,
                random -> {
                    int[] destinations = destinations(random);
                    if (destinations.length < 2) {
                        return;
                    }
                    int first = random.nextInt(destinations.length - 1);
                    int second = first + 1 + random.nextInt(destinations.length - first - 1);
                    destinations[second] = destinations[first];
                    int[] sources =
                            RandomLayouts.distinct(
                                    random, destinations.length, destinations.length + 4);

                    assertThatThrownBy(() -> IndexRuns.of(sources, destinations, "list", 100))
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessage(
                                    "list[%d] and list[%d] are both %d: destinations overlap",
                                    100 + first, 100 + second, destinations[first]);
                });
    }

    @Test
    void reachesTheLargestIndices() {
        int most = Integer.MAX_VALUE - 1;

        IndexRuns runs =
                IndexRuns.of(new int[] {most, most - 1}, new int[] {most, most - 1}, "list", 0);

        assertThat(listed(runs)).containsExactly(new Run(most - 1, most - 1, 2));
    }

    private static int[] destinations(Random random) {
        int limit = 1 + random.nextInt(60);
        int[] values = RandomLayouts.distinct(random, random.nextInt(limit + 1), limit);
        if (random.nextBoolean()) {
            return values;
        }
        int[] apart = RandomLayouts.shuffled(random, limit);
        for (int i = 0; i < values.length; i++) {
            values[i] += apart[values[i] / 4] * 1_000_000;
        }
        return values;
    }

    private static List<Run> listed(IndexRuns runs) {
        List<Run> listed = new ArrayList<>();
        for (int run = 0; run < runs.count(); run++) {
            listed.add(new Run(runs.source(run), runs.destination(run), runs.length(run)));
        }
        return listed;
    }

    private static List<Run> singles(IndexRuns runs) {
        List<Run> singles = new ArrayList<>();
        for (Run run : listed(runs)) {
            for (int i = 0; i < run.length(); i++) {
                singles.add(new Run(run.source() + i, run.destination() + i, 1));
            }
        }
        return singles;
    }

    private static List<Run> model(int[] sources, int[] destinations) {
        TreeMap<Integer, Integer> map = new TreeMap<>();
        for (int i = 0; i < sources.length; i++) {
            map.put(destinations[i], sources[i]);
        }
        List<Run> runs = new ArrayList<>();
        map.forEach((destination, source) -> {
            if (!runs.isEmpty()) {
                Run last = runs.getLast();
                if (last.source() + last.length() == source
                        && last.destination() + last.length() == destination) {
                    runs.set(
                            runs.size() - 1,
                            new Run(last.source(), last.destination(), last.length() + 1));
                    return;
                }
            }
            runs.add(new Run(source, destination, 1));
        });
        return runs;
    }
}
