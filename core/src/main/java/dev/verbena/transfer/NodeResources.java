package dev.verbena.transfer;

import dev.verbena.verbs.CompletionChannel;
import dev.verbena.verbs.Device;
import dev.verbena.verbs.Gid;
import dev.verbena.verbs.PortAttributes;
import dev.verbena.verbs.ProtectionDomain;
import java.util.List;

/**
 * What a node has opened of its device, for the making of links.
 *
 * @param device the device
 * @param domain where memory and queue pairs live
 * @param channel where completions are announced
 * @param port the device's port
 * @param portAttributes its state when the node was opened
 * @param gids its GID table then
 */
record NodeResources(
        Device device,
        ProtectionDomain domain,
        CompletionChannel channel,
        int port,
        PortAttributes portAttributes,
        List<Gid> gids)
        implements AutoCloseable {

    private static final int MAX_READS = 255;

    /** Opens all of it, or nothing. */
    static NodeResources open(String deviceName, int port) {
        Device device = Device.open(deviceName);
        ProtectionDomain domain = null;
        CompletionChannel channel = null;
        try {
            PortAttributes attributes = device.port(port);
            if (!attributes.active()) {
                throw new IllegalStateException(
                        "port %d of device %s is not active: is its link up?"
                                .formatted(port, deviceName));
            }
            List<Gid> gids = device.gids(port);
            domain = device.allocateProtectionDomain();
            channel = device.createCompletionChannel();
            return new NodeResources(device, domain, channel, port, attributes, gids);
        } catch (RuntimeException failure) {
            if (domain != null) {
                domain.close();
            }
            device.close();
            throw failure;
        }
    }

    /** Reads of a peer that one queue pair here may have outstanding. */
    int readsAsResponder() {
        return Math.min(MAX_READS, device.attributes().maxReadsAsResponder());
    }

    @Override
    public void close() {
        channel.close();
        domain.close();
        device.close();
    }
}
