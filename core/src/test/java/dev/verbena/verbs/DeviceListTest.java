package dev.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.util.List;
import org.junit.jupiter.api.Test;

/** What the library says of a device is what the device is, whichever it is. */
@DeviceTest
class DeviceListTest {
    @Test
    void opensEveryDeviceThatItLists() {
        for (String name : Device.names()) {
            try (Device device = Device.open(name)) {
                assertThat(device.name()).isEqualTo(name);
                assertThat(device).hasToString("device " + name);
            }
        }
    }

    @Test
    void namesTheDevicesThereAreWhenAskedForAnother() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Device.open("no-such-device"))
                .withMessageContaining("'no-such-device'")
                .withMessageContaining(Device.names().toString());
    }

    @Test
    void limitsAreThoseOfADevice() {
        try (Device device = TwoQueuePairs.openDevice()) {
            DeviceAttributes limits = device.attributes();

            assertThat(limits.portCount()).isPositive();
            assertThat(limits.maxQueuePairs()).isGreaterThan(1);
            assertThat(limits.maxWorkRequests()).isGreaterThanOrEqualTo(16);
            assertThat(limits.maxSge()).isPositive();
            assertThat(limits.maxCompletions()).isPositive();
            assertThat(limits.maxMemoryRegionBytes()).isNotZero();
            assertThat(limits.maxReadsAsResponder()).isPositive();
        }
    }

    @Test
    void portIsActiveAndNumbersStartAtOne() {
        try (Device device = TwoQueuePairs.openDevice()) {
            PortAttributes port = device.port(1);

            assertThat(port.active()).isTrue();
            assertThat(port.activeMtuBytes()).isBetween(256, port.maxMtuBytes());
            assertThat(port.maxMessageBytes()).isPositive();
            assertThat(port.gidCount()).isPositive();
            for (int number : new int[] {0, -1, device.attributes().portCount() + 1, 257}) {
                assertThatIllegalArgumentException()
                        .isThrownBy(() -> device.port(number))
                        .withMessageContaining("not port " + number);
                assertThatIllegalArgumentException().isThrownBy(() -> device.gids(number));
            }
        }
    }

    @Test
    void gidsAreThoseInUse() {
        try (Device device = TwoQueuePairs.openDevice()) {
            List<Gid> gids = device.gids(1);

            assertThat(gids).isNotEmpty();
            assertThat(gids).noneMatch(gid -> gid.scope() == Gid.Scope.EMPTY);
            assertThat(gids).isSortedAccordingTo((a, b) -> Integer.compare(a.index(), b.index()));
            assertThat(TwoQueuePairs.routableGid(device).interfaceIndex()).isNotNegative();
        }
    }

    @Test
    void refusesUseOnceClosed() {
        Device device = TwoQueuePairs.openDevice();
        device.close();
        device.close();

        assertThatIllegalStateException().isThrownBy(() -> device.port(1));
        assertThatIllegalStateException().isThrownBy(device::allocateProtectionDomain);
        assertThatIllegalStateException().isThrownBy(device::createCompletionChannel);
        assertThatIllegalStateException().isThrownBy(() -> device.createCompletionQueue(4));
        assertThatIllegalStateException().isThrownBy(device::asyncEvents);
    }

    @Test
    void refusesQueuesLargerThanTheDevices() {
        try (Device device = TwoQueuePairs.openDevice();
                ProtectionDomain domain = device.allocateProtectionDomain();
                CompletionQueue queue = device.createCompletionQueue(4)) {
            DeviceAttributes limits = device.attributes();
            int[][] sizes = {
                {limits.maxWorkRequests() + 1, 1, 0, 0}, {1, limits.maxSge() + 1, 0, 0},
                {1, 1, limits.maxWorkRequests() + 1, 0}, {1, 1, 1, limits.maxSge() + 1},
            };
            for (int[] size : sizes) {
                QueuePairOptions options = new QueuePairOptions(size[0], size[1], size[2], size[3]);
                assertThatIllegalArgumentException()
                        .isThrownBy(() -> domain.createQueuePair(options, queue, queue))
                        .withMessageContaining(options.toString());
            }
            for (int entries : new int[] {0, -1, limits.maxCompletions() + 1}) {
                assertThatIllegalArgumentException()
                        .isThrownBy(() -> device.createCompletionQueue(entries))
                        .withMessageContaining("not " + entries);
            }
        }
    }
}
