package dev.verbena.demo;

import dev.verbena.kv.KvLayout;
import dev.verbena.kv.MambaTensor;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/** Cache shapes of real models, from their published configurations; all values are bf16. */
enum ModelShape {
    /**
     * Grouped-query attention: K and V of 8 heads of 128 values, 128 KiB a token over all layers.
     */
    LLAMA_3_1_8B("llama-3.1-8b", "32 layers, 8 KV heads of 128 values, bf16", 8),
    /** Latent attention: one latent of 512 + 64 values a layer, the same on every rank. */
    DEEPSEEK_V3("deepseek-v3", "61 layers, one latent of 576 values, bf16", 1),
    /** Every other layer sees a window of 128 tokens only: its pages are state. */
    GPT_OSS_20B("gpt-oss-20b", "24 layers, 12 of them sliding, 8 KV heads of 64 values, bf16", 8),
    /**
     * Every fourth layer has full attention, the others a gated delta net, whose state is fixed.
     */
    QWEN3_NEXT_80B(
            "qwen3-next-80b",
            "12 layers of 2 KV heads of 256 values, 36 gated delta nets, bf16",
            2);

    private static final int BF16_BYTES = 2;

    /** Tokens that a sliding layer sees. */
    static final int WINDOW_TOKENS = 128;

    private final String title;
    private final String description;
    private final int kvHeads;

    ModelShape(String title, String description, int kvHeads) {
        this.title = title;
        this.description = description;
        this.kvHeads = kvHeads;
    }

    /** The model's name, as an option and in reports. */
    String title() {
        return title;
    }

    String description() {
        return description;
    }

    /** KV heads of the whole model; 1 for latents, which every rank holds. */
    int kvHeads() {
        return kvHeads;
    }

    /** The cache's layout on a rank that holds so many heads, with pages of so many tokens. */
    KvLayout layout(int heads, int pageTokens) {
        return switch (this) {
            case LLAMA_3_1_8B -> new KvLayout.Heads(32, heads, 128, BF16_BYTES, pageTokens);
            case DEEPSEEK_V3 -> new KvLayout.Latent(61, 512 + 64, BF16_BYTES, pageTokens);
            case GPT_OSS_20B -> new KvLayout.Heads(12, heads, 64, BF16_BYTES, pageTokens);
            case QWEN3_NEXT_80B -> new KvLayout.Heads(12, heads, 256, BF16_BYTES, pageTokens);
        };
    }

    /** The layout of the sliding layers, if the model has any. */
    Optional<KvLayout> slidingLayout(int heads, int pageTokens) {
        return this == GPT_OSS_20B
                ? Optional.of(new KvLayout.Heads(12, heads, 64, BF16_BYTES, pageTokens))
                : Optional.empty();
    }

    /** One pool of a layout in words: its layer, and K or V where there are both. */
    static String poolName(KvLayout layout, int pool) {
        String kind = layout.poolsPerLayer() == 1 ? "latent" : pool < layout.layers() ? "K" : "V";
        return "layer %d, %s".formatted(pool % layout.layers(), kind);
    }

    /** A byte of a token of the whole model in words: its token and, where there are any, head. */
    String place(long token, long offset, long headBytes) {
        return kvHeads > 1
                ? "token %d, head %d, byte %d"
                        .formatted(token, offset / headBytes, offset % headBytes)
                : "token %d, byte %d".formatted(token, offset);
    }

    /** Layers with a gated delta net. */
    int deltaNetLayers() {
        return this == QWEN3_NEXT_80B ? 36 : 0;
    }

    /**
     * The convolution state of a gated delta net: three earlier values of each channel of q, k and
     * v, which are each divided among the ranks.
     */
    static MambaTensor convolution() {
        return MambaTensor.of(3 * BF16_BYTES, 16 * 128, 16 * 128, 32 * 128);
    }

    /** Its temporal state: a matrix of 128 x 128 for each value head. */
    static MambaTensor temporal() {
        return MambaTensor.of(128 * 128 * BF16_BYTES, 32);
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
}
