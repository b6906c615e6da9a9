package dev.verbena.bindings;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.bindings.ibverbs.ibv_cq_ex;
import dev.verbena.bindings.ibverbs.ibv_qp_ex;
import dev.verbena.bindings.testing.DriverDouble;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Each {@code ibv_wr_*} and each polling function calls the member of its name in the object's own
 * table, with its arguments in order and its result passed on. All members are set to different
 * functions, so a mix-up cannot pass.
 */
class FunctionTablesTest {
    private final DriverDouble driver = new DriverDouble();
    private final List<String> calls = new ArrayList<>();

    @AfterEach
    void close() {
        driver.close();
    }

    @Test
    void workRequestVerbsCallTheTableOfTheQueuePair() throws Exception {
        MemorySegment qp = driver.newQpEx();

        int checked = 0;
        for (Method method : WorkRequestVerbs.class.getDeclaredMethods()) {
            if (method.getName().startsWith("ibv_wr_")) {
                String member = method.getName().substring("ibv_".length());
                setEntry(ibv_qp_ex.class, ibv_qp_ex.layout(), qp, member);
                check(method, member, qp);
                checked++;
            }
        }
        assertThat(checked).isEqualTo(21);
    }

    @Test
    void pollingCallsTheTableOfTheCompletionQueue() throws Exception {
        MemorySegment cq = driver.newCqEx();

        int checked = 0;
        for (Method method : ExtendedPolling.class.getDeclaredMethods()) {
            String name = method.getName();
            if (name.matches("ibv_(start|next|end)_poll|ibv_wc_read_.*")) {
                String member = name.replaceFirst("ibv_(wc_)?", "");
                if (member.equals("read_invalidated_rkey")) {
                    member = "read_imm_data";
                }
                setEntry(ibv_cq_ex.class, ibv_cq_ex.layout(), cq, member);
                check(method, member, cq);
                checked++;
            }
        }
        assertThat(checked).isEqualTo(19);
    }

    @Test
    void aNegativeStatusIsMadePositive() throws Exception {
        MemorySegment qp = driver.newQpEx();
        ibv_qp_ex.wr_complete(
                qp, ibv_qp_ex.wr_complete.allocate(queue -> -Errno.ENOMEM, driver.arena()));
        MemorySegment cq = driver.newCqEx();
        ibv_cq_ex.start_poll(
                cq, ibv_cq_ex.start_poll.allocate((queue, attr) -> Errno.ENOENT, driver.arena()));

        assertThat(WorkRequestVerbs.ibv_wr_complete(qp)).isEqualTo(Errno.ENOMEM);
        assertThat(ExtendedPolling.ibv_start_poll(cq, MemorySegment.NULL)).isEqualTo(Errno.ENOENT);
    }

    private void check(Method method, String member, MemorySegment object)
            throws ReflectiveOperationException {
        Class<?>[] types = method.getParameterTypes();
        Object[] arguments = new Object[types.length];
        StringBuilder expected = new StringBuilder(member);
        for (int i = 0; i < types.length; i++) {
            arguments[i] = i == 0 ? object : argument(types[i], i);
            expected.append(' ').append(text(arguments[i]));
        }
        calls.clear();

        Object returned = method.invoke(null, arguments);

        assertThat(calls).as(method.getName()).containsExactly(expected.toString());
        if (method.getReturnType() != void.class) {
            assertThat(((Number) returned).longValue()).as(method.getName()).isEqualTo(9);
        }
    }

    private Object argument(Class<?> type, int index) {
        if (type == MemorySegment.class) {
            return driver.arena().allocate(8 + index);
        }
        if (type == long.class) {
            return 1_000L + index;
        }
        return type == int.class ? (Object) (100 + index) : (Object) (short) (10 + index);
    }

    private static Object text(Object argument) {
        return argument instanceof MemorySegment segment ? (Object) segment.address() : argument;
    }

    private void setEntry(Class<?> struct, GroupLayout layout, MemorySegment object, String member)
            throws ReflectiveOperationException {
        FunctionDescriptor descriptor =
                (FunctionDescriptor)
                        Class.forName(struct.getName() + "$" + member)
                                .getMethod("descriptor")
                                .invoke(null);
        MethodHandle target =
                MethodHandles.lookup()
                        .bind(
                                this,
                                "record",
                                MethodType.methodType(Number.class, String.class, Object[].class))
                        .bindTo(member)
                        .asCollector(Object[].class, descriptor.argumentLayouts().size());
        object.set(
                ValueLayout.ADDRESS,
                layout.byteOffset(PathElement.groupElement(member)),
                Linker.nativeLinker()
                        .upcallStub(
                                returning(target, descriptor.toMethodType()),
                                descriptor,
                                driver.arena()));
    }

    /** Fits the recorded Number, or nothing, to what the C function returns. */
    private static MethodHandle returning(MethodHandle target, MethodType type)
            throws ReflectiveOperationException {
        Class<?> result = type.returnType();
        if (result == void.class) {
            return target.asType(type);
        }
        MethodHandle convert =
                MethodHandles.lookup()
                        .findVirtual(Number.class, result + "Value", MethodType.methodType(result));
        return MethodHandles.filterReturnValue(target, convert).asType(type);
    }

    @SuppressWarnings("unused") // by method handle
    private Number record(String member, Object... arguments) {
        StringBuilder text = new StringBuilder(member);
        for (Object argument : arguments) {
            text.append(' ').append(text(argument));
        }
        calls.add(text.toString());
        return 9;
    }
}
