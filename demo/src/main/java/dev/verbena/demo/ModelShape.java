package dev.verbena.demo;

import dev.verbena.kv.KvLayout;
import java.util.Arrays;
import java.util.List;

/** Cache shapes of real models, from their published configurations; all values are bf16. */
enum ModelShape {
    /**
     * Grouped-query attention: K and V of 8 heads of 128 values, 128 KiB a token over all layers.
     */
    LLAMA_3_1_8B("llama-3.1-8b", "32 layers, 8 KV heads of 128 values, bf16"),
    /** Latent attention: one latent of 512 + 64 values a layer, the same on every rank. */
    DEEPSEEK_V3("deepseek-v3", "61 layers, one latent of 576 values, bf16");

    private static final int BF16_BYTES = 2;

    private final String title;
    private final String description;

    ModelShape(String title, String description) {
        this.title = title;
        this.description = description;
    }

    /** The model's name, as an option and in reports. */
    String title() {
        return title;
    }

    String description() {
        return description;
    }

    /** The cache's layout with pages of so many tokens. */
    KvLayout layout(int pageTokens) {
        return switch (this) {
            case LLAMA_3_1_8B -> new KvLayout.Heads(32, 8, 128, BF16_BYTES, pageTokens);
            case DEEPSEEK_V3 -> new KvLayout.Latent(61, 512 + 64, BF16_BYTES, pageTokens);
        };
    }

    /**
     * Finds a model by its name.
     *
     * @throws IllegalArgumentException if there is none; the message lists those there are
     */
    static ModelShape of(String title) {
        return Arrays.stream(values())
                .filter(shape -> shape.title.equals(title))
                .findFirst()
                .orElseThrow(() ->
                        new IllegalArgumentException(
                                "'%s' is none of %s".formatted(title, titles())));
    }

    static List<String> titles() {
        return Arrays.stream(values()).map(ModelShape::title).toList();
    }

    /** One pool in words: its layer and, with heads, whether it holds K or V. */
    static String poolName(KvLayout layout, int pool) {
        int layer = pool % layout.layers();
        String kind =
                switch (layout) {
                    case KvLayout.Heads heads -> pool < heads.layers() ? "K" : "V";
                    case KvLayout.Latent _ -> "latent";
                };
        return "layer " + layer + ", " + kind;
    }
}
