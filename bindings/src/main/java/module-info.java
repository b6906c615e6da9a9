/**
 * libibverbs through {@code java.lang.foreign}: structs and constants generated from its header,
 * the exported functions with their {@code errno}, and in Java the functions that C inlines.
 *
 * <p>The module needs native access: {@code --enable-native-access=dev.verbena.bindings}.
 */
@org.jspecify.annotations.NullMarked
module dev.verbena.bindings {
    requires static org.jspecify;

    exports dev.verbena.bindings;
    exports dev.verbena.bindings.ibverbs;
}
