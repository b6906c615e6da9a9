package dev.verbena.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The options run what they say, under its own name. */
class RequestOptionsTest {
    private final Options.Request request = new Options.Request();

    @Test
    void allScenariosRunByDefaultScaled() {
        assertThat(scenarios())
                .extracting(Scenario::name)
                .containsExactlyElementsOf(Scenario.names());
        assertThat(scenarios().getFirst().tokens()).isEqualTo(256);
    }

    @Test
    void tokensAloneAreOfTheMainJob() {
        request.tokens = 64;

        assertThat(scenarios()).containsExactly(Scenario.MAIN.withTokens(64));
    }

    @ParameterizedTest
    @EnumSource(ModelShape.class)
    void aModelIsMovedWholeAndUnderAScenarioOfItsOwn(ModelShape model) {
        request.model = model;

        assertThat(scenarios())
                .singleElement()
                .satisfies(scenario -> {
                    assertThat(scenario).isEqualTo(Scenario.named(scenario.name()));
                    assertThat(scenario.model()).isEqualTo(model);
                    assertThat(scenario.prefillTp()).isEqualTo(scenario.decodeTp());
                });
    }

    @Test
    void aScenarioOfAnotherModelIsRefused() {
        request.scenario = Scenario.named("qwen3-next-2-1");
        request.model = ModelShape.DEEPSEEK_V3;

        assertThatIllegalArgumentException()
                .isThrownBy(request::jobs)
                .withMessageContaining("moves the cache of qwen3-next-80b, not of deepseek-v3");
    }

    @Test
    void aTraceBesideAnotherRequestIsRefused() {
        request.trace = "sample";
        request.scenario = Scenario.MAIN;
        assertThatIllegalArgumentException()
                .isThrownBy(request::traceRequests)
                .withMessageContaining("--scenario");

        request.scenario = null;
        request.tokens = 64;
        assertThatIllegalArgumentException()
                .isThrownBy(request::cacheBytes)
                .withMessageContaining("--tokens");
    }

    private List<Scenario> scenarios() {
        return request.jobs().stream().map(Job::scenario).toList();
    }
}
