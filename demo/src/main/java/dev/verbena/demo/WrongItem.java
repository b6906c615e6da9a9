package dev.verbena.demo;

/**
 * An item of a pool, such as a page, that is not as it should be.
 *
 * @param label its rank, layer, K or V, and page: short, for a table
 * @param detail what is wrong with it
 */
record WrongItem(String label, String detail) {
    @Override
    public String toString() {
        return label + ": " + detail;
    }
}
