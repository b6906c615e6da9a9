package dev.verbena.bindings;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.bindings.ibverbs.ibv_cq_ex;
import dev.verbena.bindings.ibverbs.ibv_device_attr_ex;
import dev.verbena.bindings.ibverbs.ibv_dm;
import dev.verbena.bindings.ibverbs.ibv_qp;
import dev.verbena.bindings.ibverbs.ibv_qp_init_attr_ex;
import dev.verbena.bindings.ibverbs.ibv_query_device_ex_input;
import dev.verbena.bindings.ibverbs.ibv_rwq_ind_table;
import dev.verbena.bindings.ibverbs.ibv_srq_init_attr_ex;
import dev.verbena.bindings.ibverbs.ibv_wq;
import dev.verbena.bindings.ibverbs.ibv_wq_init_attr;
import dev.verbena.bindings.ibverbs.ibverbs_constants;
import dev.verbena.bindings.ibverbs.verbs_context;
import dev.verbena.bindings.testing.DriverDouble;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * The extended context is used only as far as it reaches: without its mark, too short for an entry,
 * or with the entry unset, each function fails with EOPNOTSUPP; otherwise it calls the entry of its
 * name, all arguments in place.
 */
class ExtendedVerbsTest {
    /** Methods whose entry has another name than they, and those that have none. */
    private static final Map<String, String> ENTRIES =
            Map.of("ibv_query_rt_values_ex", "query_rt_values");

    private static final List<String> WITHOUT_ENTRY =
            List.of("ibv_memcpy_to_dm", "ibv_memcpy_from_dm");

    private final DriverDouble driver = new DriverDouble();
    private final Arena arena = driver.arena();
    private final MemorySegment result = arena.allocate(1024, 8);
    private final List<String> calls = new ArrayList<>();

    @AfterEach
    void close() {
        driver.close();
    }

    private static Map<Method, String> entries() {
        Map<Method, String> entries = new LinkedHashMap<>();
        for (Method method : ExtendedVerbs.class.getDeclaredMethods()) {
            String name = method.getName();
            if (name.startsWith("ibv_") && !WITHOUT_ENTRY.contains(name)) {
                entries.put(method, ENTRIES.getOrDefault(name, name.substring(4)));
            }
        }
        return entries;
    }

    private static long offset(String entry) {
        return verbs_context.layout().byteOffset(PathElement.groupElement(entry));
    }

    /**
     * Every object is memory that starts with a pointer to the context and is else zero, or the
     * context itself where the parameter is one. Numbers are distinct.
     */
    private Object[] arguments(Method method) {
        Class<?>[] types = method.getParameterTypes();
        Object[] arguments = new Object[types.length];
        boolean onContext = takesContext(method);
        for (int i = 0; i < types.length; i++) {
            if (types[i] == MemorySegment.class) {
                MemorySegment object = arena.allocate(512, 8);
                if (i == 0) {
                    object.set(ValueLayout.ADDRESS, 0, driver.context());
                }
                arguments[i] = i == 0 && onContext ? driver.context() : object;
            } else {
                arguments[i] = types[i] == int.class ? (Object) (40 + i) : (Object) (50L + i);
            }
        }
        return arguments;
    }

    private static boolean takesContext(Method method) {
        return method.getName().matches("ibv_(create|open|query|alloc_(td|dm|parent)).*");
    }

    private Object failed(Method method) throws ReflectiveOperationException {
        ThreadState.errno(0);
        Object returned = method.invoke(null, arguments(method));
        if (returned instanceof MemorySegment pointer) {
            assertThat(pointer).as(method.getName()).isEqualTo(MemorySegment.NULL);
            return VerbsCalls.errno();
        }
        return returned;
    }

    private void allFail(String why) throws ReflectiveOperationException {
        Map<Method, String> entries = entries();
        assertThat(entries).hasSize(29);
        for (Method method : entries.keySet()) {
            if (!method.getName().equals("ibv_query_device_ex")) { // which has a fallback
                assertThat(failed(method))
                        .as("%s, %s", method.getName(), why)
                        .isEqualTo(Errno.EOPNOTSUPP);
            }
        }
    }

    @Test
    void aClassicContextHasNone() throws Exception {
        setAllEntries();

        allFail("a context without the mark");
    }

    @Test
    void anExtendedContextMayLeaveAllUnset() throws Exception {
        driver.extend(verbs_context.sizeof());

        allFail("entries that are NULL");
    }

