package dev.verbena.demo;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

/** What the command line refuses, it refuses with status 2 and words that name the option. */
class VerbenaDemoTest {
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "--transport pigeon         | 'pigeon' is not verbs, tcp or auto",
                "--model gpt-2              | 'gpt-2' is none of [llama-3.1-8b, deepseek-v3",
                "--scenario kv              | 'kv' is none of [llama-8b, llama-8b-layers",
                "--scale 0                  | '0' is not a number from 0 to 64",
                "--scale much               | 'much' is not a number from 0 to 64",
                "--tokens 0                 | '0' is not a number from 1 to 131072",
                "--tokens many              | 'many' is not a number from 1 to 131072",
                "--progress loud            | 'loud' is not auto, bar, lines or none",
                "--nonsense                 | Unknown option: '--nonsense'",
                "prefill                    | Missing required option: '--connect=HOST:PORT'",
                "prefill --connect 7471     | '7471' is not of the form HOST:PORT",
                "prefill --connect ::x      | 'x' is not a port",
                "decode --listen 0.0.0.0:1  | say --unencrypted if that is meant",
            })
    void refuses(String arguments, String words) {
        assertThat(execute(arguments.split(" ", -1))).isEqualTo(CommandLine.ExitCode.USAGE);
        assertThat(err.toString()).contains(words);
        assertThat(out.toString()).isEmpty();
    }

    @Test
    void helpListsOptionsAndCommands() {
        assertThat(execute("--help")).isZero();
        assertThat(out.toString())
                .contains("--model", "--tokens", "--json", "--transport", "--device")
                .contains("decode", "prefill")
                .doesNotContain("--corrupt-one-byte", "--print-memory");
    }

    private int execute(String... arguments) {
        return VerbenaDemo.commandLine()
                .setOut(new PrintWriter(out))
                .setErr(new PrintWriter(err))
                .execute(arguments);
    }
}
