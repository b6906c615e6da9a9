package dev.verbena.bench;

import dev.verbena.transfer.NodeOptions;
import dev.verbena.verbs.Device;
import dev.verbena.verbs.Gid;
import java.time.Duration;
import java.util.List;

/**
 * The device that measurements run on, and the GID that both sides use.
 *
 * @param name the device's name
 * @param gidIndex index into the table of port 1
 */
record RdmaDevice(String name, int gidIndex) {
    /** The first device, with the first IPv4 GID of RoCE v2, or else the first GID. */
    static RdmaDevice first() {
        List<String> names = Device.names();
        if (names.isEmpty()) {
            throw new IllegalStateException("this machine has no RDMA device");
        }
        try (Device device = Device.open(names.getFirst())) {
            int index =
                    device.gids(1).stream()
                            .filter(gid ->
                                    gid.type() == Gid.Type.ROCE_V2 && gid.scope() == Gid.Scope.IPV4)
                            .mapToInt(Gid::index)
                            .findFirst()
                            .orElse(0);
            return new RdmaDevice(names.getFirst(), index);
        }
    }

    NodeOptions options() {
        return options(name, gidIndex);
    }

    /** A JVM that has just started in an emulated guest may take seconds for a handshake. */
    static NodeOptions options(String name, int gidIndex) {
        return NodeOptions.device(name).gidIndex(gidIndex).connectDeadline(Duration.ofMinutes(2));
    }
}
