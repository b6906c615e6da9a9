package dev.verbena.verbs;

import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_GID_TYPE_ROCE_V1;
import static dev.verbena.bindings.ibverbs.ibverbs_constants.IBV_GID_TYPE_ROCE_V2;

import dev.verbena.bindings.Errno;
import dev.verbena.bindings.VerbsCalls;
import dev.verbena.bindings.VerbsInline;
import dev.verbena.bindings.VerbsLibrary;
import dev.verbena.bindings.ibverbs.ibv_context;
import dev.verbena.bindings.ibverbs.ibv_device_attr;
import dev.verbena.bindings.ibverbs.ibv_gid_entry;
import dev.verbena.bindings.ibverbs.ibv_port_attr;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * An RDMA device, opened.
 *
 * <p>Life: {@link #open}, allocate protection domains and queues on it, close those, {@link
 * #close}. Safe for use by several threads.
 */
public final class Device implements AutoCloseable {
    private final String name;
    private final MemorySegment context;
    private final Lifetime lifetime;
    private final DeviceAttributes attributes;

    private Device(String name, MemorySegment context) {
        this.name = name;
        this.context = context;
        this.attributes = query(name, context);
        this.lifetime = Lifetime.root(() -> "device " + name);
    }

    /**
     * Lists the RDMA devices of this machine.
     *
     * @return their names, such as {@code mlx5_0} or {@code rxe0}; empty if there are none
     * @throws dev.verbena.bindings.VerbsUnavailableException if libibverbs is not installed
     * @throws VerbsException if the kernel's list cannot be read. Verb: ibv_get_device_list(3)
     */
    public static List<String> names() {
        try (DeviceList list = DeviceList.read()) {
            List<String> names = new ArrayList<>();
            for (int i = 0; i < list.size(); i++) {
                names.add(VerbsCalls.ibv_get_device_name(list.device(i)));
            }
            return names;
        }
    }

    /**
     * Opens a device by name.
     *
     * @param name as {@link #names} lists it
     * @return the device, to be closed by the caller
     * @throws IllegalArgumentException if there is no such device; the message lists those that are
     * @throws dev.verbena.bindings.VerbsUnavailableException if libibverbs is not installed
     * @throws VerbsException if the device cannot be opened: EACCES when {@code /dev/infiniband} is
     *     not accessible. Verb: ibv_open_device(3)
     */
    public static Device open(String name) {
        Objects.requireNonNull(name, "name");
        try (DeviceList list = DeviceList.read()) {
            List<String> names = new ArrayList<>();
            for (int i = 0; i < list.size(); i++) {
                MemorySegment device = list.device(i);
                String found = VerbsCalls.ibv_get_device_name(device);
                if (found.equals(name)) {
                    return open(name, device);
                }
                names.add(found);
            }
            throw new IllegalArgumentException(
                    "no RDMA device is named '" + name + "'; this machine has " + names);
        }
    }

    private static Device open(String name, MemorySegment device) {
        MemorySegment context = VerbsCalls.ibv_open_device(device);
        if (context.equals(MemorySegment.NULL)) {
            throw new VerbsException(
                    "ibv_open_device",
                    VerbsCalls.errno(),
                    "device=" + name,
                    "check that /dev/infiniband/uverbs* exists and may be opened by this user");
        }
        try {
            return new Device(name, context);
        } catch (RuntimeException failure) {
            VerbsCalls.ibv_close_device(context);
            throw failure;
        }
    }

    /**
     * Names the device.
     *
     * @return its name, as given to {@link #open}
     */
    public String name() {
        return name;
    }

    /**
     * Tells what the device can do, as read when it was opened.
     *
     * @return its limits and capabilities
     */
    public DeviceAttributes attributes() {
        return attributes;
    }

    /**
     * Reads the state of a port.
     *
     * @param port number from 1 to {@link DeviceAttributes#portCount}
     * @return its state now
     * @throws IllegalArgumentException if there is no such port
     * @throws IllegalStateException if the device is closed
     * @throws VerbsException if the verb fails. Verb: ibv_query_port(3)
     */
    public PortAttributes port(int port) {
        checkPort(port);
        lifetime.enter();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment attr = ibv_port_attr.allocate(arena);
            VerbsException.check(
                    "ibv_query_port",
                    VerbsInline.ibv_query_port(context, (byte) port, attr),
                    "device=" + name + ", port=" + port);
            return PortAttributes.read(attr);
        } finally {
            lifetime.exit();
        }
    }

    /**
     * Reads the GID table of a port.
     *
     * @param port number from 1
     * @return its entries that are not empty, in order of index
     * @throws IllegalArgumentException if there is no such port
     * @throws IllegalStateException if the device is closed
     * @throws VerbsException if the table cannot be read. Verb: ibv_query_gid_ex(3)
     */
    public List<Gid> gids(int port) {
        int count = port(port).gidCount();
        List<Gid> gids = new ArrayList<>();
        lifetime.enter();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment entry = ibv_gid_entry.allocate(arena);
            for (int index = 0; index < count; index++) {
                int result = VerbsInline.ibv_query_gid_ex(context, port, index, entry, 0);
                if (result == Errno.ENODATA) {
                    continue;
                }
                VerbsException.check(
                        "ibv_query_gid_ex",
                        result,
                        "device=" + name + ", port=" + port + ", index=" + index);
                Gid gid = gid(index, entry);
                if (gid.scope() != Gid.Scope.EMPTY) {
                    gids.add(gid);
                }
            }
        } finally {
            lifetime.exit();
        }
        return gids;
    }

    /**
     * Allocates a protection domain: the set of memory and queue pairs that may work together.
     *
     * @return a new domain, to be closed before the device
     * @throws IllegalStateException if the device is closed
     * @throws VerbsException if there are too many. Verb: ibv_alloc_pd(3)
     */
    public ProtectionDomain allocateProtectionDomain() {
        return new ProtectionDomain(this);
    }

    /**
     * Creates a channel on which completion queues announce completions.
     *
     * @return a new channel, to be closed before the device
     * @throws IllegalStateException if the device is closed
     * @throws VerbsException if the verb fails. Verb: ibv_create_comp_channel(3)
     */
    public CompletionChannel createCompletionChannel() {
        return new CompletionChannel(this);
    }

    /**
     * Creates a completion queue without a channel, which can only be polled.
     *
     * @param entries room for completions, above 0: as many as work requests can be outstanding on
     *     all queue pairs that use it, since failed ones complete even when unsignalled
     * @return a new queue, to be closed after its queue pairs and before the device
     * @throws IllegalArgumentException if the device cannot have as many entries
     * @throws IllegalStateException if the device is closed
     * @throws VerbsException if the verb fails. Verb: ibv_create_cq(3)
     */
    public CompletionQueue createCompletionQueue(int entries) {
        return new CompletionQueue(this, null, entries);
    }

    /**
     * Starts listening to the device's asynchronous events: ports that go down, queue pairs that
     * fail, the device's end. One listener a device; events before it are kept by the kernel.
     *
     * @return the events, to be closed before the device
     * @throws IllegalStateException if the device is closed
     * @throws VerbsException if the event file cannot be made non-blocking, or there are too many
     *     open files
     */
    public AsyncEvents asyncEvents() {
        return new AsyncEvents(this);
    }

    /**
     * Closes the device. Does nothing if it is closed already.
     *
     * @throws IllegalStateException if something allocated on it is still open; the message names
     *     it
     * @throws VerbsException if the verb fails. Verb: ibv_close_device(3)
     */
    @Override
    public void close() {
        lifetime.close(() ->
                VerbsException.check(
                        "ibv_close_device",
                        VerbsCalls.ibv_close_device(context),
                        "device=" + name));
    }

    @Override
    public String toString() {
        return lifetime.toString();
    }

    /** The native context; only between enter and exit of {@link #lifetime}. */
    MemorySegment context() {
        return context;
    }

    Lifetime lifetime() {
        return lifetime;
    }

    int asyncFd() {
        return ibv_context.async_fd(context);
    }

    void checkPort(int port) {
        if (port < 1 || port > attributes.portCount()) {
            throw new IllegalArgumentException(
                    "device "
                            + name
                            + " has ports 1.."
                            + attributes.portCount()
                            + ", not port "
                            + port);
        }
    }

    private static DeviceAttributes query(String name, MemorySegment context) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment attr = ibv_device_attr.allocate(arena);
            VerbsException.check(
                    "ibv_query_device",
                    VerbsCalls.ibv_query_device(context, attr),
                    "device=" + name);
            return DeviceAttributes.read(attr);
        }
    }

    private static Gid gid(int index, MemorySegment entry) {
        byte[] bytes = ibv_gid_entry.gid(entry).toArray(ValueLayout.JAVA_BYTE);
        return new Gid(
                index,
                gidType(ibv_gid_entry.gid_type(entry)),
                new Gid.Address(bytes),
                ibv_gid_entry.ndev_ifindex(entry));
    }

    private static Gid.Type gidType(int number) {
        if (number == IBV_GID_TYPE_ROCE_V1()) {
            return Gid.Type.ROCE_V1;
        }
        return number == IBV_GID_TYPE_ROCE_V2() ? Gid.Type.ROCE_V2 : Gid.Type.INFINIBAND;
    }

    /** The kernel's list of devices, freed on close; opened devices outlive it. */
    private record DeviceList(MemorySegment devices) implements AutoCloseable {
        static DeviceList read() {
            VerbsLibrary.require();
            MemorySegment devices = VerbsCalls.ibv_get_device_list();
            if (!devices.equals(MemorySegment.NULL)) {
                return new DeviceList(devices);
            }
            int errno = VerbsCalls.errno();
            // ENOSYS: the kernel has no RDMA at all, which is to have no device.
            if (errno == Errno.ENOSYS) {
                return new DeviceList(MemorySegment.NULL);
            }
            throw new VerbsException("ibv_get_device_list", errno, "");
        }

        int size() {
            return (int) (devices.byteSize() / ValueLayout.ADDRESS.byteSize());
        }

        MemorySegment device(int index) {
            return devices.getAtIndex(ValueLayout.ADDRESS, index);
        }

        @Override
        public void close() {
            if (!devices.equals(MemorySegment.NULL)) {
                VerbsCalls.ibv_free_device_list(devices);
            }
        }
    }
}
