package dev.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/**
 * Every pair of states, with every attribute left out and put in, against a table of its own: what
 * is required from the manual's list for reliable connections, what is optional from the table by
 * which the kernel checks. A state or attribute that this table lacks makes the test fail.
 */
class QueuePairTransitionsTest {
    /** From, to, required, optional; attributes by the bits' names of the verbs. */
    private static final String TABLE =
            """
            RESET INIT  PKEY_INDEX,PORT,ACCESS_FLAGS  -
            INIT INIT   -  PKEY_INDEX,PORT,ACCESS_FLAGS
            INIT RTR    AV,PATH_MTU,DEST_QPN,RQ_PSN,MAX_DEST_RD_ATOMIC,MIN_RNR_TIMER  \
            ACCESS_FLAGS,PKEY_INDEX
            RTR RTS     TIMEOUT,RETRY_CNT,RNR_RETRY,SQ_PSN,MAX_QP_RD_ATOMIC  \
            ACCESS_FLAGS,MIN_RNR_TIMER
            RTS RTS     -  ACCESS_FLAGS,MIN_RNR_TIMER
            RTS SQD     -  -
            SQD RTS     -  ACCESS_FLAGS,MIN_RNR_TIMER
            SQD SQD     -  \
            PORT,AV,TIMEOUT,RETRY_CNT,RNR_RETRY,MAX_QP_RD_ATOMIC,MAX_DEST_RD_ATOMIC,ACCESS_FLAGS,\
            PKEY_INDEX,MIN_RNR_TIMER
            INIT ERR    -  -
            RTR ERR     -  -
            RTS ERR     -  -
            SQD ERR     -  -
            SQE ERR     -  -
            ERR ERR     -  -
            RESET RESET -  -
            INIT RESET  -  -
            RTR RESET   -  -
            RTS RESET   -  -
            SQD RESET   -  -
            SQE RESET   -  -
            ERR RESET   -  -
            """;

    private static final Map<String, QueuePairState> STATES =
            Map.of(
                    "RESET", QueuePairState.RESET,
                    "INIT", QueuePairState.INIT,
                    "RTR", QueuePairState.READY_TO_RECEIVE,
                    "RTS", QueuePairState.READY_TO_SEND,
                    "SQD", QueuePairState.SEND_QUEUE_DRAIN,
                    "SQE", QueuePairState.SEND_QUEUE_ERROR,
                    "ERR", QueuePairState.ERROR);

    private static final Map<String, QueuePairAttribute> ATTRIBUTES =
            Map.ofEntries(
                    Map.entry("PKEY_INDEX", QueuePairAttribute.PARTITION_KEY_INDEX),
                    Map.entry("PORT", QueuePairAttribute.PORT),
                    Map.entry("ACCESS_FLAGS", QueuePairAttribute.ACCESS),
                    Map.entry("AV", QueuePairAttribute.DESTINATION),
                    Map.entry("PATH_MTU", QueuePairAttribute.PATH_MTU),
                    Map.entry("DEST_QPN", QueuePairAttribute.PEER_QUEUE_PAIR),
                    Map.entry("RQ_PSN", QueuePairAttribute.RECEIVE_PSN),
                    Map.entry("SQ_PSN", QueuePairAttribute.SEND_PSN),
                    Map.entry("MAX_DEST_RD_ATOMIC", QueuePairAttribute.READS_AS_RESPONDER),
                    Map.entry("MAX_QP_RD_ATOMIC", QueuePairAttribute.READS_AS_REQUESTER),
                    Map.entry("MIN_RNR_TIMER", QueuePairAttribute.MIN_RNR_TIMER),
                    Map.entry("TIMEOUT", QueuePairAttribute.TIMEOUT),
                    Map.entry("RETRY_CNT", QueuePairAttribute.RETRY_COUNT),
                    Map.entry("RNR_RETRY", QueuePairAttribute.RNR_RETRY));

    private record Pair(QueuePairState from, QueuePairState to) {}

    private record Row(Set<QueuePairAttribute> required, Set<QueuePairAttribute> optional) {}

