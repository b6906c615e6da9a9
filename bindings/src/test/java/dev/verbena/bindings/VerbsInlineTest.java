package dev.verbena.bindings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.verbena.bindings.ibverbs.ibv_context_ops;
import dev.verbena.bindings.ibverbs.ibv_mr;
import dev.verbena.bindings.ibverbs.ibv_mw;
import dev.verbena.bindings.ibverbs.ibv_mw_bind;
import dev.verbena.bindings.ibverbs.ibv_mw_bind_info;
import dev.verbena.bindings.ibverbs.ibv_port_attr;
import dev.verbena.bindings.ibverbs.ibv_recv_wr;
import dev.verbena.bindings.ibverbs.ibv_send_wr;
import dev.verbena.bindings.ibverbs.ibv_wc;
import dev.verbena.bindings.ibverbs.ibv_wq;
import dev.verbena.bindings.ibverbs.verbs_context;
import dev.verbena.bindings.testing.DriverDouble;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Every function that goes through the classic table reaches the right entry with the right
 * arguments, and its result follows the contract. The entries are distinct functions of a driver
 * double, so a wrong offset cannot pass.
 */
class VerbsInlineTest {
    private final DriverDouble driver = new DriverDouble();
    private final Arena arena = driver.arena();
    private final MemorySegment badWr = arena.allocate(ValueLayout.ADDRESS);
    private final List<String> calls = new ArrayList<>();

    @AfterEach
    void close() {
        driver.close();
    }

    private DriverDouble.Post recording(String name, int result) {
        return (queue, wr, bad) -> {
            calls.add(name + "(" + queue.address() + ", " + wr.address() + ")");
            bad.set(ValueLayout.ADDRESS, 0, wr);
            return result;
        };
    }

    private String call(String name, MemorySegment queue, MemorySegment wr) {
        return name + "(" + queue.address() + ", " + wr.address() + ")";
    }

    @Test
    void postSendReachesItsEntryInBothForms() {
        MemorySegment qp = driver.newQp();
        MemorySegment wr = ibv_send_wr.allocate(arena);
        driver.onPostSend(recording("send", 0));

        assertThat(VerbsInline.ibv_post_send(qp, wr, badWr)).isZero();
        assertThat(VerbsInline.ibv_post_send(qp.address(), wr.address(), badWr.address())).isZero();

        assertThat(calls).containsExactly(call("send", qp, wr), call("send", qp, wr));
    }

    @Test
    void postSendTellsAnErrnoValueAndTheFirstRequestNotPosted() {
        MemorySegment qp = driver.newQp();
        MemorySegment wr = ibv_send_wr.allocate(arena);

        driver.onPostSend(recording("send", Errno.ENOMEM));
        assertThat(VerbsInline.ibv_post_send(qp, wr, badWr)).isEqualTo(Errno.ENOMEM);
        assertThat(badWr.get(ValueLayout.ADDRESS, 0).address()).isEqualTo(wr.address());

        driver.onPostSend(recording("send", -Errno.EINVAL));
        assertThat(VerbsInline.ibv_post_send(qp.address(), wr.address(), badWr.address()))
                .as("a provider that returns a negative value")
                .isEqualTo(Errno.EINVAL);
    }

    @Test
    void postRecvReachesItsEntryInBothForms() {
        MemorySegment qp = driver.newQp();
        MemorySegment wr = ibv_recv_wr.allocate(arena);
        driver.onPostRecv(recording("recv", 0));

        assertThat(VerbsInline.ibv_post_recv(qp, wr, badWr)).isZero();
        assertThat(VerbsInline.ibv_post_recv(qp.address(), wr.address(), badWr.address())).isZero();

        assertThat(calls).containsExactly(call("recv", qp, wr), call("recv", qp, wr));
    }

    @Test
    void postSrqRecvReachesItsEntryInBothForms() {
        MemorySegment srq = driver.newSrq();
        MemorySegment wr = ibv_recv_wr.allocate(arena);
        driver.onPostSrqRecv(recording("srq", 0));

        assertThat(VerbsInline.ibv_post_srq_recv(srq, wr, badWr)).isZero();
        assertThat(VerbsInline.ibv_post_srq_recv(srq.address(), wr.address(), badWr.address()))
                .isZero();

        assertThat(calls).containsExactly(call("srq", srq, wr), call("srq", srq, wr));
    }

