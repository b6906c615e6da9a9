package dev.verbena.bindings;

import static org.assertj.core.api.Assertions.assertThat;

import dev.verbena.bindings.ibverbs.ibv_context;
import dev.verbena.bindings.ibverbs.ibv_context_ops;
import dev.verbena.bindings.ibverbs.ibv_cq;
import dev.verbena.bindings.ibverbs.ibv_cq_ex;
import dev.verbena.bindings.ibverbs.ibv_device_attr;
import dev.verbena.bindings.ibverbs.ibv_device_attr_ex;
import dev.verbena.bindings.ibverbs.ibv_gid_entry;
import dev.verbena.bindings.ibverbs.ibv_mr;
import dev.verbena.bindings.ibverbs.ibv_mw;
import dev.verbena.bindings.ibverbs.ibv_port_attr;
import dev.verbena.bindings.ibverbs.ibv_qp;
import dev.verbena.bindings.ibverbs.ibv_qp_attr;
import dev.verbena.bindings.ibverbs.ibv_qp_ex;
import dev.verbena.bindings.ibverbs.ibv_qp_init_attr;
import dev.verbena.bindings.ibverbs.ibv_qp_init_attr_ex;
import dev.verbena.bindings.ibverbs.ibv_recv_wr;
import dev.verbena.bindings.ibverbs.ibv_send_wr;
import dev.verbena.bindings.ibverbs.ibv_sge;
import dev.verbena.bindings.ibverbs.ibv_wc;
import dev.verbena.bindings.ibverbs.ibverbs_constants;
import dev.verbena.bindings.ibverbs.verbs_context;
import java.io.IOException;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.PaddingLayout;
import java.lang.foreign.StructLayout;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Every struct, field and constant of the bindings is what the C compiler makes of the installed
 * header. The probe is C generated from the bindings, so nothing that they expose is left out.
 *
 * <p>The header may be of another version than the one that the bindings were made from. Then
 * structs may have grown, at their end or in the case of {@code verbs_context} at its front, and
 * everything else must still hold.
 */
class LayoutTest {
    /** Where a field lies: its offset and size in bytes. */
    private record Place(long offset, long size) {}

    @TempDir Path folder;

    @Test
    void everyStructAndFieldIsWhereCHasIt() throws Exception {
        CCompiler.assumeCompiler();
        CCompiler.assumeHeaderNotOlder();
        Map<String, Place> ours = fieldsOfTheBindings();
        StringBuilder probe = new StringBuilder();
        for (String path : ours.keySet()) {
            int dot = path.indexOf('.');
            if (dot < 0) {
                probe.append("printf(\"%s 0 %%zu\\n\", sizeof(%s));".formatted(path, type(path)));
            } else {
                String type = type(path.substring(0, dot));
                String field = path.substring(dot + 1);
                probe.append(
                        ("printf(\"%1$s %%zu %%zu\\n\", offsetof(%2$s, %3$s),"
                                        + " sizeof(((%2$s *) 0)->%3$s));")
                                .formatted(path, type, field));
            }
            probe.append('\n');
        }

        Map<String, Place> theirs = new HashMap<>();
        for (String line : runProbe(probe.toString())) {
            String[] parts = line.split(" ", -1);
            theirs.put(parts[0], new Place(Long.parseLong(parts[1]), Long.parseLong(parts[2])));
        }

        assertThat(ours.size()).isGreaterThan(700);
        assertThat(differences(ours, theirs)).isEmpty();
    }

    private static List<String> differences(Map<String, Place> ours, Map<String, Place> theirs)
            throws IOException, InterruptedException {
        boolean sameVersion = CCompiler.isHeaderOfTheBindings();
        Place ourExtended = Objects.requireNonNull(ours.get("verbs_context"));
        Place theirExtended = Objects.requireNonNull(theirs.get("verbs_context"));
        long growth = theirExtended.size() - ourExtended.size();
        List<String> differences = new ArrayList<>();
        ours.forEach((path, our) -> {
            Place their = theirs.get(path);
            long shift = path.startsWith("verbs_context.") ? growth : 0;
            boolean fits =
                    sameVersion
                            ? our.equals(their)
                            : their != null
                                    && their.size() >= our.size()
                                    && their.offset() == our.offset() + shift;
            if (!fits) {
                differences.add(path + ": the bindings have " + our + ", C has " + their);
            }
        });
        return differences;
    }

