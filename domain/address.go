package domain

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Networks is a list of IP networks.
type Networks []netip.Prefix

// ParseNetworks reads networks, each an address or a CIDR.
func ParseNetworks(list []string) (Networks, error) {
	var all Networks
	for _, text := range list {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, bad := netip.ParseAddr(text)
			if bad != nil {
				return nil, fmt.Errorf("%q is neither an address nor a CIDR such as 10.0.0.0/8", text)
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		all = append(all, prefix.Masked())
	}
	return all, nil
}

// Contain reports whether an address is in one of the networks.
func (n Networks) Contain(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	return slices.ContainsFunc(n, func(p netip.Prefix) bool { return p.Contains(address) })
}

// RemoteAddress returns the address that a request comes from: that of peer (address and
// port) or, if peer is a trusted proxy, the rightmost address of X-Forwarded-For that is
// not one (decisions 2.2). It ignores an entry that is not an address, and all to its
// left. It returns the zero Addr if peer is not an address.
func RemoteAddress(peer string, forwarded []string, trusted Networks) netip.Addr {
	address, _ := parseEntry(peer)
	rest := strings.Join(forwarded, ",")
	for rest != "" && address.IsValid() && trusted.Contain(address) {
		last := strings.LastIndexByte(rest, ',')
		next, ok := parseEntry(strings.TrimSpace(rest[last+1:]))
		if !ok {
			break
		}
		address, rest = next, rest[:max(last, 0)]
	}
	return address
}

// parseEntry reads an address with or without a port: 192.0.2.1, 192.0.2.1:80,
// 2001:db8::1, [2001:db8::1] or [2001:db8::1]:80.
func parseEntry(text string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil { // as the peer's is
		return at.Addr().Unmap().WithZone(""), true
	}
	address, err := netip.ParseAddr(text)
	if inner, bracketed := strings.CutPrefix(text, "["); err != nil && bracketed && strings.HasSuffix(inner, "]") {
		if address, err = netip.ParseAddr(strings.TrimSuffix(inner, "]")); err == nil && address.Is4() {
			return netip.Addr{}, false
		}
	}
	return address.Unmap().WithZone(""), err == nil
}

type addressKey struct{}

// WithAddress returns the context of a request from an address.
func WithAddress(ctx context.Context, address netip.Addr) context.Context {
	return context.WithValue(ctx, addressKey{}, address)
}

// AddressFrom is the address that the request of ctx comes from; the zero Addr where
// it is not known.
func AddressFrom(ctx context.Context) netip.Addr {
	address, _ := ctx.Value(addressKey{}).(netip.Addr)
	return address
}

// CountedAddress returns the name under which an address is counted: itself, or for IPv6
// its /64, all of which one caller has (decisions 2.2). It is empty for the zero Addr.
func CountedAddress(address netip.Addr) string {
	address = address.Unmap().WithZone("")
	if !address.Is6() {
		if !address.IsValid() {
			return ""
		}
		return address.String()
	}
	network, _ := address.Prefix(64) // which every address of IPv6 has
	return network.String()
}
