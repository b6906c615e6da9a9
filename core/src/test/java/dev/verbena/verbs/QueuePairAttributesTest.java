package dev.verbena.verbs;

import static dev.verbena.verbs.QueuePairAttribute.ACCESS;
import static dev.verbena.verbs.QueuePairAttribute.DESTINATION;
import static dev.verbena.verbs.QueuePairAttribute.MIN_RNR_TIMER;
import static dev.verbena.verbs.QueuePairAttribute.PARTITION_KEY_INDEX;
import static dev.verbena.verbs.QueuePairAttribute.PATH_MTU;
import static dev.verbena.verbs.QueuePairAttribute.PEER_QUEUE_PAIR;
import static dev.verbena.verbs.QueuePairAttribute.PORT;
import static dev.verbena.verbs.QueuePairAttribute.READS_AS_REQUESTER;
import static dev.verbena.verbs.QueuePairAttribute.READS_AS_RESPONDER;
import static dev.verbena.verbs.QueuePairAttribute.RECEIVE_PSN;
import static dev.verbena.verbs.QueuePairAttribute.RETRY_COUNT;
import static dev.verbena.verbs.QueuePairAttribute.RNR_RETRY;
import static dev.verbena.verbs.QueuePairAttribute.SEND_PSN;
import static dev.verbena.verbs.QueuePairAttribute.TIMEOUT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.verbena.bindings.ibverbs.ibv_ah_attr;
import dev.verbena.bindings.ibverbs.ibv_global_route;
import dev.verbena.bindings.ibverbs.ibv_qp_attr;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Attributes keep to the ranges of their fields, and land in the fields of the C struct. */
class QueuePairAttributesTest {
    /** The largest value of each attribute that is a number: its width on the wire or in C. */
    private static final Map<QueuePairAttribute, Integer> LARGEST =
            Map.ofEntries(
                    Map.entry(PARTITION_KEY_INDEX, 0xffff),
                    Map.entry(PORT, 255),
                    Map.entry(ACCESS, Integer.MAX_VALUE - 1),
                    Map.entry(PATH_MTU, 4096),
                    Map.entry(PEER_QUEUE_PAIR, 0xffffff),
                    Map.entry(RECEIVE_PSN, 0xffffff),
                    Map.entry(SEND_PSN, 0xffffff),
                    Map.entry(READS_AS_RESPONDER, 255),
                    Map.entry(READS_AS_REQUESTER, 255),
                    Map.entry(MIN_RNR_TIMER, 31),
                    Map.entry(TIMEOUT, 31),
                    Map.entry(RETRY_COUNT, 7),
                    Map.entry(RNR_RETRY, 7));

