package phishing

import (
	_ "embed"
	"fmt"
	"net/netip"
	"strings"
)

//go:embed networks.txt
var defaultNetworks string

// Networks are the networks of mail scanners.
type Networks []netip.Prefix

// ParseNetworks reads networks, as addresses or CIDRs. Without any it returns
// the list that comes with the service.
func ParseNetworks(list []string) (Networks, error) {
	if len(list) == 0 {
		for line := range strings.Lines(defaultNetworks) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				list = append(list, line)
			}
		}
	}
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
func (n Networks) Contain(address string) bool {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	a = a.Unmap().WithZone("")
	for _, prefix := range n {
		if prefix.Contains(a) {
			return true
		}
	}
	return false
}