    @Test
    void postWqRecvCallsTheFunctionOfTheQueueItself() {
        MemorySegment wq = driver.newWq();
        MemorySegment wr = ibv_recv_wr.allocate(arena);
        ibv_wq.post_recv(
                wq,
                ibv_wq.post_recv.allocate((q, r, b) -> recording("wq", 7).post(q, r, b), arena));

        assertThat(VerbsInline.ibv_post_wq_recv(wq, wr, badWr)).isEqualTo(7);

        assertThat(calls).containsExactly(call("wq", wq, wr));
    }

    @Test
    void pollCqReturnsCompletionsInBothForms() {
        MemorySegment cq = driver.newCq(16);
        MemorySegment wc = ibv_wc.allocateArray(4, arena);
        driver.onPollCq((queue, entries, array) -> {
            assertThat(queue.address()).isEqualTo(cq.address());
            for (int i = 0; i < entries - 1; i++) {
                DriverDouble.complete(array, i, 100 + i, i, 0, 0);
            }
            return entries - 1;
        });

        assertThat(VerbsInline.ibv_poll_cq(cq, 4, wc)).isEqualTo(3);
        assertThat(ibv_wc.wr_id(ibv_wc.asSlice(wc, 2))).isEqualTo(102);
        assertThat(VerbsInline.ibv_poll_cq(cq.address(), 3, wc.address())).isEqualTo(2);
    }

    @Test
    void pollCqPassesANegativeResultOn() {
        MemorySegment cq = driver.newCq(16);
        MemorySegment wc = ibv_wc.allocateArray(1, arena);
        driver.onPollCq((queue, entries, array) -> -2);

        assertThat(VerbsInline.ibv_poll_cq(cq, 1, wc)).isEqualTo(-2);
        assertThat(VerbsInline.ibv_poll_cq(cq.address(), 1, wc.address())).isEqualTo(-2);
    }

    @Test
    void pollCqRefusesAnArrayThatIsTooShort() {
        MemorySegment cq = driver.newCq(16);
        MemorySegment wc = ibv_wc.allocateArray(2, arena);

        assertThatThrownBy(() -> VerbsInline.ibv_poll_cq(cq, 3, wc))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("3 completions do not fit into 96 bytes");
    }

    @Test
    void segmentsOfAClosedArenaAreRefused() {
        MemorySegment qp = driver.newQp();
        MemorySegment wr;
        try (Arena shortLived = Arena.ofConfined()) {
            wr = ibv_send_wr.allocate(shortLived);
        }

        assertThatThrownBy(() -> VerbsInline.ibv_post_send(qp, wr, badWr))
                .isInstanceOf(IllegalStateException.class);
    }

    @Test
    void reqNotifyCqReachesItsEntryInBothForms() {
        MemorySegment cq = driver.newCq(16);
        driver.onReqNotifyCq((queue, solicitedOnly) -> solicitedOnly == 1 ? 0 : -Errno.EINVAL);

        assertThat(VerbsInline.ibv_req_notify_cq(cq, 1)).isZero();
        assertThat(VerbsInline.ibv_req_notify_cq(cq.address(), 0)).isEqualTo(Errno.EINVAL);
    }

