package dev.verbena.demo;

import java.util.List;

/**
 * One way to move a cache: a category of transfer, with the shape of a model that is moved so.
 *
 * @param name for the command line and for machines
 * @param category number of the category that the scenario is about
 * @param title the category in words
 * @param model whose cache it is
 * @param prefillTp ranks of the prefill side
 * @param decodeTp ranks of the decode side
 * @param way how the KV is moved, where there is a choice
 * @param tokens of the prompt at scale 1
 */
record Scenario(
        String name,
        int category,
        String title,
        ModelShape model,
        int prefillTp,
        int decodeTp,
        Way way,
        int tokens) {

    /** Tokens of one page, as most engines have it by default. */
    static final int PAGE_TOKENS = 16;

    /** The longest context that the models here are published with. */
    static final int MAX_TOKENS = 128 << 10;

    /** How the KV is moved. */
    enum Way {
        /** As the caches have it. */
        PLAIN,
        /** A batch for each layer. */
        LAYERS,
        /** To a decode side whose pages hold one token. */
        TOKENS,
        /** Through staging areas. */
        STAGED
    }

    /** The main job. */
    static final Scenario MAIN =
            new Scenario(
                    "llama-8b",
                    1,
                    "KV cache, all layers",
                    ModelShape.LLAMA_3_1_8B,
                    1,
                    1,
                    Way.PLAIN,
                    2048);

    /** One of every category; auxiliary data, category 6, goes with all of them. */
    static final List<Scenario> ALL =
            List.of(
                    MAIN,
                    of(
                            "llama-8b-layers",
                            2,
                            "KV cache by layer",
                            ModelShape.LLAMA_3_1_8B,
                            Way.LAYERS),
                    of("deepseek-v3", 1, "KV cache, latents", ModelShape.DEEPSEEK_V3, Way.PLAIN),
                    of("deepseek-v3-hisparse", 3, "HiSparse", ModelShape.DEEPSEEK_V3, Way.TOKENS),
                    of("gpt-oss-20b", 4, "sliding window state", ModelShape.GPT_OSS_20B, Way.PLAIN),
                    of("qwen3-next", 7, "Mamba state, whole", ModelShape.QWEN3_NEXT_80B, Way.PLAIN),
                    tp("qwen3-next-2-1", 8, "Mamba state, sliced", ModelShape.QWEN3_NEXT_80B, 2, 1),
                    tp("qwen3-next-1-2", 8, "Mamba state, sliced", ModelShape.QWEN3_NEXT_80B, 1, 2),
                    tp("llama-8b-2-1-heads", 9, "head slice", ModelShape.LLAMA_3_1_8B, 2, 1),
                    tp("llama-8b-1-2-heads", 9, "head slice", ModelShape.LLAMA_3_1_8B, 1, 2),
                    staged("llama-8b-2-1-staged", 2, 1),
                    staged("llama-8b-1-2-staged", 1, 2));

    private static Scenario of(String name, int category, String title, ModelShape model, Way way) {
        // At scale 1/8 too these are not whole pages: the last one is partly filled.
        return new Scenario(name, category, title, model, 1, 1, way, 2040);
    }

    private static Scenario tp(
            String name, int category, String title, ModelShape model, int prefill, int decode) {
        return new Scenario(name, category, title, model, prefill, decode, Way.PLAIN, 1024);
    }

    private static Scenario staged(String name, int prefill, int decode) {
        return new Scenario(
                name, 5, "staged bulk", ModelShape.LLAMA_3_1_8B, prefill, decode, Way.STAGED, 1024);
    }

    /**
     * Finds a scenario by its name.
     *
     * @throws IllegalArgumentException if there is none; the message lists those there are
     */
    static Scenario named(String name) {
        return ALL.stream()
                .filter(scenario -> scenario.name.equals(name))
                .findFirst()
                .orElseThrow(() ->
                        new IllegalArgumentException(
                                "'%s' is none of %s".formatted(name, names())));
    }

    static List<String> names() {
        return ALL.stream().map(Scenario::name).toList();
    }

    /** The scenario with a prompt of so many tokens. */
    Scenario withTokens(int count) {
        return new Scenario(name, category, title, model, prefillTp, decodeTp, way, count);
    }

    /** The scenario that moves a model's whole cache between sides of one rank each. */
    static Scenario mainOf(ModelShape model) {
        return ALL.stream()
                .filter(scenario -> scenario.model == model && scenario.way == Way.PLAIN)
                .findFirst()
                .orElseThrow();
    }

    /** The scenario with a shorter or longer prompt. */
    Scenario scaled(double scale) {
        return withTokens(Math.clamp(Math.round(tokens * scale), 1, MAX_TOKENS));
    }
}
