package dev.verbena.demo;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class ReportTest {
    private static final WrongItem WRONG = new WrongItem("layer 16, V, page 64", "byte \"5\"");

    @Test
    void jsonIsOneObject() {
        assertThat(report(new DemoMessage.Verdict(8192, 0, null)).json())
                .isEqualTo(
                        "{\"device\":\"rxe0\",\"transport\":\"verbs\",\"scenarios\":["
                                + "{\"name\":\"llama-8b\",\"category\":1,\"items\":8192,"
                                + "\"blocks\":4000,\"workRequests\":2000,\"bytes\":268435456,"
                                + "\"seconds\":8.500000,\"verified\":true}]}");
    }

    @Test
    void jsonNamesTheFirstWrongItem() {
        assertThat(report(new DemoMessage.Verdict(8192, 1, WRONG)).json())
                .endsWith(
                        "\"verified\":false,\"firstWrong\":"
                                + "\"layer 16, V, page 64: byte \\\"5\\\"\"}]}");
    }

    @Test
    void jsonTellsWhyThereIsNoResult() {
        assertThat(new Report(null, "verbs", List.of(), "no\ndevice").json())
                .isEqualTo(
                        "{\"device\":null,\"transport\":\"verbs\",\"scenarios\":[],"
                                + "\"error\":\"no\\ndevice\"}");
    }

    @Test
    void tableLinesUp() {
        String[] lines = report(new DemoMessage.Verdict(8192, 0, null)).table().split("\n", -1);

        assertThat(lines[0])
                .isEqualTo(
                        "category                items  blocks  work requests  merged        bytes"
                                + "   GB/s  verified");
        assertThat(lines[1])
                .isEqualTo(
                        "1 KV cache, all layers  8,192   4,000          2,000     4.1  268,435,456"
                                + "  0.032  yes");
    }

    @Test
    void tableNamesTheFirstWrongItem() {
        assertThat(report(new DemoMessage.Verdict(8192, 3, WRONG)).table())
                .contains("  NO: layer 16, V, page 64\n")
                .contains("3 wrong items, the first layer 16, V, page 64: byte \"5\"\n");
    }

    @Test
    void goodOnlyIfAllIsVerified() {
        assertThat(report(new DemoMessage.Verdict(8192, 0, null)).isGood()).isTrue();
        assertThat(report(new DemoMessage.Verdict(8192, 1, WRONG)).isGood()).isFalse();
        assertThat(new Report("rxe0", "verbs", List.of(), "lost").isGood()).isFalse();
    }

    @Test
    void quotesWhatJsonCannotHold() {
        assertThat(Json.quote("a\"b\\c\td\u00e9\ud83d\ude00"))
                .isEqualTo("\"a\\\"b\\\\c\\u0009d\u00e9\\ud83d\\ude00\"");
    }

    private static Report report(DemoMessage.Verdict verdict) {
        ScenarioResult result =
                new ScenarioResult(
                        "llama-8b",
                        1,
                        "KV cache, all layers",
                        8192,
                        4000,
                        2000,
                        268_435_456,
                        8.5,
                        verdict,
                        null);
        return new Report("rxe0", "verbs", List.of(result), null);
    }
}
