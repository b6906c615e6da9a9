package dev.verbena.bindings;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;

/** The exported functions that {@link VerbsCalls} calls, for tests that go through all of them. */
final class NativeCalls {
    private NativeCalls() {}

    static List<NativeCall> all() {
        List<NativeCall> calls = new ArrayList<>();
        for (Field field : VerbsCalls.class.getDeclaredFields()) {
            if (field.getType() == NativeCall.class) {
                try {
                    field.setAccessible(true);
                    calls.add((NativeCall) field.get(null));
                } catch (IllegalAccessException impossible) {
                    throw new LinkageError("a field made accessible", impossible);
                }
            }
        }
        return calls;
    }
}
