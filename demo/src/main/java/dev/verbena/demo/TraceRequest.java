package dev.verbena.demo;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * One request of a trace, in the form that Mooncake publishes: a line of JSON with the length of
 * the prompt and a hash for each of its blocks of 512 tokens. Equal hashes are equal prefixes.
 *
 * @param inputTokens length of the prompt
 * @param hashes of its blocks, in order
 */
record TraceRequest(int inputTokens, List<Long> hashes) {
    /** Tokens that a hash stands for. */
    static final int BLOCK_TOKENS = 512;

    private static final Pattern LENGTH = Pattern.compile("\"input_length\"\\s*:\\s*(\\d+)");
    private static final Pattern HASHES = Pattern.compile("\"hash_ids\"\\s*:\\s*\\[([\\d,\\s]*)]");

    TraceRequest {
        hashes = List.copyOf(hashes);
        if (inputTokens < 1
                || inputTokens > Scenario.MAX_TOKENS
                || hashes.size() != Math.ceilDiv(inputTokens, BLOCK_TOKENS)) {
            throw new IllegalArgumentException(
                    "%d tokens, up to %d, are not %d blocks of %d"
                            .formatted(
                                    inputTokens, Scenario.MAX_TOKENS, hashes.size(), BLOCK_TOKENS));
        }
        if (new HashSet<>(hashes).size() != hashes.size()) {
            throw new IllegalArgumentException(
                    "a hash occurs twice in " + hashes + ", but each stands for all before it");
        }
    }

    /**
     * Reads a line.
     *
     * @throws IllegalArgumentException if it is none of a trace
     */
    static TraceRequest parse(String line) {
        Matcher length = LENGTH.matcher(line);
        Matcher hashes = HASHES.matcher(line);
        if (!length.find() || !hashes.find()) {
            throw new IllegalArgumentException("not a request of a trace: " + line);
        }
        List<Long> ids = new ArrayList<>();
        try {
            for (String id : hashes.group(1).split(",", -1)) {
                if (!id.isBlank()) {
                    ids.add(Long.valueOf(id.strip()));
                }
            }
            return new TraceRequest(Integer.parseInt(length.group(1)), ids);
        } catch (NumberFormatException tooLarge) {
            throw new IllegalArgumentException("a number is too large in: " + line, tooLarge);
        }
    }
}
