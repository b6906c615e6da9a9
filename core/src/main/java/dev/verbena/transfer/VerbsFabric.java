package dev.verbena.transfer;

import dev.verbena.memory.RegionSource;
import dev.verbena.verbs.AsyncEvent;
import dev.verbena.verbs.AsyncEvents;
import dev.verbena.verbs.CompletionChannel;
import dev.verbena.verbs.CompletionEvents;
import dev.verbena.verbs.Device;
import dev.verbena.verbs.Gid;
import dev.verbena.verbs.PortAttributes;
import dev.verbena.verbs.ProtectionDomain;
import dev.verbena.verbs.VerbsException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A port of an RDMA device, opened for a node. */
final class VerbsFabric implements Fabric {
    private static final Logger LOG = System.getLogger(VerbsFabric.class.getName());
    private static final long EVENT_WAIT_NANOS = Duration.ofSeconds(10).toNanos();
    private static final int MAX_READS = 255;

    private final NodeOptions options;
    private final Device device;
    private final ProtectionDomain domain;
    private final CompletionChannel channel;
    private final PortAttributes portAttributes;
    private final List<Gid> gids;
    private final AsyncEvents asyncEvents;
    private @Nullable Thread eventThread;

    private VerbsFabric(NodeOptions options, Device device) {
        this.options = options;
        this.device = device;
        this.portAttributes = device.port(options.port());
        if (!portAttributes.active()) {
            throw new IllegalStateException(
                    "port %d of device %s is not active: is its link up?"
                            .formatted(options.port(), device.name()));
        }
        this.gids = device.gids(options.port());
        this.domain = device.allocateProtectionDomain();
        CompletionChannel made = null;
        try {
            made = device.createCompletionChannel();
            this.channel = made;
            this.asyncEvents = device.asyncEvents();
        } catch (RuntimeException failure) {
            if (made != null) {
                made.close();
            }
            domain.close();
            throw failure;
        }
    }

    /** Opens all of it, or nothing. */
    static VerbsFabric open(NodeOptions options) {
        Device device = Device.open(options.device().orElseGet(VerbsFabric::onlyDevice));
        try {
            return new VerbsFabric(options, device);
        } catch (RuntimeException failure) {
            device.close();
            throw failure;
        }
    }

    private static String onlyDevice() {
        List<String> names = Device.names();
        if (names.isEmpty()) {
            throw new IllegalStateException(
                    "this machine has no RDMA device: load the driver of its adapter, or make a"
                            + " soft-RoCE device with 'rdma link add rxe0 type rxe netdev eth0';"
                            + " NodeOptions.tcp does without");
        }
        if (names.size() > 1) {
            throw new IllegalArgumentException(
                    "this machine has several RDMA devices, choose one of " + names);
        }
        return names.getFirst();
    }

    @Override
    public String transport() {
        return Hello.Rdma.TRANSPORT;
    }

    @Override
    public String deviceName() {
        return device.name();
    }

    @Override
    public RegionSource regions() {
        return RegionSource.of(domain);
    }

    @Override
    public CompletionEvents events() {
        return channel;
    }

    @Override
    public void watch(Consumer<AsyncEvent> handler) {
        eventThread =
                Thread.ofPlatform()
                        .daemon()
                        .name("verbena-events")
                        .start(() -> watchEvents(handler));
    }

    private void watchEvents(Consumer<AsyncEvent> handler) {
        while (true) {
            try {
                AsyncEvent event = asyncEvents.await(EVENT_WAIT_NANOS);
                if (event != null) {
                    handler.accept(event);
                }
            } catch (IllegalStateException closed) {
                return;
            } catch (VerbsException failure) {
                LOG.log(Level.ERROR, "cannot read the device's events", failure);
                return;
            }
        }
    }

    @Override
    public VerbsLink link(@Nullable Hello peer) {
        return new VerbsLink(this, options, chooseGid(peer));
    }

    private Gid chooseGid(@Nullable Hello peer) {
        boolean ethernet = portAttributes.ethernet();
        return peer == null
                ? GidChoice.choose(gids, ethernet, options.gidIndex())
                : GidChoice.chooseTowards(gids, ethernet, options.gidIndex(), peer(peer).gid());
    }

    /** What a peer has said of its port, if that can reach this one. */
    Hello.Rdma peer(Hello hello) {
        if (!(hello.address() instanceof Hello.Rdma rdma)) {
            throw hello.otherTransport(transport());
        }
        if (rdma.ethernet() != portAttributes.ethernet()) {
            throw new IllegalStateException(
                    "%s is on %s, and this node's port %d of %s on %s: they cannot reach each other"
                            .formatted(
                                    hello.nodeName(),
                                    network(rdma.ethernet()),
                                    options.port(),
                                    deviceName(),
                                    network(portAttributes.ethernet())));
        }
        return rdma;
    }

    private static String network(boolean ethernet) {
        return ethernet ? "Ethernet (RoCE)" : "InfiniBand";
    }

    Device device() {
        return device;
    }

    ProtectionDomain domain() {
        return domain;
    }

    CompletionChannel channel() {
        return channel;
    }

    PortAttributes portAttributes() {
        return portAttributes;
    }

    /** Reads of a peer that one queue pair here may have outstanding. */
    int readsAsResponder() {
        return Math.min(MAX_READS, device.attributes().maxReadsAsResponder());
    }

    @Override
    public void close() {
        Thread watching = eventThread;
        new Closing()
                .then(asyncEvents::close)
                .then(() -> {
                    if (watching != null) {
                        ProgressThread.awaitEnd(watching);
                    }
                })
                .then(channel::close)
                .then(domain::close)
                .then(device::close)
                .end();
    }
}
