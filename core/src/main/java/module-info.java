/**
 * Verbs objects, registered memory, batch transfers, and KV cache planners and requests.
 *
 * <p>Imports go one way: {@code kv} uses {@code transfer}, which uses {@code memory}, which uses
 * {@code verbs}, which uses the bindings; {@code tcp}, which is not exported, is the transport
 * without a device, below {@code transfer}. Each package can be used without the ones above it.
 */
@org.jspecify.annotations.NullMarked
module dev.verbena.core {
    requires transitive dev.verbena.bindings;
    requires static org.jspecify;

    exports dev.verbena.verbs;
    exports dev.verbena.memory;
    exports dev.verbena.transfer;
    exports dev.verbena.kv;
}
