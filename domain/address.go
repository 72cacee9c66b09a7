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

// ParseNetworks parses networks, each an address or a CIDR. It sets host bits to zero.
func ParseNetworks(list []string) (Networks, error) {
	var all Networks
	for _, text := range list {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, err := netip.ParseAddr(text)
			if err != nil {
				return nil, fmt.Errorf("%q is neither an IP address nor a network such as 10.0.0.0/8", text)
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

// RemoteAddress returns the address from which a request comes. That is peer (address and port) or, if peer is a
// trusted proxy, the rightmost address of X-Forwarded-For that is not a trusted proxy or, if all are, the leftmost
// (decisions 2.2). It ignores an entry that is not an address, and all entries to its left. If peer is not an address,
// it returns the zero Addr.
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

// parseEntry parses an address with or without a port: 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1] or
// [2001:db8::1]:80. The result has no zone. ok is false for any other text.
func parseEntry(text string) (address netip.Addr, ok bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	address, err := netip.ParseAddr(text)
	if inner, bracketed := strings.CutPrefix(text, "["); bracketed && strings.HasSuffix(inner, "]") {
		if address, err = netip.ParseAddr(strings.TrimSuffix(inner, "]")); address.Is4() {
			return netip.Addr{}, false // only IPv6 has brackets
		}
	}
	return address.Unmap().WithZone(""), err == nil
}

type addressKey struct{}

// WithAddress returns the context of a request from an address.
func WithAddress(ctx context.Context, address netip.Addr) context.Context {
	return context.WithValue(ctx, addressKey{}, address)
}

// AddressFrom returns the address from which the request of ctx comes, or the zero Addr if it is unknown.
func AddressFrom(ctx context.Context) netip.Addr {
	address, _ := ctx.Value(addressKey{}).(netip.Addr)
	return address
}

// CountedAddress returns the name under which the requests of an address are counted: the address or, for IPv6, its /64
// network, which usually belongs to one caller (decisions 2.2). For the zero Addr it returns "".
func CountedAddress(address netip.Addr) string {
	address = address.Unmap().WithZone("")
	if !address.Is6() {
		if !address.IsValid() {
			return ""
		}
		return address.String()
	}
	network, _ := address.Prefix(64) // cannot fail for IPv6
	return network.String()
}
