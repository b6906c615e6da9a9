package dev.verbena.bench;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.knowm.xchart.VectorGraphicsEncoder;
import org.knowm.xchart.VectorGraphicsEncoder.VectorGraphicsFormat;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.style.markers.SeriesMarkers;

/**
 * Draws sweeps: of each file of results, those whose names differ in the last part, which must
 * begin with a number, become one chart, with that number along the x axis.
 */
final class Plot {
    private static final int WIDTH = 720;
    private static final int HEIGHT = 440;

    private Plot() {}

    /** Draws all files of a folder that hold sweeps, beside them. Gives what was drawn. */
    static List<Path> drawAll(Path folder) throws IOException {
        List<Path> drawn = new ArrayList<>();
        List<Path> files;
        try (Stream<Path> listed = Files.list(folder)) {
            files = listed.filter(file -> file.toString().endsWith(".json")).sorted().toList();
        }
        for (Path file : files) {
            List<Result> results =
                    new ObjectMapper().readValue(file.toFile(), new TypeReference<>() {});
            for (Map.Entry<String, List<Result>> sweep : sweeps(results).entrySet()) {
                Path chart = folder.resolve(sweep.getKey().replace('/', '-') + ".svg");
                draw(sweep.getKey(), sweep.getValue(), chart);
                drawn.add(chart);
            }
        }
        return drawn;
    }

    /** Results by their names without the last part; only those of which there are several. */
    private static Map<String, List<Result>> sweeps(List<Result> results) {
        Map<String, List<Result>> sweeps = new LinkedHashMap<>();
        for (Result result : results) {
            int slash = result.name().lastIndexOf('/');
            if (result.name().substring(slash + 1).matches("[0-9].*")) {
                sweeps.computeIfAbsent(result.name().substring(0, slash), n -> new ArrayList<>())
                        .add(result);
            }
        }
        sweeps.values().removeIf(sweep -> sweep.size() < 2);
        return sweeps;
    }

    private static void draw(String name, List<Result> sweep, Path file) throws IOException {
        XYChart chart =
                new XYChartBuilder()
                        .width(WIDTH)
                        .height(HEIGHT)
                        .title(name)
                        .xAxisTitle(axis(sweep.getFirst()))
                        .yAxisTitle(sweep.getFirst().unit())
                        .build();
        double[] along = sweep.stream().mapToDouble(Plot::number).toArray();
        double[] ours = sweep.stream().mapToDouble(Result::ours).toArray();
        double[] peers = sweep.stream().mapToDouble(Result::peer).toArray();
        chart.getStyler().setXAxisLogarithmic(true).setYAxisMin(0.0);
        chart.addSeries("Verbena", along, ours).setMarker(SeriesMarkers.CIRCLE);
        chart.addSeries(sweep.getFirst().settings().getOrDefault("peer", "peer"), along, peers)
                .setMarker(SeriesMarkers.SQUARE);
        VectorGraphicsEncoder.saveVectorGraphic(chart, file.toString(), VectorGraphicsFormat.SVG);
    }

    private static double number(Result result) {
        String last = result.name().substring(result.name().lastIndexOf('/') + 1);
        return Double.parseDouble(last.replaceFirst("[^0-9.].*", ""));
    }

    /** What follows the number in the names, or the first setting. */
    private static String axis(Result result) {
        String last = result.name().substring(result.name().lastIndexOf('/') + 1);
        String unit = last.replaceFirst("^[0-9.]+-?", "");
        return unit.isEmpty() ? result.settings().keySet().iterator().next() : unit;
    }
}
