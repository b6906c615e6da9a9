package dev.verbena.demo;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The end of a run, for people and for machines.
 *
 * @param device the device of the prefill side, which is "tcp" without RDMA, or null if none was
 *     opened
 * @param transport what moved the bytes
 * @param scenarios what was done
 * @param error why it ended early, or null if it did not
 */
record Report(
        @Nullable String device,
        String transport,
        List<ScenarioResult> scenarios,
        @Nullable String error) {

    private static final List<String> HEADINGS =
            List.of(
                    "category",
                    "items",
                    "blocks",
                    "work requests",
                    "merged",
                    "bytes",
                    "GB/s",
                    "verified");

    Report {
        scenarios = List.copyOf(scenarios);
    }

    /** Whether everything was done and every byte is right. */
    boolean isGood() {
        return error == null && scenarios.stream().allMatch(ScenarioResult::verified);
    }

    /** The report as one JSON object. */
    String json() {
        StringBuilder json = new StringBuilder("{\"device\":");
        json.append(device == null ? "null" : Json.quote(device));
        json.append(",\"transport\":").append(Json.quote(transport));
        json.append(
                scenarios.stream()
                        .map(Report::json)
                        .collect(Collectors.joining(",", ",\"scenarios\":[", "]")));
        if (error != null) {
            json.append(",\"error\":").append(Json.quote(error));
        }
        return json.append('}').toString();
    }

    private static String json(ScenarioResult result) {
        String fields =
                String.format(
                        Locale.ROOT,
                        "{\"name\":%s,\"category\":%d,\"items\":%d,\"blocks\":%d,"
                                + "\"workRequests\":%d,\"bytes\":%d,\"seconds\":%.6f,"
                                + "\"verified\":%b",
                        Json.quote(result.name()),
                        result.category(),
                        result.items(),
                        result.blocks(),
                        result.workRequests(),
                        result.bytes(),
                        result.seconds(),
                        result.verified());
        TraceResult trace = result.trace();
        if (trace != null) {
            fields += "," + trace.json();
        }
        WrongItem wrong = result.verdict().firstWrong();
        return wrong == null
                ? fields + "}"
                : fields + ",\"firstWrong\":" + Json.quote(wrong.toString()) + "}";
    }

    /** The report as a table and the words that explain it; ends with a line feed. */
    String table() {
        List<List<String>> rows = new ArrayList<>();
        rows.add(HEADINGS);
        scenarios.forEach(result -> rows.add(row(result)));
        StringBuilder text = new StringBuilder();
        int[] widths = widths(rows);
        for (List<String> row : rows) {
            text.append(line(row, widths)).append('\n');
        }
        text.append('\n');
        for (ScenarioResult result : scenarios) {
            text.append(result.name()).append(": ").append(result.verdict().words());
            text.append('\n');
            TraceResult trace = result.trace();
            if (trace != null) {
                text.append(result.name()).append(": ").append(trace.words(result.items()));
                text.append('\n');
            }
        }
        return text.append(
                        "Items: pages, state and auxiliary data, over all pools and ranks. Merged:")
                .append(" items a work request\nmoves; below 1 where heads are cut out of")
                .append(" pages. GB/s: bytes by the time in which a chunk was\nunder way; making")
                .append(" and checking the items does not count.\n")
                .toString();
    }

    private static List<String> row(ScenarioResult result) {
        WrongItem wrong = result.verdict().firstWrong();
        return List.of(
                result.category() + " " + result.title(),
                grouped(result.items()),
                grouped(result.blocks()),
                grouped(result.workRequests()),
                decimal("%.1f", (double) result.items() / Math.max(1, result.workRequests())),
                grouped(result.bytes()),
                decimal("%.3f", result.bytes() / 1e9 / Math.max(1e-9, result.seconds())),
                wrong == null ? "yes" : "NO: " + wrong.label());
    }

    private static String grouped(long number) {
        return String.format(Locale.ROOT, "%,d", number);
    }

    private static String decimal(String format, double number) {
        return String.format(Locale.ROOT, format, number);
    }

    private static int[] widths(List<List<String>> rows) {
        int[] widths = new int[HEADINGS.size()];
        for (List<String> row : rows) {
            for (int column = 0; column < widths.length; column++) {
                widths[column] = Math.max(widths[column], row.get(column).length());
            }
        }
        return widths;
    }

    /** One line: the words at both ends begin their column, the numbers between end theirs. */
    private static String line(List<String> row, int[] widths) {
        StringBuilder line = new StringBuilder();
        int last = widths.length - 1;
        for (int column = 0; column <= last; column++) {
            String cell = row.get(column);
            String padding = " ".repeat(widths[column] - cell.length());
            boolean words = column == 0 || column == last;
            line.append(words ? cell + padding : padding + cell).append("  ");
        }
        return line.toString().stripTrailing();
    }
}
