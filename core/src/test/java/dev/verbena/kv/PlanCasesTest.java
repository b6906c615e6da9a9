package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.DynamicContainer;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * Holds every planner to exact results worked out elsewhere: the cases in the resources, and those
 * of another folder when {@code -Dverbena.planCases=DIR} names one.
 */
class PlanCasesTest {

    @TestFactory
    List<DynamicContainer> plansExactlyAsTheCasesSay() throws IOException, URISyntaxException {
        URL anchor = Objects.requireNonNull(PlanCasesTest.class.getResource("/plans/ORIGIN.md"));
        List<DynamicContainer> folders = new ArrayList<>();
        folders.add(folder(Objects.requireNonNull(Path.of(anchor.toURI()).getParent())));
        String further = System.getProperty("verbena.planCases");
        if (further != null) {
            folders.add(folder(Path.of(further)));
        }
        return folders;
    }

    private static DynamicContainer folder(Path folder) throws IOException {
        List<DynamicTest> tests = new ArrayList<>();
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.filter(f -> f.toString().endsWith(".json")).sorted().toList()) {
                for (JsonNode input : new ObjectMapper().readTree(file.toFile())) {
                    tests.add(test(input));
                }
            }
        }
        int cases = tests.size();
        tests.add(
                DynamicTest.dynamicTest(
                        "the folder holds cases",
                        () -> assertThat(cases).as("cases in %s", folder).isPositive()));
        return DynamicContainer.dynamicContainer(folder.toString(), tests);
    }

    private static DynamicTest test(JsonNode input) {
        String category = input.get("category").asText();
        Consumer<JsonNode> check = PlanCases.CATEGORIES.get(category);
        return DynamicTest.dynamicTest(
                input.get("name").asText(),
                () -> {
                    Assumptions.assumeTrue(
                            check != null, () -> "no planner for category " + category);
                    Objects.requireNonNull(check).accept(input);
                });
    }
}
