package dev.verbena.kv;

import dev.verbena.transfer.TransferBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A map of source items to destination items, as runs: stretches that are contiguous on both sides.
 * Items are pages or tokens. Runs are in ascending order of destination and as long as they can be,
 * whatever the order of the lists; they are found once and serve every pool.
 *
 * <p>Cost: linear in the lists, plus {@link RunOrder}.
 *
 * <p>Source: SGLang's {@code group_concurrent_contiguous}, which keeps the order of the lists, and
 * so leaves apart what a free list handed out in descending order.
 */
final class IndexRuns {
    private final int[] sources;
    private final int[] destinations;
    private final int[] lengths;

    /** The first so many entries of the arrays count. */
    private final int count;

    private final int items;

    private IndexRuns(int[] sources, int[] destinations, int[] lengths, int count, int items) {
        this.sources = sources;
        this.destinations = destinations;
        this.lengths = lengths;
        this.count = count;
        this.items = items;
    }

    /**
     * Finds the runs of two lists of equal length, all of whose values are at least 0.
     *
     * @param list name of the destinations, for the message
     * @param listOffset position in that list of the first destination, for the message
     * @throws IllegalArgumentException if a destination occurs twice; it names both positions
     */
    static IndexRuns of(int[] sources, int[] destinations, String list, int listOffset) {
        int[] starts = starts(sources, destinations);
        int[] order = RunOrder.of(starts, starts.length - 1, destinations);
        int[] runSources = new int[order.length];
        int[] runDestinations = new int[order.length];
        int[] runLengths = new int[order.length];
        int runs = 0;
        for (int next : order) {
            int length = starts[next + 1] - starts[next];
            int source = sources[starts[next]];
            int destination = destinations[starts[next]];
            if (runs > 0) {
                int last = runs - 1;
                int end = runDestinations[last] + runLengths[last];
                if (destination < end) {
                    throw repeated(destinations, destination, list, listOffset);
                }
                if (destination == end && source == runSources[last] + runLengths[last]) {
                    runLengths[last] += length;
                    continue;
                }
            }
            runSources[runs] = source;
            runDestinations[runs] = destination;
            runLengths[runs++] = length;
        }
        return new IndexRuns(runSources, runDestinations, runLengths, runs, sources.length);
    }

    /** Number of runs. */
    int count() {
        return count;
    }

    /** Number of items in all runs together. */
    int items() {
        return items;
    }

    /** First source item of a run. */
    int source(int run) {
        return sources[run];
    }

    /** First destination item of a run. */
    int destination(int run) {
        return destinations[run];
    }

    /** Items of a run. */
    int length(int run) {
        return lengths[run];
    }

    /** Adds a block per run, for a pool whose items have the same length on both sides. */
    void addTo(TransferBatch batch, long sourceBase, long destinationBase, long itemBytes) {
        batch.addRuns(
                sourceBase, sources, destinationBase, destinations, lengths, count, itemBytes);
    }

    /** Cuts into parts of at most that many items, in order; no part is empty. */
    List<IndexRuns> cut(int maxItems) {
        List<IndexRuns> parts = new ArrayList<>();
        int run = 0;
        int skip = 0; // items of that run which earlier parts hold
        for (int left = items; left > 0; left -= Math.min(left, maxItems)) {
            int partItems = Math.min(left, maxItems);
            int end = run;
            int wanted = skip + partItems;
            while (end < count && wanted >= lengths[end]) {
                wanted -= lengths[end++];
            }
            parts.add(part(run, skip, end, wanted, partItems));
            run = end;
            skip = wanted;
        }
        return parts;
    }

    /** Runs first to end - 1 without the first items, and so many items of run end. */
    private IndexRuns part(int first, int skip, int end, int ofLast, int partItems) {
        int last = ofLast > 0 ? end + 1 : end;
        int[] partSources = Arrays.copyOfRange(sources, first, last);
        int[] partDestinations = Arrays.copyOfRange(destinations, first, last);
        int[] partLengths = Arrays.copyOfRange(lengths, first, last);
        if (ofLast > 0) {
            partLengths[end - first] = ofLast;
        }
        partSources[0] += skip;
        partDestinations[0] += skip;
        partLengths[0] -= skip;
        return new IndexRuns(partSources, partDestinations, partLengths, last - first, partItems);
    }

    /** List positions at which a run starts, and the end of the list. */
    private static int[] starts(int[] sources, int[] destinations) {
        int runs = 0;
        for (int i = 0; i < sources.length; i++) {
            if (startsRun(sources, destinations, i)) {
                runs++;
            }
        }
        int[] starts = new int[runs + 1];
        starts[runs] = sources.length;
        int run = 0;
        for (int i = 0; i < sources.length; i++) {
            if (startsRun(sources, destinations, i)) {
                starts[run++] = i;
            }
        }
        return starts;
    }

    private static boolean startsRun(int[] sources, int[] destinations, int i) {
        return i == 0
                || sources[i] != sources[i - 1] + 1
                || destinations[i] != destinations[i - 1] + 1;
    }

    private static IllegalArgumentException repeated(
            int[] values, int value, String list, int offset) {
        int first = 0;
        while (values[first] != value) {
            first++;
        }
        int second = first + 1;
        while (values[second] != value) {
            second++;
        }
        return new IllegalArgumentException(
                "%s[%d] and %s[%d] are both %d: destinations overlap"
                        .formatted(list, offset + first, list, offset + second, value));
    }
}
