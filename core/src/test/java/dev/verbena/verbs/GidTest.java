package dev.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

/** A GID's scope is that of the address in it; GIDs compare and copy by value. */
class GidTest {
    @Test
    void tellsTheScopeOfAnAddress() throws UnknownHostException {
        assertThat(new Gid.Address(new byte[16]).scope()).isEqualTo(Gid.Scope.EMPTY);
        assertThat(ipv6("fe80::1").scope()).isEqualTo(Gid.Scope.LINK_LOCAL);
        assertThat(ipv6("febf::1").scope()).isEqualTo(Gid.Scope.LINK_LOCAL);
        assertThat(ipv6("fec0::1").scope()).isEqualTo(Gid.Scope.GLOBAL);
        assertThat(ipv6("2001:db8::1").scope()).isEqualTo(Gid.Scope.GLOBAL);
        assertThat(ipv6("::1").scope()).isEqualTo(Gid.Scope.GLOBAL);
        assertThat(mapped("00000000000000000000ffff0a4d0001").scope()).isEqualTo(Gid.Scope.IPV4);
        assertThat(mapped("00000000000000000000fffe0a4d0001").scope()).isEqualTo(Gid.Scope.GLOBAL);
        assertThat(mapped("00000000000000000001ffff0a4d0001").scope()).isEqualTo(Gid.Scope.GLOBAL);
    }

    @Test
    void showsAddressesAsPeopleWriteThem() throws UnknownHostException {
        assertThat(mapped("00000000000000000000ffff0a4d0001")).hasToString("::ffff:10.77.0.1");
        assertThat(ipv6("fe80::1")).hasToString("fe80:0:0:0:0:0:0:1");
        assertThat(new Gid(1, Gid.Type.ROCE_V2, mapped("00000000000000000000ffff0a4d0001"), 3))
                .hasToString("gid[1] ::ffff:10.77.0.1 ROCE_V2");
    }

    @Test
    void comparesByValueAndCopiesItsBytes() {
        byte[] bytes = HexFormat.of().parseHex("00000000000000000000ffff0a4d0001");
        Gid.Address address = new Gid.Address(bytes);
        bytes[15] = 9;

        assertThat(address).isEqualTo(mapped("00000000000000000000ffff0a4d0001"));
        assertThat(address).hasSameHashCodeAs(mapped("00000000000000000000ffff0a4d0001"));
        assertThat(address).isNotEqualTo(new Gid.Address(bytes));
        address.toArray()[15] = 9;
        assertThat(address.toArray()[15]).isEqualTo((byte) 1);
    }

    @Test
    void refusesOtherLengths() {
        for (int length : new int[] {0, 4, 15, 17}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> new Gid.Address(new byte[length]))
                    .withMessage("a GID has 16 bytes, not " + length);
        }
    }

    private static Gid.Address ipv6(String text) throws UnknownHostException {
        return new Gid.Address(InetAddress.getByName(text).getAddress());
    }

    private static Gid.Address mapped(String hex) {
        return new Gid.Address(HexFormat.of().parseHex(hex));
    }
}