    private final Map<Pair, Row> table = table();

    @Test
    void tableOfThisTestKnowsEveryStateAndAttribute() {
        assertThat(STATES.values()).containsExactlyInAnyOrder(QueuePairState.values());
        assertThat(ATTRIBUTES.values()).containsExactlyInAnyOrder(QueuePairAttribute.values());
    }

    @Test
    void allowsExactlyTheTransitionsOfTheTable() {
        for (Pair pair : allPairs()) {
            Row row = table.get(pair);
            if (row != null) {
                assertThatCode(() -> check(pair, row.required)).doesNotThrowAnyException();
            } else {
                String reachable =
                        String.join(
                                ", ",
                                List.of(QueuePairState.values()).stream()
                                        .filter(to -> table.containsKey(new Pair(pair.from, to)))
                                        .map(QueuePairState::name)
                                        .toList());
                assertThatIllegalStateException()
                        .isThrownBy(() -> check(pair, Set.of()))
                        .withMessageContaining("from " + pair.from + " to " + pair.to)
                        .withMessageEndingWith("it can go to " + reachable);
            }
        }
    }

    @Test
    void namesEachAttributeThatIsMissing() {
        table.forEach((pair, row) -> {
            for (QueuePairAttribute missing : row.required) {
                Set<QueuePairAttribute> given = EnumSet.copyOf(row.required);
                given.remove(missing);
                assertThatIllegalArgumentException()
                        .isThrownBy(() -> check(pair, given))
                        .withMessageContaining("%s to %s lacks [%s]", pair.from, pair.to, missing)
                        .withMessageContaining("it needs " + row.required);
            }
        });
    }

    @Test
    void namesEachAttributeThatIsNotTaken() {
        table.forEach((pair, row) -> {
            for (QueuePairAttribute extra : QueuePairAttribute.values()) {
                Set<QueuePairAttribute> given = EnumSet.noneOf(QueuePairAttribute.class);
                given.addAll(row.required);
                given.add(extra);
                if (row.required.contains(extra) || row.optional.contains(extra)) {
                    assertThatCode(() -> check(pair, given)).doesNotThrowAnyException();
                } else {
                    assertThatIllegalArgumentException()
                            .isThrownBy(() -> check(pair, given))
                            .withMessageContaining("does not take [" + extra + "]")
                            .withMessageNotContaining("lacks");
                }
            }
        });
    }

    @Test
    void namesMissingAndUnwantedAttributesTogether() {
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        QueuePairTransitions.check(
                                QueuePairState.RESET,
                                QueuePairState.INIT,
                                EnumSet.of(QueuePairAttribute.PORT, QueuePairAttribute.TIMEOUT)))
                .withMessageContaining("lacks [PARTITION_KEY_INDEX, ACCESS]")
                .withMessageContaining("does not take [TIMEOUT]");
    }

    private static void check(Pair pair, Set<QueuePairAttribute> given) {
        QueuePairTransitions.check(pair.from, pair.to, given);
    }

    private static List<Pair> allPairs() {
        List<Pair> pairs = new ArrayList<>();
        for (QueuePairState from : QueuePairState.values()) {
            for (QueuePairState to : QueuePairState.values()) {
                pairs.add(new Pair(from, to));
            }
        }
        return pairs;
    }

    private static Map<Pair, Row> table() {
        Map<Pair, Row> rows = new HashMap<>();
        for (String line : TABLE.lines().toList()) {
            String[] cells = line.split(" +", -1);
            rows.put(
                    new Pair(STATES.get(cells[0]), STATES.get(cells[1])),
                    new Row(attributes(cells[2]), attributes(cells[3])));
        }
        return rows;
    }

    private static Set<QueuePairAttribute> attributes(String cell) {
        Set<QueuePairAttribute> attributes = EnumSet.noneOf(QueuePairAttribute.class);
        if (!cell.equals("-")) {
            for (String name : cell.split(",", -1)) {
                attributes.add(ATTRIBUTES.get(name));
            }
        }
        return attributes;
    }
}
