package dev.verbena.bindings;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Finds and loads libibverbs, once, when it is first asked for; it then stays loaded.
 *
 * <p>Every way in which loading can fail ends in a {@link VerbsUnavailableException} that says what
 * to install or which option to pass, never in a linkage error. The outcome is kept: a later call
 * tells the same.
 *
 * <p>The system property {@value #LIBRARY_PROPERTY} names another library to load, by a file name
 * that the dynamic loader finds or by a path; it is read once, when the library is first used.
 *
 * <p>Safe for use by many threads.
 */
public final class VerbsLibrary {
    /** System property with the name or path of the library to load in place of the default. */
    public static final String LIBRARY_PROPERTY = "verbena.ibverbs.library";

    private static final String DEFAULT_LIBRARY = "libibverbs.so.1";
    private static final String UNKNOWN_VERSION = "unknown";

    /**
     * Symbols younger than the library's first versions: the symbol version that brought each, and
     * the release of rdma-core where it is known.
     */
    private static final Map<String, String> INTRODUCED_BY =
            Map.ofEntries(
                    Map.entry("ibv_get_pkey_index", "IBVERBS_1.5 (rdma-core 20)"),
                    Map.entry("ibv_qp_to_qp_ex", "IBVERBS_1.6 (rdma-core 24)"),
                    Map.entry("ibv_reg_mr_iova", "IBVERBS_1.7 (rdma-core 25)"),
                    Map.entry("ibv_reg_mr_iova2", "IBVERBS_1.8 (rdma-core 28)"),
                    Map.entry("ibv_get_device_index", "IBVERBS_1.9 (rdma-core 30)"),
                    Map.entry("ibv_import_device", "IBVERBS_1.10 (rdma-core 31)"),
                    Map.entry("ibv_import_mr", "IBVERBS_1.10 (rdma-core 31)"),
                    Map.entry("ibv_import_pd", "IBVERBS_1.10 (rdma-core 31)"),
                    Map.entry("ibv_query_ece", "IBVERBS_1.10 (rdma-core 31)"),
                    Map.entry("ibv_set_ece", "IBVERBS_1.10 (rdma-core 31)"),
                    Map.entry("ibv_unimport_mr", "IBVERBS_1.10 (rdma-core 31)"),
                    Map.entry("ibv_unimport_pd", "IBVERBS_1.10 (rdma-core 31)"),
                    Map.entry("_ibv_query_gid_ex", "IBVERBS_1.11 (rdma-core 32)"),
                    Map.entry("_ibv_query_gid_table", "IBVERBS_1.11 (rdma-core 32)"),
                    Map.entry("ibv_reg_dmabuf_mr", "IBVERBS_1.12 (rdma-core 34)"),
                    Map.entry("ibv_import_dm", "IBVERBS_1.13 (rdma-core 35)"),
                    Map.entry("ibv_is_fork_initialized", "IBVERBS_1.13 (rdma-core 35)"),
                    Map.entry("ibv_unimport_dm", "IBVERBS_1.13 (rdma-core 35)"),
                    Map.entry("ibv_query_qp_data_in_order", "IBVERBS_1.14 (rdma-core 36)"),
                    Map.entry("ibv_reg_mr_ex", "IBVERBS_1.15"),
                    Map.entry("ibv_create_comp_cntr", "IBVERBS_1.18"),
                    Map.entry("ibv_qp_attach_comp_cntr", "IBVERBS_1.18"));

    private final String name;
    private final @Nullable SymbolLookup symbols;
    private final @Nullable VerbsUnavailableException failure;

    /**
     * Loads a library; a failure is kept, not thrown.
     *
     * @param name file name or path of the library
     * @param platform operating system and processor, as the bindings' struct layouts hold for one
     */
    VerbsLibrary(String name, String platform) {
        this.name = name;
        SymbolLookup loaded = null;
        VerbsUnavailableException problem = null;
        if (!platform.equals("Linux-amd64")) {
            problem =
                    new VerbsUnavailableException(
                            "the bindings have the struct layouts of Linux on x86-64 only; this is "
                                    + platform,
                            null);
        } else {
            try {
                loaded = SymbolLookup.libraryLookup(name, Arena.global());
            } catch (IllegalCallerException denied) {
                problem =
                        new VerbsUnavailableException(
                                "native access is denied: start java with"
                                        + " --enable-native-access=dev.verbena.bindings",
                                denied);
            } catch (RuntimeException | LinkageError absent) {
                problem = new VerbsUnavailableException(howToInstall(name), absent);
            }
        }
        symbols = loaded;
        failure = problem;
    }

    private static String howToInstall(String name) {
        return "cannot load "
                + name
                + ": install libibverbs1 and ibverbs-providers (Debian, Ubuntu) or"
                + " libibverbs (RHEL, Fedora), or name the library with -D"
                + LIBRARY_PROPERTY
                + "=PATH";
    }

    private static final class Holder {
        static final VerbsLibrary INSTANCE =
                new VerbsLibrary(
                        System.getProperty(LIBRARY_PROPERTY, DEFAULT_LIBRARY),
                        System.getProperty("os.name") + "-" + System.getProperty("os.arch"));
    }

    /**
     * Tells whether libibverbs is loaded, and loads it if nobody has tried yet. A loaded library
     * does not mean that there is a device.
     *
     * @return whether {@link #require()} would succeed
     */
    public static boolean isAvailable() {
        return Holder.INSTANCE.failure == null;
    }

    /**
     * Loads libibverbs unless that is done.
     *
     * @throws VerbsUnavailableException if it cannot be loaded; the message says what to install
     */
    public static void require() {
        Holder.INSTANCE.loaded();
    }

    /**
     * Tells whether the loaded library has a function, for those that older versions lack.
     *
     * @param symbol name of the C function
     * @return whether it is there; {@code false} too if there is no library
     */
    public static boolean has(String symbol) {
        VerbsLibrary library = Holder.INSTANCE;
        return library.symbols != null && library.symbols.find(symbol).isPresent();
    }

    /**
     * Looks up a function of the library.
     *
     * @param symbol name of the C function
     * @return its address, valid for ever
     * @throws VerbsUnavailableException if there is no library, or it is too old for this function
     */
    public static MemorySegment symbol(String symbol) {
        return Holder.INSTANCE.find(symbol);
    }

    /**
     * Tells the version of the loaded library, taken from the name of the file it was loaded from:
     * {@code 1.14.44.0} has the symbols up to IBVERBS_1.14 and belongs to rdma-core 44.0.
     *
     * @return the version, or {@code unknown} if there is no library or its file name tells none
     */
    public static String version() {
        return Holder.INSTANCE.installedVersion();
    }

    MemorySegment find(String symbol) {
        Optional<MemorySegment> address = loaded().find(symbol);
        if (address.isEmpty()) {
            String since = INTRODUCED_BY.get(symbol);
            throw new VerbsUnavailableException(
                    name
                            + " has no "
                            + symbol
                            + (since == null ? "" : ", which came with " + since)
                            + "; the installed version is "
                            + installedVersion(),
                    null);
        }
        return address.get();
    }

    /** A new exception each time, so that its stack trace is the caller's; the cause is kept. */
    SymbolLookup loaded() {
        if (symbols == null) {
            VerbsUnavailableException kept = failure;
            throw new VerbsUnavailableException(
                    kept == null ? howToInstall(name) : String.valueOf(kept.getMessage()), kept);
        }
        return symbols;
    }

    /** The loader maps the real file, whatever links led to it, so the process's map names it. */
    String installedVersion() {
        if (symbols == null) {
            return UNKNOWN_VERSION;
        }
        try {
            return versionIn(Files.readString(Path.of("/proc/self/maps"), StandardCharsets.UTF_8));
        } catch (IOException unreadable) {
            return UNKNOWN_VERSION;
        }
    }

    static String versionIn(String maps) {
        String prefix = "/libibverbs.so.";
        return maps.lines()
                .filter(line -> line.contains(prefix))
                .map(line -> line.substring(line.lastIndexOf(prefix) + prefix.length()))
                .filter(version -> version.contains("."))
                .findFirst()
                .orElse(UNKNOWN_VERSION);
    }
}
