package domain

import (
	"net/netip"
	"testing"
)

// TestRemoteAddress: X-Forwarded-For counts from trusted proxies, from the right.
func TestRemoteAddress(t *testing.T) {
	trusted, err := ParseNetworks([]string{"10.0.0.0/8", "2001:db8:1::/48", "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"no proxy", "198.51.100.7:80", nil, "198.51.100.7"},
		{"a peer that is no proxy says something", "198.51.100.7:80", []string{"203.0.113.9"}, "198.51.100.7"},
		{"a proxy that says nothing", "10.0.0.1:80", nil, "10.0.0.1"},
		{"an address", "10.0.0.1:80", []string{"203.0.113.9"}, "203.0.113.9"},
		{"with a port", "10.0.0.1:80", []string{"203.0.113.9:5678"}, "203.0.113.9"},
		{"IPv6", "[2001:db8:1::1]:80", []string{"2001:db8::1"}, "2001:db8::1"},
		{"IPv6 in brackets", "10.0.0.1:80", []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"IPv6 with a port", "10.0.0.1:80", []string{"[2001:db8::1]:443"}, "2001:db8::1"},
		{"mapped", "[::ffff:10.0.0.1]:80", []string{"[::ffff:203.0.113.9]:1"}, "203.0.113.9"},
		{"a zone", "10.0.0.1:80", []string{"fe80::1%eth0"}, "fe80::1"},
		{"forged start", "10.0.0.1:80", []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"several proxies", "10.0.0.1:80", []string{"1.1.1.1,203.0.113.9:1 ,\t10.1.1.1:9,192.0.2.1"}, "203.0.113.9"},
		{"several headers", "10.0.0.1:80", []string{"1.1.1.1", "203.0.113.9", "10.1.1.1"}, "203.0.113.9"},
		{"proxies only", "10.0.0.1:80", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"no address", "10.0.0.1:80", []string{"unknown"}, "10.0.0.1"},
		{"no address behind a proxy", "10.0.0.1:80", []string{"203.0.113.9, _hidden, 10.0.0.2:80"}, "10.0.0.2"},
		{"an empty entry", "10.0.0.1:80", []string{"203.0.113.9,"}, "10.0.0.1"},
		{"an empty header", "10.0.0.1:80", []string{""}, "10.0.0.1"},
		{"no port", "10.0.0.1:80", []string{"203.0.113.9:"}, "10.0.0.1"},
		{"a port too high", "10.0.0.1:80", []string{"203.0.113.9:65536"}, "10.0.0.1"},
		{"IPv4 in brackets", "10.0.0.1:80", []string{"[203.0.113.9]"}, "10.0.0.1"},
		{"open brackets", "10.0.0.1:80", []string{"[2001:db8::1"}, "10.0.0.1"},
	} {
		if got := RemoteAddress(test.peer, test.forwarded, trusted); got != netip.MustParseAddr(test.want) {
			t.Errorf("%s: %v, not %s", test.name, got, test.want)
		}
	}
	if got := RemoteAddress("@", []string{"203.0.113.9"}, trusted); got.IsValid() {
		t.Errorf("a peer without an address: %v", got)
	}
	if _, err := ParseNetworks([]string{"10.0.0.0/8", "proxy"}); err == nil {
		t.Error("takes a network that is none")
	}
}

// TestCountedAddress: addresses of IPv6 are counted by their /64, and mapped ones as of IPv4.
func TestCountedAddress(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64",
		"2001:db8::ffff:ffff:ffff:ffff": "2001:db8::/64", "2001:db8:0:1::1": "2001:db8:0:1::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := CountedAddress(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is counted as %s", text, got)
		}
	}
	if got := CountedAddress(netip.Addr{}); got != "" {
		t.Errorf("no address is counted as %s", got)
	}
}
