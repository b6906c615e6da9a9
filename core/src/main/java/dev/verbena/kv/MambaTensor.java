package dev.verbena.kv;

import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * The sharded dimension of one Mamba state tensor: rows of equal length, in groups that lie side by
 * side and are each sharded by themselves. A convolution state of a gated delta net has the groups
 * q, k and v; a temporal state has one group, its heads.
 *
 * <p>Rank r of T holds rows r / T to (r + 1) / T of every group, groups in order.
 *
 * <p>Immutable, safe to share.
 */
public final class MambaTensor {
    private final long rowBytes;
    private final int[] groups;

    private MambaTensor(long rowBytes, int[] groups) {
        this.rowBytes = rowBytes;
        this.groups = groups;
    }

    /**
     * Describes a tensor.
     *
     * @param rowBytes bytes of one row, at least 1
     * @param groups rows of each group over all ranks, at least 1 each, at least one group
     * @return the tensor
     * @throws IllegalArgumentException if a number is below 1, there is no group, or the tensor
     *     exceeds 64 bits
     */
    public static MambaTensor of(long rowBytes, int... groups) {
        Checks.positive("rowBytes", rowBytes);
        Checks.positive("number of groups", groups.length);
        for (int group = 0; group < groups.length; group++) {
            Checks.positive("rows of group " + group, groups[group]);
        }
        long rows = IntStream.of(groups).asLongStream().sum();
        Checks.product("bytes of the tensor", rowBytes, rows);
        return new MambaTensor(rowBytes, groups.clone());
    }

    /**
     * Says how large a row is.
     *
     * @return bytes of one row
     */
    public long rowBytes() {
        return rowBytes;
    }

    /**
     * Says how many groups of rows there are.
     *
     * @return the number of groups, at least 1
     */
    public int groupCount() {
        return groups.length;
    }

    /**
     * Says how many rows a group has over all ranks.
     *
     * @param group position of the group
     * @return its rows
     * @throws IndexOutOfBoundsException if there is no such group
     */
    public int groupRows(int group) {
        return groups[group];
    }

    /**
     * Says how large the state of one slot is on one rank: the item length of its pool.
     *
     * @param tpSize ranks that the rows are divided among, at least 1; divides every group
     * @return bytes of one item
     * @throws IllegalArgumentException if the size is below 1 or does not divide a group
     */
    public long itemBytes(int tpSize) {
        Checks.positive("TP size", tpSize);
        long rows = 0;
        for (int group = 0; group < groups.length; group++) {
            if (groups[group] % tpSize != 0) {
                throw new IllegalArgumentException(
                        "group %d has %d rows, not divisible by TP size %d"
                                .formatted(group, groups[group], tpSize));
            }
            rows += groups[group] / tpSize;
        }
        return rows * rowBytes;
    }

    @Override
    public String toString() {
        return "MambaTensor[rows of "
                + rowBytes
                + " bytes, groups "
                + Arrays.toString(groups)
                + "]";
    }
}
