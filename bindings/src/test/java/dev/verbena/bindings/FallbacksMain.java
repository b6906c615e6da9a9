package dev.verbena.bindings;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.verbena.bindings.ibverbs.ibv_device_attr_ex;
import dev.verbena.bindings.ibverbs.ibv_gid_entry;
import dev.verbena.bindings.ibverbs.ibv_port_attr;
import dev.verbena.bindings.ibverbs.ibv_qp_init_attr_ex;
import dev.verbena.bindings.ibverbs.ibv_srq_init_attr_ex;
import dev.verbena.bindings.ibverbs.ibverbs_constants;
import dev.verbena.bindings.testing.DriverDouble;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Calls, on a {@link FakeLibrary} and a context that is not extended, the inline functions that end
 * in an exported one, and prints which it was, with its last argument.
 */
final class FallbacksMain {
    private FallbacksMain() {}

    public static void main(String[] args) throws Throwable {
        invoke("fake_set", FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_INT), 22L, 0);
        try (DriverDouble driver = new DriverDouble()) {
            MemorySegment context = driver.context();
            MemorySegment pd = driver.newPd();
            MemorySegment memory = driver.arena().allocate(64);

            MemorySegment port = driver.arena().allocate(ibv_port_attr.layout());
            port.fill((byte) 1);
            print("query_port", VerbsInline.ibv_query_port(context, (byte) 1, port));
            System.out.println("zeroed " + isZero(port));

            MemorySegment device = driver.arena().allocate(ibv_device_attr_ex.layout());
            device.fill((byte) 1);
            print(
                    "query_device_ex",
                    ExtendedVerbs.ibv_query_device_ex(context, MemorySegment.NULL, device));
            System.out.println("zeroed " + isZero(device));

            MemorySegment qpAttr = ibv_qp_init_attr_ex.allocate(driver.arena());
            ibv_qp_init_attr_ex.comp_mask(qpAttr, ibverbs_constants.IBV_QP_INIT_ATTR_PD());
            print("create_qp_ex", ExtendedVerbs.ibv_create_qp_ex(context, qpAttr).byteSize());

            MemorySegment srqAttr = ibv_srq_init_attr_ex.allocate(driver.arena());
            ibv_srq_init_attr_ex.comp_mask(srqAttr, ibverbs_constants.IBV_SRQ_INIT_ATTR_PD());
            print("create_srq_ex", ExtendedVerbs.ibv_create_srq_ex(context, srqAttr).byteSize());

            int write = ibverbs_constants.IBV_ACCESS_LOCAL_WRITE();
            int relaxed = write | ibverbs_constants.IBV_ACCESS_RELAXED_ORDERING();
            print("reg_mr", VerbsInline.ibv_reg_mr(pd, memory, 64, write).byteSize());
            print("reg_mr relaxed", VerbsInline.ibv_reg_mr(pd, memory, 64, relaxed).byteSize());
            print("iova", VerbsInline.ibv_reg_mr_iova(pd, memory, 64, 0, write).byteSize());
            print(
                    "iova relaxed",
                    VerbsInline.ibv_reg_mr_iova(pd, memory, 64, 0, relaxed).byteSize());

            MemorySegment gids = ibv_gid_entry.allocateArray(3, driver.arena());
            print("gid_ex", VerbsInline.ibv_query_gid_ex(context, 1, 0, gids, 0));
            print("gid_table", VerbsInline.ibv_query_gid_table(context, gids, 0));
        }
    }

    private static void print(String what, long result) throws Throwable {
        MemorySegment name =
                (MemorySegment)
                        invoke(
                                "fake_last_name",
                                FunctionDescriptor.of(
                                        ADDRESS.withTargetLayout(
                                                MemoryLayout.sequenceLayout(
                                                        64, ValueLayout.JAVA_BYTE))));
        Object argument = invoke("fake_last_argument", FunctionDescriptor.of(JAVA_LONG));
        System.out.println(
                what + " -> " + name.getString(0) + " returned " + result + " last " + argument);
    }

    private static Object invoke(String name, FunctionDescriptor descriptor, Object... arguments)
            throws Throwable {
        return Linker.nativeLinker()
                .downcallHandle(VerbsLibrary.symbol(name), descriptor)
                .invokeWithArguments(arguments);
    }

    private static boolean isZero(MemorySegment segment) {
        for (byte value : segment.toArray(ValueLayout.JAVA_BYTE)) {
            if (value != 0) {
                return false;
            }
        }
        return true;
    }
}