    @Test
    void takesEachNumberUpToItsLargestAndNoFurther() {
        for (QueuePairAttribute attribute : QueuePairAttribute.values()) {
            if (attribute == DESTINATION) {
                continue;
            }
            int largest = LARGEST.get(attribute);
            QueuePairAttributes attributes = new QueuePairAttributes();
            assertThatCode(() -> attributes.set(attribute, largest)).doesNotThrowAnyException();
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> attributes.set(attribute, largest + 1))
                    .withMessageContaining(attribute.name());
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> attributes.set(attribute, -1))
                    .withMessageContaining(attribute.name());
        }
    }

    @Test
    void takesNoNumberForTheDestination() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new QueuePairAttributes().set(DESTINATION, 1));
    }

    @Test
    void takesOnlyMtusOfTheVerbs() {
        for (int bytes : new int[] {256, 512, 1024, 2048, 4096}) {
            assertThatCode(() -> new QueuePairAttributes().set(PATH_MTU, bytes))
                    .doesNotThrowAnyException();
        }
        for (int bytes : new int[] {0, 1, 128, 255, 1500, 4095}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> new QueuePairAttributes().set(PATH_MTU, bytes))
                    .withMessageContaining(String.valueOf(bytes));
        }
    }

    @Test
    void writesEachNumberToItsField() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment attr = ibv_qp_attr.allocate(arena);
            new QueuePairAttributes()
                    .set(PARTITION_KEY_INDEX, 0xfedc)
                    .set(PORT, 200)
                    .set(ACCESS, 0x0e)
                    .set(PATH_MTU, 2048)
                    .set(PEER_QUEUE_PAIR, 0xabcdef)
                    .set(RECEIVE_PSN, 0x123456)
                    .set(SEND_PSN, 0x654321)
                    .set(READS_AS_RESPONDER, 201)
                    .set(READS_AS_REQUESTER, 202)
                    .set(MIN_RNR_TIMER, 12)
                    .set(TIMEOUT, 14)
                    .set(RETRY_COUNT, 6)
                    .set(RNR_RETRY, 5)
                    .write(attr);

            assertThat(Short.toUnsignedInt(ibv_qp_attr.pkey_index(attr))).isEqualTo(0xfedc);
            assertThat(Byte.toUnsignedInt(ibv_qp_attr.port_num(attr))).isEqualTo(200);
            assertThat(ibv_qp_attr.qp_access_flags(attr)).isEqualTo(0x0e);
            assertThat(ibv_qp_attr.path_mtu(attr)).isEqualTo(4);
            assertThat(ibv_qp_attr.dest_qp_num(attr)).isEqualTo(0xabcdef);
            assertThat(ibv_qp_attr.rq_psn(attr)).isEqualTo(0x123456);
            assertThat(ibv_qp_attr.sq_psn(attr)).isEqualTo(0x654321);
            assertThat(Byte.toUnsignedInt(ibv_qp_attr.max_dest_rd_atomic(attr))).isEqualTo(201);
            assertThat(Byte.toUnsignedInt(ibv_qp_attr.max_rd_atomic(attr))).isEqualTo(202);
            assertThat(ibv_qp_attr.min_rnr_timer(attr)).isEqualTo((byte) 12);
            assertThat(ibv_qp_attr.timeout(attr)).isEqualTo((byte) 14);
            assertThat(ibv_qp_attr.retry_cnt(attr)).isEqualTo((byte) 6);
            assertThat(ibv_qp_attr.rnr_retry(attr)).isEqualTo((byte) 5);
        }
    }

    @Test
    void writesTheDestinationToTheAddressVector() {
        byte[] gid = new byte[Gid.Address.LENGTH];
        for (int i = 0; i < gid.length; i++) {
            gid[i] = (byte) (0xf0 + i);
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment attr = ibv_qp_attr.allocate(arena);
            new QueuePairAttributes()
                    .destination(new Destination(new Gid.Address(gid), 250, 0xfffe, 2, 64, 104, 7))
                    .write(attr);

            MemorySegment vector = ibv_qp_attr.ah_attr(attr);
            MemorySegment route = ibv_ah_attr.grh(vector);
            assertThat(ibv_ah_attr.is_global(vector)).isEqualTo((byte) 1);
            assertThat(Short.toUnsignedInt(ibv_ah_attr.dlid(vector))).isEqualTo(0xfffe);
            assertThat(ibv_ah_attr.port_num(vector)).isEqualTo((byte) 2);
            assertThat(ibv_ah_attr.sl(vector)).isEqualTo((byte) 7);
            assertThat(ibv_global_route.dgid(route).toArray(ValueLayout.JAVA_BYTE)).isEqualTo(gid);
            assertThat(Byte.toUnsignedInt(ibv_global_route.sgid_index(route))).isEqualTo(250);
            assertThat(ibv_global_route.hop_limit(route)).isEqualTo((byte) 64);
            assertThat(ibv_global_route.traffic_class(route)).isEqualTo((byte) 104);
        }
    }

    @Test
    void masksExactlyWhatIsSet() {
        QueuePairAttributes attributes = new QueuePairAttributes().set(PORT, 1).set(TIMEOUT, 14);

        assertThat(attributes.given()).containsExactlyInAnyOrder(PORT, TIMEOUT);
        assertThat(attributes.mask()).isEqualTo(PORT.mask() | TIMEOUT.mask());
        assertThat(new QueuePairAttributes().mask()).isZero();
    }

    @Test
    void refusesDestinationsOutOfRange() {
        Gid.Address gid = new Gid.Address(new byte[Gid.Address.LENGTH]);
        int[][] bad = {
            {-1, 0, 1, 1, 0, 0}, {256, 0, 1, 1, 0, 0},
            {0, -1, 1, 1, 0, 0}, {0, 0x10000, 1, 1, 0, 0},
            {0, 0, 0, 1, 0, 0}, {0, 0, 256, 1, 0, 0},
            {0, 0, 1, 0, 0, 0}, {0, 0, 1, 256, 0, 0},
            {0, 0, 1, 1, -1, 0}, {0, 0, 1, 1, 256, 0},
            {0, 0, 1, 1, 0, -1}, {0, 0, 1, 1, 0, 16},
        };
        for (int[] b : bad) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> new Destination(gid, b[0], b[1], b[2], b[3], b[4], b[5]))
                    .withMessageContaining("localGidIndex=" + b[0])
                    .withMessageContaining("serviceLevel=" + b[5]);
        }
        new Destination(gid, 255, 0xffff, 255, 255, 255, 15);
    }

    @Test
    void refusesQueuePairsWithoutRoom() {
        int[][] bad = {{0, 1, 0, 0}, {1, 0, 0, 0}, {1, 1, -1, 0}, {1, 1, 0, -1}};
        for (int[] b : bad) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> new QueuePairOptions(b[0], b[1], b[2], b[3]))
                    .withMessageContaining("sendRequests=" + b[0]);
        }
        new QueuePairOptions(1, 1, 0, 0);
    }
}