    @Test
    void anOlderContextIsTooShortForNewerEntries() throws Exception {
        setAllEntries();
        for (Map.Entry<Method, String> entry : entries().entrySet()) {
            long needed = verbs_context.sizeof() - offset(entry.getValue());
            String name = entry.getKey().getName();
            if (!name.equals("ibv_query_device_ex")) {
                driver.extend(needed - 1);
                assertThat(failed(entry.getKey())).as(name).isEqualTo(Errno.EOPNOTSUPP);
            }
            driver.extend(needed);
            calls.clear();
            Object _ = entry.getKey().invoke(null, arguments(entry.getKey()));
            assertThat(calls).as(name).hasSize(1);
        }
    }

    @Test
    void eachFunctionCallsTheEntryOfItsNameWithItsArgumentsInOrder() throws Exception {
        setAllEntries();
        driver.extend(verbs_context.sizeof());

        for (Map.Entry<Method, String> entry : entries().entrySet()) {
            calls.clear();
            Object[] arguments = arguments(entry.getKey());
            Object returned = entry.getKey().invoke(null, arguments);

            assertThat(calls).hasSize(1);
            assertThat(calls.get(0)).startsWith(call(entry.getValue(), arguments));
            if (returned instanceof MemorySegment pointer) {
                assertThat(pointer.address()).isEqualTo(result.address());
                assertThat(pointer.byteSize()).isPositive();
            } else {
                assertThat(returned).isEqualTo(7);
            }
        }
    }

    private static String call(String name, Object... arguments) {
        StringBuilder text = new StringBuilder(name);
        for (Object argument : arguments) {
            text.append(' ');
            text.append(argument instanceof MemorySegment segment ? segment.address() : argument);
        }
        return text.toString();
    }

    /** Points each entry at a function that records its arguments; it returns 7 or memory. */
    private void setAllEntries() throws ReflectiveOperationException {
        MethodHandle record =
                MethodHandles.lookup()
                        .bind(
                                this,
                                "record",
                                MethodType.methodType(Object.class, String.class, Object[].class));
        for (String entry : entries().values()) {
            FunctionDescriptor descriptor =
                    (FunctionDescriptor)
                            Class.forName(verbs_context.class.getName() + "$" + entry)
                                    .getMethod("descriptor")
                                    .invoke(null);
            MethodHandle target =
                    record.bindTo(entry)
                            .asCollector(Object[].class, descriptor.argumentLayouts().size())
                            .asType(descriptor.toMethodType());
            driver.extendedContext()
                    .set(
                            ValueLayout.ADDRESS,
                            offset(entry),
                            Linker.nativeLinker().upcallStub(target, descriptor, arena));
        }
    }

    @SuppressWarnings("unused") // by method handle
    private Object record(String entry, Object... arguments) {
        calls.add(call(entry, arguments));
        return entry.matches("(create|open|alloc|reg)_.*") ? result : (Object) 7;
    }

    // --- What single functions do beyond that ----------------------------------------------------

    @Test
    void createQpExTakesTheEntryAsSoonAsMoreThanADomainIsAskedFor() {
        driver.extend(verbs_context.sizeof());
        MemorySegment qp = driver.newQp();
        verbs_context.create_qp_ex(
                driver.extendedContext(),
                verbs_context.create_qp_ex.allocate((context, attr) -> qp, arena));
        MemorySegment attr = ibv_qp_init_attr_ex.allocate(arena);
        ibv_qp_init_attr_ex.comp_mask(
                attr,
                ibverbs_constants.IBV_QP_INIT_ATTR_PD()
                        | ibverbs_constants.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS());

        MemorySegment made = ExtendedVerbs.ibv_create_qp_ex(driver.context(), attr);

        assertThat(made.address()).isEqualTo(qp.address());
        assertThat(made.byteSize()).isEqualTo(ibv_qp.sizeof());
    }

    @Test
    void createSrqExTakesTheEntryForOtherTypes() {
        driver.extend(verbs_context.sizeof());
        MemorySegment srq = driver.newSrq();
        verbs_context.create_srq_ex(
                driver.extendedContext(),
                verbs_context.create_srq_ex.allocate((context, attr) -> srq, arena));
        MemorySegment attr = ibv_srq_init_attr_ex.allocate(arena);
        ibv_srq_init_attr_ex.comp_mask(
                attr,
                ibverbs_constants.IBV_SRQ_INIT_ATTR_PD()
                        | ibverbs_constants.IBV_SRQ_INIT_ATTR_TYPE());
        ibv_srq_init_attr_ex.srq_type(attr, ibverbs_constants.IBV_SRQT_XRC());

        assertThat(ExtendedVerbs.ibv_create_srq_ex(driver.context(), attr).address())
                .isEqualTo(srq.address());
    }