    @Test
    void anEntryThatIsNotSetIsAnExceptionAndNotTheEndOfTheProcess() {
        MemorySegment qp = driver.newQp();
        MemorySegment wr = ibv_send_wr.allocate(arena);
        ibv_context_ops.post_send(driver.ops(), MemorySegment.NULL);

        assertThatThrownBy(() -> VerbsInline.ibv_post_send(qp, wr, badWr))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() ->
                        VerbsInline.ibv_post_send(qp.address(), wr.address(), badWr.address()))
                .isInstanceOf(IllegalArgumentException.class);
    }

    // --- Memory windows --------------------------------------------------------------------------

    @Test
    void allocMwIsNotSupportedWithoutItsEntry() {
        MemorySegment pd = driver.newPd();

        assertThat(VerbsInline.ibv_alloc_mw(pd, 1)).isEqualTo(MemorySegment.NULL);
        assertThat(VerbsCalls.errno()).isEqualTo(Errno.EOPNOTSUPP);
        assertThat(VerbsInline.ibv_dealloc_mw(driver.newMw(pd, 1))).isEqualTo(Errno.EOPNOTSUPP);
    }

    @Test
    void allocMwReturnsAWindowOfTheStructsSize() {
        MemorySegment pd = driver.newPd();
        MemorySegment mw = driver.newMw(pd, 2);
        ibv_context_ops.alloc_mw(
                driver.ops(),
                ibv_context_ops.alloc_mw.allocate(
                        (domain, type) -> type == 2 ? mw : MemorySegment.NULL, arena));
        ibv_context_ops.dealloc_mw(
                driver.ops(),
                ibv_context_ops.dealloc_mw.allocate(
                        window -> window.address() == mw.address() ? 0 : Errno.EINVAL, arena));

        MemorySegment allocated = VerbsInline.ibv_alloc_mw(pd, 2);

        assertThat(allocated.address()).isEqualTo(mw.address());
        assertThat(allocated.byteSize()).isEqualTo(ibv_mw.sizeof());
        assertThat(VerbsInline.ibv_alloc_mw(pd, 1)).isEqualTo(MemorySegment.NULL);
        assertThat(VerbsInline.ibv_dealloc_mw(allocated)).isZero();
    }

    @Test
    void bindMwRefusesWhatCRefuses() {
        MemorySegment pd = driver.newPd();
        MemorySegment qp = driver.newQp();
        MemorySegment mr = driver.newMr(pd, arena.allocate(64));
        MemorySegment bind = ibv_mw_bind.allocate(arena);
        MemorySegment info = ibv_mw_bind.bind_info(bind);
        ibv_context_ops.bind_mw(
                driver.ops(), ibv_context_ops.bind_mw.allocate((q, w, b) -> 0, arena));
        MemorySegment window = driver.newMw(pd, 1);

        assertThat(VerbsInline.ibv_bind_mw(qp, driver.newMw(pd, 2), bind))
                .as("a window of type 2")
                .isEqualTo(Errno.EINVAL);
        ibv_mw_bind_info.length(info, 8);
        assertThat(VerbsInline.ibv_bind_mw(qp, window, bind))
                .as("a length without a region")
                .isEqualTo(Errno.EINVAL);
        ibv_mw_bind_info.mr(info, mr);
        assertThat(VerbsInline.ibv_bind_mw(qp, driver.newMw(driver.newPd(), 1), bind))
                .as("a region of another protection domain")
                .isEqualTo(Errno.EPERM);
        assertThat(VerbsInline.ibv_bind_mw(qp, window, bind)).isZero();
        assertThat(ibv_mr.lkey(mr)).as("the region is untouched").isNotZero();
    }

    @Test
    void incRkeyCountsUpTheLowestByteAlone() {
        assertThat(VerbsInline.ibv_inc_rkey(0x12345600)).isEqualTo(0x12345601);
        assertThat(VerbsInline.ibv_inc_rkey(0xabcdefff)).isEqualTo(0xabcdef00);
    }

    // --- The others ------------------------------------------------------------------------------

    @Test
    void queryPortPrefersTheExtendedEntryAndPassesTheSize() {
        MemorySegment attr = ibv_port_attr.allocate(arena);
        verbs_context.query_port(
                driver.extendedContext(),
                verbs_context.query_port.allocate(
                        (context, port, struct, sizeBytes) -> {
                            ibv_port_attr.gid_tbl_len(struct, port);
                            return sizeBytes == 52 ? 0 : Errno.EINVAL;
                        },
                        arena));
        driver.extend(verbs_context.sizeof());

        assertThat(VerbsInline.ibv_query_port(driver.context(), (byte) 3, attr)).isZero();

        assertThat(ibv_port_attr.gid_tbl_len(attr)).isEqualTo(3);
    }

    @Test
    void queryPortRefusesAStructThatIsTooShort() {
        MemorySegment attr = arena.allocate(ibv_port_attr.sizeof() - 4, 8);

        assertThatThrownBy(() -> VerbsInline.ibv_query_port(driver.context(), (byte) 1, attr))
                .isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    void queuePairTypesAreBits() {
        assertThat(VerbsInline.ibv_is_qpt_supported(0b100, 2)).isEqualTo(1);
        assertThat(VerbsInline.ibv_is_qpt_supported(0b100, 3)).isZero();
    }

    @Test
    void flowLabelsFoldIntoDynamicPorts() {
        assertThat(VerbsInline.ibv_flow_label_to_udp_sport(0) & 0xffff).isEqualTo(0xc000);
        assertThat(VerbsInline.ibv_flow_label_to_udp_sport(0xfffff) & 0xffff)
                .isEqualTo(0xc000 | (0x3fff ^ 0x3f));
    }
}