    @Test
    void everyConstantHasTheValueOfC() throws Exception {
        CCompiler.assumeCompiler();
        CCompiler.assumeHeaderNotOlder();
        Map<String, Long> ours = new LinkedHashMap<>();
        StringBuilder probe = new StringBuilder();
        for (Method method : ibverbs_constants.class.getDeclaredMethods()) {
            Object value = method.invoke(null);
            String name = method.getName();
            // What C has as 32 bits may be unsigned there, and is compared by its bits.
            String cast = value instanceof Integer ? "(int)" : "";
            ours.put(
                    name,
                    value instanceof MemorySegment pointer
                            ? pointer.address()
                            : ((Number) value).longValue());
            probe.append(
                    "printf(\"%1$s %%lld\\n\", (long long) %2$s (%1$s));\n".formatted(name, cast));
        }

        Map<String, Long> theirs = new HashMap<>();
        for (String line : runProbe(probe.toString())) {
            String[] parts = line.split(" ", -1);
            theirs.put(parts[0], Long.parseLong(parts[1]));
        }

        assertThat(ours.size()).isGreaterThan(400);
        boolean sameVersion = CCompiler.isHeaderOfTheBindings();
        ours.forEach((name, value) -> {
            // A newer header adds flags to the masks of all flags.
            boolean mask = name.endsWith("_SUPPORTED") || name.endsWith("_SUP_WC_FLAGS");
            if (sameVersion || !mask) {
                assertThat(theirs.get(name)).as(name).isEqualTo(value);
            }
        });
    }

    private static Map<String, Place> fieldsOfTheBindings() throws Exception {
        Map<String, Place> fields = new LinkedHashMap<>();
        for (Class<?> struct : Structs.all()) {
            GroupLayout layout = Structs.layout(struct);
            String name = struct.getSimpleName();
            fields.put(name, new Place(0, layout.byteSize()));
            addFields(fields, name, 0, layout);
        }
        return fields;
    }

    private static void addFields(
            Map<String, Place> fields, String path, long start, GroupLayout group) {
        long offset = 0;
        for (MemoryLayout member : group.memberLayouts()) {
            String name = member.name().orElse("");
            boolean anonymous = name.startsWith("$anon$");
            String memberPath = anonymous ? path : path + "." + name;
            if (!(member instanceof PaddingLayout)) {
                if (!anonymous) {
                    fields.put(memberPath, new Place(start + offset, member.byteSize()));
                }
                if (member instanceof GroupLayout inner) {
                    addFields(fields, memberPath, start + offset, inner);
                }
            }
            offset += group instanceof StructLayout ? member.byteSize() : 0;
        }
    }

    private static String type(String name) {
        if (name.endsWith("_t") || name.equals("__atomic_wide_counter")) {
            return name; // a typedef
        }
        return name.equals("ibv_gid") ? "union ibv_gid" : "struct " + name;
    }

    private List<String> runProbe(String statements) throws IOException, InterruptedException {
        Path program = folder.resolve("probe");
        CCompiler.compile(
                "#include <infiniband/verbs.h>\n#include <stdio.h>\nint main(void) {\n"
                        + statements
                        + "return 0;\n}\n",
                program);
        return CCompiler.run(List.of(program.toString())).lines().toList();
    }

    // --- Numbers by heart, for machines without a C compiler -------------------------------------

    @Test
    void structsOfTheDataPathAreOfTheKnownSizes() {
        assertThat(ibv_send_wr.sizeof()).isEqualTo(128);
        assertThat(ibv_recv_wr.sizeof()).isEqualTo(32);
        assertThat(ibv_sge.sizeof()).isEqualTo(16);
        assertThat(ibv_wc.sizeof()).isEqualTo(48);
        assertThat(ibv_send_wr.next$offset()).isEqualTo(8);
        assertThat(ibv_send_wr.sg_list$offset()).isEqualTo(16);
        assertThat(ibv_send_wr.num_sge$offset()).isEqualTo(24);
        assertThat(ibv_send_wr.opcode$offset()).isEqualTo(28);
        assertThat(ibv_send_wr.send_flags$offset()).isEqualTo(32);
        assertThat(ibv_send_wr.imm_data$offset()).isEqualTo(36);
        assertThat(ibv_send_wr.wr$offset()).isEqualTo(40);
        assertThat(ibv_send_wr.bind_mw$offset()).isEqualTo(80);
        assertThat(ibv_wc.status$offset()).isEqualTo(8);
        assertThat(ibv_wc.qp_num$offset()).isEqualTo(28);
        assertThat(ibv_wc.wc_flags$offset()).isEqualTo(36);
    }

