// Package egress defines to which addresses the service connects when a client or another party chose the host.
package egress

import (
	"errors"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrSpecial is returned for an address in a network that must not be connected to.
var ErrSpecial = errors.New("a private, local or otherwise special address is not connected to")

// azureHost is the address at which Azure's hosts answer their virtual machines. It is in no registry of special
// addresses, and is not used on the internet.
var azureHost = netip.MustParsePrefix("168.63.129.16/32")

// guardian refuses the networks of IANA's registries of special addresses, multicast, and all IPv6 but the global
// unicast range: loopback, link-local, unique local, and the IPv4-mapped, NAT64 (64:ff9b::/96 and 64:ff9b:1::/48),
// 6to4 and Teredo forms of IPv4 addresses.
var guardian = ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(azureHost))

// Check returns ErrSpecial for an address that must not be connected to.
func Check(address netip.Addr) error {
	if guardian.SafeAddr(address) != nil {
		return ErrSpecial
	}
	return nil
}

// Control is the Control function of a net.Dialer. It checks the address to which the dialer connects, so it does not
// matter to what the name resolved before. Its error is ErrSpecial.
func Control(network, address string, raw syscall.RawConn) error {
	if guardian.Safe(network, address, raw) != nil {
		return ErrSpecial
	}
	return nil
}
