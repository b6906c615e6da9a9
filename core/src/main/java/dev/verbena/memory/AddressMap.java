package dev.verbena.memory;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * From an address to the region that holds it: a sorted, immutable table.
 *
 * <p>Each entry is one memory region of one owner: its range and its key. Entries never overlap,
 * and a pool of several regions has several entries in a row.
 *
 * <p>Immutable and safe for any thread. {@link #find} is a binary search that allocates nothing.
 *
 * @param <T> what the ranges belong to: pools of this side, or pools of a peer
 */
public final class AddressMap<T> {
    /**
     * One region, as the table is built from it.
     *
     * @param address its first byte
     * @param lengthBytes its length, above 0
     * @param key lkey on this side, rkey of a peer's region
     * @param owner what it belongs to
     * @param <T> type of the owner
     */
    public record Entry<T>(long address, long lengthBytes, int key, T owner) {}

    private static final int NOT_FOUND = -1;

    private final long[] starts;
    private final long[] ends;
    private final int[] keys;
    private final List<T> owners;

    private AddressMap(List<Entry<T>> sorted) {
        int size = sorted.size();
        starts = new long[size];
        ends = new long[size];
        keys = new int[size];
        for (int i = 0; i < size; i++) {
            Entry<T> entry = sorted.get(i);
            starts[i] = entry.address;
            ends[i] = entry.address + entry.lengthBytes;
            keys[i] = entry.key;
            if (entry.lengthBytes <= 0 || Long.compareUnsigned(ends[i], starts[i]) < 0) {
                throw new IllegalArgumentException(
                        "a region of %d bytes at 0x%x of %s is empty or passes the address space"
                                .formatted(entry.lengthBytes, starts[i], entry.owner));
            }
            if (i > 0 && Long.compareUnsigned(ends[i - 1], starts[i]) > 0) {
                throw new IllegalArgumentException(
                        "regions overlap at 0x%x: %s and %s"
                                .formatted(starts[i], sorted.get(i - 1).owner, entry.owner));
            }
        }
        owners = sorted.stream().map(Entry::owner).toList();
    }

    /**
     * Builds a table.
     *
     * @param entries the regions, in any order
     * @param <T> type of the owners
     * @return the table
     * @throws IllegalArgumentException if two of them overlap, and the message names both owners;
     *     if one is empty or passes the address space
     */
    public static <T> AddressMap<T> of(List<Entry<T>> entries) {
        return new AddressMap<>(
                entries.stream()
                        .sorted(Comparator.comparing(Entry::address, Long::compareUnsigned))
                        .toList());
    }

    /**
     * Finds the region that holds an address.
     *
     * @param address any address
     * @return index of its entry, or a negative number if no region holds it
     */
    public int find(long address) {
        int low = 0;
        int high = starts.length - 1;
        while (low <= high) {
            int middle = (low + high) >>> 1;
            if (Long.compareUnsigned(starts[middle], address) > 0) {
                high = middle - 1;
            } else if (Long.compareUnsigned(ends[middle], address) <= 0) {
                low = middle + 1;
            } else {
                return middle;
            }
        }
        return NOT_FOUND;
    }

    /**
     * Finds the region that holds an address, trying first the one that held the last.
     *
     * @param address any address
     * @param hint index of the entry to try first; any value is allowed
     * @return index of its entry, or a negative number if no region holds it
     */
    public int find(long address, int hint) {
        if (hint >= 0 && hint < starts.length && holds(hint, address)) {
            return hint;
        }
        return find(address);
    }

    /**
     * Says whether a range lies in registered memory of one owner, in one region or in several that
     * follow one another.
     *
     * @param index entry that holds the first byte
     * @param address first byte of the range
     * @param lengthBytes its length
     * @return true if every byte is held; false for a length below 0
     * @throws IndexOutOfBoundsException if there is no such entry
     */
    public boolean covers(int index, long address, long lengthBytes) {
        long end = address + lengthBytes;
        if (lengthBytes < 0 || Long.compareUnsigned(end, address) < 0) {
            return false;
        }
        int last = index;
        while (Long.compareUnsigned(end, ends[last]) > 0) {
            int next = last + 1;
            if (next == starts.length
                    || starts[next] != ends[last]
                    || !owners.get(next).equals(owners.get(index))) {
                return false;
            }
            last = next;
        }
        return true;
    }

    /**
     * Counts the regions.
     *
     * @return number of entries
     */
    public int size() {
        return starts.length;
    }

    /**
     * Gives the start of a region.
     *
     * @param index which entry
     * @return the address of its first byte
     */
    public long start(int index) {
        return starts[index];
    }

    /**
     * Gives the end of a region.
     *
     * @param index which entry
     * @return the address behind its last byte
     * @throws IndexOutOfBoundsException if there is no such entry
     */
    public long end(int index) {
        return ends[index];
    }

    /**
     * Gives the key of a region.
     *
     * @param index which entry
     * @return lkey or rkey
     * @throws IndexOutOfBoundsException if there is no such entry
     */
    public int key(int index) {
        return keys[index];
    }

    /**
     * Gives the owner of a region.
     *
     * @param index which entry
     * @return the pool it belongs to
     * @throws IndexOutOfBoundsException if there is no such entry
     */
    public T owner(int index) {
        return owners.get(index);
    }

    private boolean holds(int index, long address) {
        return Long.compareUnsigned(starts[index], address) <= 0
                && Long.compareUnsigned(ends[index], address) > 0;
    }

    @Override
    public String toString() {
        return "AddressMap" + Arrays.toString(starts);
    }
}