    @Test
    void objectsAndAttributesAreOfTheKnownSizes() {
        assertThat(ibv_qp.sizeof()).isEqualTo(160);
        assertThat(ibv_qp.qp_num$offset()).isEqualTo(52);
        assertThat(ibv_qp_ex.sizeof()).isEqualTo(352);
        assertThat(ibv_cq.sizeof()).isEqualTo(128);
        assertThat(ibv_cq_ex.sizeof()).isEqualTo(288);
        assertThat(ibv_mr.sizeof()).isEqualTo(48);
        assertThat(ibv_mw.sizeof()).isEqualTo(32);
        assertThat(ibv_qp_attr.sizeof()).isEqualTo(144);
        assertThat(ibv_qp_init_attr.sizeof()).isEqualTo(64);
        assertThat(ibv_qp_init_attr_ex.sizeof()).isEqualTo(136);
        assertThat(ibv_port_attr.sizeof()).isEqualTo(52);
        assertThat(ibv_device_attr.sizeof()).isEqualTo(232);
        assertThat(ibv_device_attr_ex.sizeof()).isEqualTo(400);
        assertThat(ibv_gid_entry.sizeof()).isEqualTo(32);
    }

    @Test
    void functionsLieWhereProvidersPutThem() {
        long ops = ibv_context.ops$offset();
        assertThat(ibv_context.sizeof()).isEqualTo(328);
        assertThat(ops).isEqualTo(8);
        assertThat(ops + ibv_context_ops.alloc_mw$offset()).isEqualTo(64);
        assertThat(ops + ibv_context_ops.bind_mw$offset()).isEqualTo(72);
        assertThat(ops + ibv_context_ops.dealloc_mw$offset()).isEqualTo(80);
        assertThat(ops + ibv_context_ops.poll_cq$offset()).isEqualTo(96);
        assertThat(ops + ibv_context_ops.req_notify_cq$offset()).isEqualTo(104);
        assertThat(ops + ibv_context_ops.post_srq_recv$offset()).isEqualTo(168);
        assertThat(ops + ibv_context_ops.post_send$offset()).isEqualTo(208);
        assertThat(ops + ibv_context_ops.post_recv$offset()).isEqualTo(216);
        assertThat(ibv_context.abi_compat$offset()).isEqualTo(320);
    }

    @Test
    void theExtendedContextLiesAroundTheClassicOne() {
        assertThat(verbs_context.sizeof()).isEqualTo(648);
        assertThat(verbs_context.context$offset()).isEqualTo(320);
        assertThat(verbs_context.sz$offset()).isEqualTo(312);
        assertThat(verbs_context.query_port$offset()).isZero();
        assertThat(verbs_context.advise_mr$offset()).isEqualTo(8);
        assertThat(verbs_context.alloc_null_mr$offset()).isEqualTo(16);
        assertThat(verbs_context.reg_dm_mr$offset()).isEqualTo(56);
        assertThat(verbs_context.alloc_dm$offset()).isEqualTo(64);
        assertThat(verbs_context.alloc_parent_domain$offset()).isEqualTo(112);
        assertThat(verbs_context.dealloc_td$offset()).isEqualTo(120);
        assertThat(verbs_context.alloc_td$offset()).isEqualTo(128);
        assertThat(verbs_context.modify_cq$offset()).isEqualTo(136);
        assertThat(verbs_context.query_rt_values$offset()).isEqualTo(192);
        assertThat(verbs_context.create_cq_ex$offset()).isEqualTo(200);
        assertThat(verbs_context.query_device_ex$offset()).isEqualTo(216);
        assertThat(verbs_context.open_qp$offset()).isEqualTo(256);
        assertThat(verbs_context.create_qp_ex$offset()).isEqualTo(264);
        assertThat(verbs_context.get_srq_num$offset()).isEqualTo(272);
        assertThat(verbs_context.create_srq_ex$offset()).isEqualTo(280);
    }
}
