package dev.verbena.bench;

import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * One figure beside its peer's, as it is written to a file.
 *
 * @param name what was measured, from coarse to fine
 * @param unit unit of both figures
 * @param ours our figure: a median
 * @param peer the peer's
 * @param ratio how many times better ours is, above 1 if we win, whatever the unit
 * @param runs rounds behind the medians
 * @param settings what it was measured with, and the quartiles of the ratio
 */
@JsonPropertyOrder({"name", "unit", "ours", "peer", "ratio", "runs", "settings"})
record Result(
        String name,
        String unit,
        double ours,
        double peer,
        double ratio,
        int runs,
        Map<String, String> settings) {

    /**
     * Makes the result of a comparison.
     *
     * @param settings names and values in turn
     */
    static Result of(String name, String unit, Rounds.Comparison comparison, Object... settings) {
        Map<String, String> named = new LinkedHashMap<>();
        for (int i = 0; i < settings.length; i += 2) {
            named.put(settings[i].toString(), settings[i + 1].toString());
        }
        named.put("ratio_low", String.format(Locale.ROOT, "%.3f", comparison.low()));
        named.put("ratio_high", String.format(Locale.ROOT, "%.3f", comparison.high()));
        return new Result(
                name,
                unit,
                round(comparison.ours()),
                round(comparison.peer()),
                round(comparison.ratio()),
                comparison.runs(),
                named);
    }

    /** Four digits say more than any machine can repeat. */
    private static double round(double value) {
        return Double.isFinite(value) && value != 0
                ? Double.parseDouble(String.format(Locale.ROOT, "%.3e", value))
                : value;
    }

    /** One line of a table. */
    String line() {
        return String.format(
                Locale.ROOT,
                "%-34s %12s %12s %8s  %6s..%-6s %s",
                name,
                figure(ours),
                figure(peer),
                figure(ratio),
                settings.get("ratio_low"),
                settings.get("ratio_high"),
                unit);
    }

    static String heading() {
        return String.format(
                "%-34s %12s %12s %8s  %14s %s",
                "name", "ours", "peer", "ratio", "quartiles", "unit");
    }

    private static String figure(double value) {
        if (value == 0) {
            return "0";
        }
        double size = Math.abs(value);
        String format = size >= 1000 ? "%.0f" : size >= 100 ? "%.1f" : size >= 10 ? "%.2f" : "%.3f";
        return String.format(Locale.ROOT, format, value);
    }
}