    @Test
    void createWqResetsWhatTheProviderLeavesToTheCaller() {
        driver.extend(verbs_context.sizeof());
        MemorySegment wq = arena.allocate(ibv_wq.layout());
        wq.fill((byte) 0x55);
        verbs_context.create_wq(
                driver.extendedContext(),
                verbs_context.create_wq.allocate((context, attr) -> wq, arena));
        MemorySegment attr = ibv_wq_init_attr.allocate(arena);
        ibv_wq_init_attr.wq_context(attr, MemorySegment.ofAddress(0x1234));

        MemorySegment made = ExtendedVerbs.ibv_create_wq(driver.context(), attr);

        assertThat(ibv_wq.wq_context(made).address()).isEqualTo(0x1234);
        assertThat(ibv_wq.events_completed(made)).isZero();
        assertThat(ibv_wq.mutex(made).toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
        assertThat(ibv_wq.cond(made).toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
        assertThat(ibv_wq.wq_num(made)).as("the rest is untouched").isEqualTo(0x55555555);
    }

    @Test
    void aNullFromTheEntryLeavesItsErrno() {
        driver.extend(verbs_context.sizeof());
        verbs_context.create_rwq_ind_table(
                driver.extendedContext(),
                verbs_context.create_rwq_ind_table.allocate(
                        (context, attr) -> MemorySegment.NULL, arena));

        assertThat(
                        ExtendedVerbs.ibv_create_rwq_ind_table(
                                driver.context(), ibv_rwq_ind_table.allocate(arena)))
                .isEqualTo(MemorySegment.NULL);
    }

    @Test
    void queryDeviceExRefusesInputBits() {
        MemorySegment input = ibv_query_device_ex_input.allocate(arena);
        ibv_query_device_ex_input.comp_mask(input, 1);

        assertThat(
                        ExtendedVerbs.ibv_query_device_ex(
                                driver.context(), input, ibv_device_attr_ex.allocate(arena)))
                .isEqualTo(Errno.EINVAL);
    }

    @Test
    void queryDeviceExPassesTheSizeOfTheStruct() {
        driver.extend(verbs_context.sizeof());
        verbs_context.query_device_ex(
                driver.extendedContext(),
                verbs_context.query_device_ex.allocate(
                        (context, input, attr, sizeBytes) -> {
                            ibv_device_attr_ex.max_dm_size(attr, sizeBytes);
                            return 0;
                        },
                        arena));
        MemorySegment attr = ibv_device_attr_ex.allocate(arena);

        assertThat(ExtendedVerbs.ibv_query_device_ex(driver.context(), MemorySegment.NULL, attr))
                .isZero();

        assertThat(ibv_device_attr_ex.max_dm_size(attr)).isEqualTo(400);
    }

    @Test
    void postSrqOpsBlamesTheFirstRequestWhereThereIsNoEntry() {
        MemorySegment op = arena.allocate(64, 8);
        MemorySegment badOp = arena.allocate(ValueLayout.ADDRESS);

        assertThat(ExtendedVerbs.ibv_post_srq_ops(driver.newSrq(), op, badOp))
                .isEqualTo(Errno.EOPNOTSUPP);

        assertThat(badOp.get(ValueLayout.ADDRESS, 0).address()).isEqualTo(op.address());
    }

    @Test
    void deviceMemoryIsCopiedByTheFunctionsOfItsStruct() {
        MemorySegment host = arena.allocate(16);
        MemorySegment dm = ibv_dm.allocate(arena);
        ibv_dm.memcpy_to_dm(
                dm,
                ibv_dm.memcpy_to_dm.allocate(
                        (memory, offset, from, length) ->
                                offset == 8 && from.address() == host.address() ? 0 : 1,
                        arena));
        ibv_dm.memcpy_from_dm(
                dm,
                ibv_dm.memcpy_from_dm.allocate(
                        (to, memory, offset, length) ->
                                length == 16 && memory.address() == dm.address() ? -5 : 0,
                        arena));

        assertThat(ExtendedVerbs.ibv_memcpy_to_dm(dm, 8, host, 16)).isZero();
        assertThat(ExtendedVerbs.ibv_memcpy_from_dm(host, dm, 8, 16)).isEqualTo(Errno.EIO);
    }

    @Test
    void theClassicViewOfAnExtendedQueueIsTheSamePointer() {
        MemorySegment cq = driver.newCqEx();

        assertThat(ExtendedPolling.ibv_cq_ex_to_cq(cq).address()).isEqualTo(cq.address());
        assertThat(cq.byteSize()).isEqualTo(ibv_cq_ex.sizeof());
    }
}
