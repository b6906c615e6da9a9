package dev.verbena.bench;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a JVM wrote with {@code -Xlog:class+load}: how many classes it loaded, and from where. */
final class LoadedClasses {
    private static final String SOURCE = " source: ";

    private LoadedClasses() {}

    /**
     * Counts the classes of a log.
     *
     * @param log lines as {@code [0.1s][info][class,load] NAME source: SOURCE}
     * @return by source: all; {@code archive}, the JDK's own archive or an AOT cache; {@code jdk},
     *     its other classes; {@code jars}, those of the class path; {@code made}, at run time
     */
    static Map<String, Long> count(List<String> log) {
        Map<String, Long> counts = new LinkedHashMap<>();
        for (String source : List.of("all", "archive", "jdk", "jars", "made")) {
            counts.put(source, 0L);
        }
        for (String line : log) {
            int at = line.indexOf(SOURCE);
            if (at >= 0) {
                counts.merge("all", 1L, Long::sum);
                counts.merge(source(line.substring(at + SOURCE.length())), 1L, Long::sum);
            }
        }
        return counts;
    }

    private static String source(String source) {
        if (source.startsWith("shared objects file")) {
            return "archive";
        }
        return source.startsWith("jrt:") ? "jdk" : source.startsWith("file:") ? "jars" : "made";
    }
}
