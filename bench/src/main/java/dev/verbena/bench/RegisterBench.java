package dev.verbena.bench;

import dev.verbena.bench.Rounds.Better;
import dev.verbena.memory.MemoryRegistry;
import dev.verbena.memory.Pool;
import dev.verbena.memory.PoolRequest;
import dev.verbena.memory.RegistryOptions;
import dev.verbena.verbs.Access;
import dev.verbena.verbs.Device;
import dev.verbena.verbs.MemoryRegion;
import dev.verbena.verbs.ProtectionDomain;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Registration on the device: a large pool in parts side by side, against one {@code ibv_reg_mr} of
 * the whole; and many rounds of registering and closing a small pool, after which the process must
 * have no more mappings and open files than before.
 */
final class RegisterBench implements Benchmark {
    private static final long LARGE_BYTES = 2L << 30;
    private static final int PARTS = 8;
    private static final long SMALL_BYTES = 64 << 10;
    private static final int ROUNDS = 100_000;
    private static final int PAGE_BYTES = 4096;

    /** A JVM maps a little more now and then, whatever it runs. */
    private static final int MAPPINGS_ALLOWED = 20;

    @Override
    public void run(Setting setting) throws Exception {
        try (Device device = Device.open(RdmaDevice.first().name());
                ProtectionDomain domain = device.allocateProtectionDomain();
                MemoryRegistry registry = new MemoryRegistry(domain, RegistryOptions.defaults())) {
            large(setting, domain, registry);
            rounds(setting, domain, registry);
        }
    }

    private static void large(Setting setting, ProtectionDomain domain, MemoryRegistry registry)
            throws Exception {
        setting.report()
                .accept(
                        Result.of(
                                "register/parallel",
                                "s",
                                setting.rounds()
                                        .compare(
                                                Better.LOWER,
                                                () -> inParts(registry),
                                                () -> atOnce(domain)),
                                "bytes",
                                LARGE_BYTES,
                                "parts",
                                PARTS,
                                "threads",
                                RegistryOptions.defaults().parallelism(),
                                "processors",
                                Runtime.getRuntime().availableProcessors(),
                                "memory",
                                "never touched",
                                "peer",
                                "one ibv_reg_mr"));
    }

    private static double inParts(MemoryRegistry registry) {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(LARGE_BYTES, PAGE_BYTES);
            List<PoolRequest> requests = new ArrayList<>();
            for (int part = 0; part < PARTS; part++) {
                requests.add(
                        new PoolRequest(
                                "part-" + part,
                                memory.asSlice(part * (LARGE_BYTES / PARTS), LARGE_BYTES / PARTS),
                                Set.of(Access.REMOTE_WRITE)));
            }
            long start = System.nanoTime();
            List<Pool> pools = registry.registerAll(requests, (n, all, bytes, allBytes) -> {});
            double seconds = (System.nanoTime() - start) / 1e9;
            pools.forEach(Pool::close);
            return seconds;
        }
    }

    private static double atOnce(ProtectionDomain domain) {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(LARGE_BYTES, PAGE_BYTES);
            long start = System.nanoTime();
            MemoryRegion region = domain.register(memory, Set.of(Access.REMOTE_WRITE));
            double seconds = (System.nanoTime() - start) / 1e9;
            region.close();
            return seconds;
        }
    }

    private static void rounds(Setting setting, ProtectionDomain domain, MemoryRegistry registry)
            throws Exception {
        int turns = setting.rounds().warmUps() + setting.rounds().runs();
        int each = Math.ceilDiv(ROUNDS, turns);
        try (Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(SMALL_BYTES, PAGE_BYTES);
            byRegistry(registry, memory, each);
            byDomain(domain, memory, each);
            long mappings = mappings();
            long files = openFiles();
            Rounds.Comparison comparison =
                    setting.rounds()
                            .compare(
                                    Better.LOWER,
                                    () -> byRegistry(registry, memory, each),
                                    () -> byDomain(domain, memory, each));
            long mappingsAfter = mappings();
            long filesAfter = openFiles();
            if (mappingsAfter > mappings + MAPPINGS_ALLOWED || filesAfter > files) {
                throw new AssertionError(
                        "after %d rounds there are %d mappings, not %d, and %d files, not %d"
                                .formatted(
                                        each * turns, mappingsAfter, mappings, filesAfter, files));
            }
            setting.report()
                    .accept(
                            Result.of(
                                    "register/rounds",
                                    "us/round",
                                    comparison,
                                    "rounds_of_ours",
                                    each * turns,
                                    "bytes",
                                    SMALL_BYTES,
                                    "mappings_before",
                                    mappings,
                                    "mappings_after",
                                    mappingsAfter,
                                    "files_before",
                                    files,
                                    "files_after",
                                    filesAfter,
                                    "peer",
                                    "ibv_reg_mr and ibv_dereg_mr"));
        }
    }

    private static double byRegistry(MemoryRegistry registry, MemorySegment memory, int rounds) {
        long start = System.nanoTime();
        for (int i = 0; i < rounds; i++) {
            registry.register("small", memory, Access.REMOTE_WRITE).close();
        }
        return (System.nanoTime() - start) / 1e3 / rounds;
    }

    private static double byDomain(ProtectionDomain domain, MemorySegment memory, int rounds) {
        long start = System.nanoTime();
        for (int i = 0; i < rounds; i++) {
            domain.register(memory, Set.of(Access.REMOTE_WRITE)).close();
        }
        return (System.nanoTime() - start) / 1e3 / rounds;
    }

    private static long mappings() throws IOException {
        return Files.readAllLines(Path.of("/proc/self/maps")).size();
    }

    private static long openFiles() throws IOException {
        try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
            return files.count();
        }
    }
}
