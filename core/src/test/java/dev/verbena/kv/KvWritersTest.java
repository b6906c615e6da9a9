package dev.verbena.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.verbena.kv.KvGroup.Shape;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * Which prefill ranks write to a decode rank, and which sends the auxiliary data; and what groups
 * are refused, by whom they lack.
 */
class KvWritersTest {
    private static final ModelOfBytes ALL = ModelOfBytes.heads(4).withSwa().withMamba().withAux();

    @Test
    void theWritersAreThoseOfTheRankMap() {
        for (int prefill : new int[] {1, 2, 4, 8}) {
            for (int decode : new int[] {1, 2, 4, 8}) {
                for (int heads : new int[] {1, 2, 8}) {
                    RankMap map = RankMap.of(prefill, decode, heads);
                    for (int rank = 0; rank < decode; rank++) {
                        assertThat(
                                        needed(
                                                Shape.of(prefill, decode),
                                                ModelOfBytes.heads(heads),
                                                rank))
                                .containsExactly(map.writersOf(rank));
                        assertThat(
                                        needed(
                                                Shape.of(prefill, decode),
                                                ModelOfBytes.heads(heads).withMamba(),
                                                rank))
                                .containsExactly(
                                        prefill == decode
                                                ? map.writersOf(rank)
                                                : map.prefillRanksOf(rank));
                    }
                }
            }
        }
    }

    /** The lowest rank that takes part, of the last stage, whatever the order of the peers. */
    @Test
    void oneRankSendsTheAuxiliaryData() {
        Shape shape = new Shape(4, 2, 2);
        for (int decodeRank = 0; decodeRank < 2; decodeRank++) {
            List<KvWriters.Member> members = members(shape, ALL);
            Collections.shuffle(members, new Random(decodeRank));
            KvWriters writers = KvWriters.of(decode(shape, ALL, decodeRank), members);
            List<String> senders =
                    IntStream.range(0, members.size())
                            .filter(writers::sendsAux)
                            .mapToObj(i -> members.get(i).name())
                            .toList();
            assertThat(senders).containsExactly("p-1-" + 2 * decodeRank);
        }
    }

    @Test
    void nobodySendsAuxiliaryDataWhereNoneIsWanted() {
        Shape shape = Shape.of(2, 1);
        KvWriters writers =
                KvWriters.of(
                        decode(shape, ModelOfBytes.heads(4), 0),
                        members(shape, ALL.aux() ? ModelOfBytes.heads(4).withAux() : ALL));

        assertThat(writers.sendsAux(0)).isFalse();
        assertThat(writers.sendsAux(1)).isFalse();
    }

    @Test
    void everyRankIsNeededOnce() {
        Shape shape = Shape.of(4, 2);
        for (int missing = 0; missing < 4; missing++) {
            List<KvWriters.Member> members = members(shape, ALL);
            members.remove(missing);
            refused(shape, members, "prefill rank " + missing + " of 4 is missing");
        }
        List<KvWriters.Member> members = members(shape, ALL);
        members.set(1, new KvWriters.Member("p-again", members.get(2).cache(), false));
        refused(shape, members, "prefill rank 1 of 4 is missing");
        members.add(members(shape, ALL).get(1));
        refused(
                shape,
                members,
                "prefill rank 2 of 4 is there twice for layer 0: as p-again and as p-0-2");
    }

    @Test
    void everyLayerIsNeededOnce() {
        Shape shape = new Shape(1, 2, 1);
        List<KvWriters.Member> members = members(shape, ALL);
        refused(shape, members.subList(0, 1), "prefill rank 0 of 1 is missing for layer 2");
        refused(shape, members.subList(1, 2), "prefill rank 0 of 1 is missing for layer 0");
    }

    @Test
    void statesAreNeededFromAllStages() {
        Shape shape = new Shape(1, 2, 1);
        List<KvWriters.Member> members = members(shape, ALL);
        ModelOfBytes withoutMamba = ModelOfBytes.heads(4).withSwa().withAux();
        members.set(1, members(shape, withoutMamba).get(1));
        refused(shape, members, "state 'mamba': prefill rank 0 of 1 is missing for layer 2");
    }

    @Test
    void sidesThatDoNotFitAreRefused() {
        Shape shape = Shape.of(3, 2);
        refused(shape, members(Shape.of(4, 1), ALL).subList(0, 1), "is missing");
        refused(
                Shape.of(2, 2),
                members(Shape.of(2, 2), ModelOfBytes.heads(2)),
                "the prefill side has 2 KV heads and the decode side 4");
        refused(
                Shape.of(2, 2),
                members(Shape.of(2, 2), ModelOfBytes.heads(4).withPageTokens(8)),
                "pages of the prefill side hold 8 tokens, those of the decode side 4");
        refused(
                Shape.of(2, 2),
                members(Shape.of(2, 2), ModelOfBytes.heads(4).withSwa().withMamba()),
                "prefill rank 0 (p-0-0) should send the auxiliary data");
        List<KvWriters.Member> mixed = members(Shape.of(2, 2), ALL);
        mixed.set(1, members(Shape.of(4, 2), ALL).get(1));
        refused(Shape.of(2, 2), mixed, "prefill rank 1 (p-0-1) of TensorParallel[size=4");
    }

    @Test
    void tpSizesOfWhichNeitherDividesTheOtherAreRefused() {
        ModelOfBytes model = ModelOfBytes.heads(6);
        KvCache decode = decode(Shape.of(3, 2), model, 0);

        assertThatIllegalArgumentException()
                .isThrownBy(() -> KvWriters.of(decode, members(Shape.of(3, 2), model)))
                .withMessageContaining("prefill TP size 3 and decode TP size 2");
    }

    private static void refused(Shape shape, List<KvWriters.Member> members, String message) {
        KvCache decode = decode(new Shape(1, 1, shape.decodeTp()), ALL, 0);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KvWriters.of(decode, members))
                .withMessageContaining(message);
    }

    private static int[] needed(Shape shape, ModelOfBytes model, int decodeRank) {
        List<KvWriters.Member> members = members(shape, model);
        KvWriters writers = KvWriters.of(decode(shape, model, decodeRank), members);
        return IntStream.range(0, members.size()).filter(writers::isNeeded).toArray();
    }

    private static List<KvWriters.Member> members(Shape shape, ModelOfBytes model) {
        List<KvWriters.Member> members = new ArrayList<>();
        for (int stage = 0; stage < shape.stages(); stage++) {
            for (int rank = 0; rank < shape.prefillTp(); rank++) {
                members.add(
                        new KvWriters.Member(
                                "p-" + stage + "-" + rank,
                                model.rank(shape.prefillTp(), rank, stage, shape.stages(), 0).cache,
                                false));
            }
        }
        return members;
    }

    private static KvCache decode(Shape shape, ModelOfBytes model, int rank) {
        return model.rank(shape.decodeTp(), rank, 0, 1, 0).cache;
    }
}
