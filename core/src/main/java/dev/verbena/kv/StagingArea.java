package dev.verbena.kv;

/**
 * A stretch of memory that heads are gathered into before a bulk write, or scattered from after it.
 *
 * @param base address of the first byte, at least 0
 * @param lengthBytes bytes of the area, at least 0
 */
public record StagingArea(long base, long lengthBytes) {
    /**
     * Checks the stretch.
     *
     * @throws IllegalArgumentException if a number is negative, or the area passes the end of the
     *     address space
     */
    public StagingArea {
        Checks.notNegative("base of the staging area", base);
        Checks.notNegative("length of the staging area", lengthBytes);
        Checks.sum("end of the staging area", base, lengthBytes);
    }

    /**
     * Gives a part of the area, such as the region of one prefill rank.
     *
     * @param offsetBytes where the part begins, at least 0
     * @param partBytes bytes of the part, at least 0
     * @return the part
     * @throws IllegalArgumentException if a number is negative, or the area is too small
     */
    public StagingArea region(long offsetBytes, long partBytes) {
        Checks.notNegative("offset of the region", offsetBytes);
        Checks.notNegative("length of the region", partBytes);
        if (partBytes > lengthBytes || offsetBytes > lengthBytes - partBytes) {
            throw new IllegalArgumentException(
                    "the staging area holds %d bytes: too small for %d bytes at offset %d"
                            .formatted(lengthBytes, partBytes, offsetBytes));
        }
        return new StagingArea(base + offsetBytes, partBytes);
    }

    /** Says whether the area and another stretch have a byte in common. */
    boolean overlaps(long otherBase, long otherBytes) {
        return lengthBytes > 0 && base < otherBase + otherBytes && otherBase < base + lengthBytes;
    }
}
