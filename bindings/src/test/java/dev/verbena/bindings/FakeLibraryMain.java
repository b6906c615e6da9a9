package dev.verbena.bindings;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Calls every method of {@link VerbsCalls} on a {@link FakeLibrary}, for some results and values of
 * errno, and prints what came back: {@code name result errno | returned errno()}.
 */
final class FakeLibraryMain {
    static final long[][] CASES = {{0, 0}, {22, 0}, {-1, 12}, {-19, 0}};

    private FakeLibraryMain() {}

    public static void main(String[] args) throws Throwable {
        System.out.println("version " + VerbsLibrary.version());
        MethodHandle set =
                Linker.nativeLinker()
                        .downcallHandle(
                                VerbsLibrary.symbol("fake_set"),
                                FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_INT));
        Set<String> names =
                NativeCalls.all().stream().map(NativeCall::name).collect(Collectors.toSet());
        for (Method method : VerbsCalls.class.getMethods()) {
            if (!names.contains(method.getName())) {
                continue;
            }
            for (long[] one : CASES) {
                set.invokeExact(one[0], (int) one[1]);
                System.out.println(
                        method.getName() + " " + one[0] + " " + one[1] + " | " + call(method));
            }
        }
    }

    private static String call(Method method) throws IllegalAccessException {
        Class<?>[] types = method.getParameterTypes();
        Object[] arguments = new Object[types.length];
        try (Arena arena = Arena.ofConfined()) {
            for (int i = 0; i < types.length; i++) {
                arguments[i] = argument(types[i], arena);
            }
            Object returned = method.invoke(null, arguments);
            if (returned instanceof MemorySegment segment) {
                returned = segment.equals(MemorySegment.NULL) ? "NULL" : segment.byteSize();
            }
            return returned + " " + VerbsCalls.errno();
        } catch (InvocationTargetException thrown) {
            return String.valueOf(thrown.getCause());
        }
    }

    private static Object argument(Class<?> type, Arena arena) {
        if (type == MemorySegment.class) {
            return arena.allocate(64, 8);
        }
        if (type == long.class) {
            return 8L;
        }
        if (type == int.class) {
            return 4;
        }
        return type == short.class ? (Object) (short) 2 : (Object) (byte) 1;
    }
}
