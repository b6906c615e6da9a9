package dev.verbena.demo;

/**
 * A page that is not as it should be.
 *
 * @param pool the pool it is in
 * @param requestPage its number within the request; the largest int if it is none of the request's
 * @param label its layer, K or V, and page: short, for a table
 * @param detail what is wrong with it
 */
record WrongPage(int pool, int requestPage, String label, String detail) {
    @Override
    public String toString() {
        return label + ": " + detail;
    }
}
