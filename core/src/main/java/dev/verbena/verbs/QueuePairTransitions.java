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
import static dev.verbena.verbs.QueuePairState.ERROR;
import static dev.verbena.verbs.QueuePairState.INIT;
import static dev.verbena.verbs.QueuePairState.READY_TO_RECEIVE;
import static dev.verbena.verbs.QueuePairState.READY_TO_SEND;
import static dev.verbena.verbs.QueuePairState.RESET;
import static dev.verbena.verbs.QueuePairState.SEND_QUEUE_DRAIN;

import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The transitions that a reliable connected queue pair may make, with the attributes that each
 * needs and those that it allows. Checked before {@code ibv_modify_qp}, whose EINVAL would not say
 * which bit was wrong.
 *
 * <p>Source: {@code ibv_modify_qp(3)}, table for IBV_QPT_RC, and for what is optional the kernel's
 * {@code qp_state_table}.
 */
final class QueuePairTransitions {
    private record Transition(
            QueuePairState from,
            QueuePairState to,
            Set<QueuePairAttribute> required,
            Set<QueuePairAttribute> optional) {}

    private static final Set<QueuePairAttribute> NONE = EnumSet.noneOf(QueuePairAttribute.class);

    private static final List<Transition> TABLE =
            List.of(
                    new Transition(
                            RESET, INIT, EnumSet.of(PARTITION_KEY_INDEX, PORT, ACCESS), NONE),
                    new Transition(INIT, INIT, NONE, EnumSet.of(PARTITION_KEY_INDEX, PORT, ACCESS)),
                    new Transition(
                            INIT,
                            READY_TO_RECEIVE,
                            EnumSet.of(
                                    DESTINATION,
                                    PATH_MTU,
                                    PEER_QUEUE_PAIR,
                                    RECEIVE_PSN,
                                    READS_AS_RESPONDER,
                                    MIN_RNR_TIMER),
                            EnumSet.of(PARTITION_KEY_INDEX, ACCESS)),
                    new Transition(
                            READY_TO_RECEIVE,
                            READY_TO_SEND,
                            EnumSet.of(
                                    TIMEOUT, RETRY_COUNT, RNR_RETRY, SEND_PSN, READS_AS_REQUESTER),
                            EnumSet.of(ACCESS, MIN_RNR_TIMER)),
                    new Transition(
                            READY_TO_SEND, READY_TO_SEND, NONE, EnumSet.of(ACCESS, MIN_RNR_TIMER)),
                    new Transition(READY_TO_SEND, SEND_QUEUE_DRAIN, NONE, NONE),
                    new Transition(
                            SEND_QUEUE_DRAIN,
                            READY_TO_SEND,
                            NONE,
                            EnumSet.of(ACCESS, MIN_RNR_TIMER)),
                    new Transition(
                            SEND_QUEUE_DRAIN,
                            SEND_QUEUE_DRAIN,
                            NONE,
                            EnumSet.of(
                                    PARTITION_KEY_INDEX,
                                    PORT,
                                    DESTINATION,
                                    TIMEOUT,
                                    RETRY_COUNT,
                                    RNR_RETRY,
                                    READS_AS_REQUESTER,
                                    READS_AS_RESPONDER,
                                    ACCESS,
                                    MIN_RNR_TIMER)));

    private QueuePairTransitions() {}

    /**
     * Refuses a transition that the device would refuse, and says why.
     *
     * @throws IllegalStateException if no transition leads from one state to the other
     * @throws IllegalArgumentException if attributes are missing or not allowed
     */
    static void check(QueuePairState from, QueuePairState to, Set<QueuePairAttribute> given) {
        Transition transition = find(from, to);
        if (transition == null) {
            throw new IllegalStateException(
                    "a queue pair cannot go from "
                            + from
                            + " to "
                            + to
                            + "; from "
                            + from
                            + " it can go to "
                            + targets(from));
        }
        Set<QueuePairAttribute> missing = difference(transition.required, given);
        Set<QueuePairAttribute> unwanted = difference(given, transition.required);
        unwanted.removeAll(transition.optional);
        if (!missing.isEmpty() || !unwanted.isEmpty()) {
            throw new IllegalArgumentException(
                    from
                            + " to "
                            + to
                            + (missing.isEmpty() ? "" : " lacks " + missing)
                            + (unwanted.isEmpty() ? "" : " does not take " + unwanted)
                            + "; it needs "
                            + transition.required
                            + " and allows "
                            + transition.optional);
        }
    }

    private static @Nullable Transition find(QueuePairState from, QueuePairState to) {
        if (to == RESET || (to == ERROR && from != RESET)) {
            return new Transition(from, to, NONE, NONE);
        }
        for (Transition transition : TABLE) {
            if (transition.from == from && transition.to == to) {
                return transition;
            }
        }
        return null;
    }

    private static String targets(QueuePairState from) {
        return List.of(QueuePairState.values()).stream()
                .filter(to -> find(from, to) != null)
                .map(QueuePairState::name)
                .collect(Collectors.joining(", "));
    }

    private static Set<QueuePairAttribute> difference(
            Set<QueuePairAttribute> left, Set<QueuePairAttribute> right) {
        Set<QueuePairAttribute> difference = EnumSet.noneOf(QueuePairAttribute.class);
        difference.addAll(left);
        difference.removeAll(right);
        return difference;
    }
}
