/**
 * The runnable main: a prefill and a decode process that move a model's KV cache and check every
 * byte of it.
 */
@org.jspecify.annotations.NullMarked
module dev.verbena.demo {
    requires dev.verbena.core;
    requires info.picocli;
    requires static org.jspecify;

    // The command line sets the fields of the commands by reflection.
    opens dev.verbena.demo to
            info.picocli;
}
