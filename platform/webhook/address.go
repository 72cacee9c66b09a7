package webhook

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
	"golang.org/x/net/idna"

	"partnerapi/domain"
)

// errSpecial says that an address lies in a network that is not delivered to.
var errSpecial = errors.New("a private, local or otherwise special address is not delivered to")

// azureHost is the address at which Azure's hosts answer their virtual machines. It
// is in no registry of special addresses, and nobody's on the internet.
var azureHost = netip.MustParsePrefix("168.63.129.16/32")

// guardian refuses the networks of IANA's registries of special addresses, multicast,
// and of IPv6 all but the global unicast range: loopback, link-local, unique local,
// and the IPv4-mapped, NAT64 (64:ff9b::/96 and 64:ff9b:1::/48), 6to4 and Teredo
// forms of IPv4 addresses.
var guardian = ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(azureHost))

// checkAddress reports errSpecial for an address that is not delivered to.
func checkAddress(address netip.Addr) error {
	if guardian.SafeAddr(address) != nil {
		return errSpecial
	}
	return nil
}

// control is net.Dialer.Control: it refuses the very address that is about to be
// connected to, whatever a name resolved to before.
func control(network, address string, raw syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || guardian.Safe(network, address, raw) != nil || !goodPort(at.Port()) {
		return errSpecial
	}
	return nil
}

// goodPort reports whether a port is delivered to (decisions 8.5).
func goodPort(port uint16) bool { return port == 443 || port >= 1024 }

// parseURL reads the address of an endpoint. Its host is as it is looked up: in
// ASCII, and without a dot at the end. The error says what is wrong with it.
func parseURL(text string) (*url.URL, error) {
	if err := domain.CheckWebhookURL(text); err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("is not a URL")
	}
	host := u.Hostname()
	if !strings.Contains(host, ":") {
		if host, err = idna.Lookup.ToASCII(strings.TrimSuffix(host, ".")); err != nil {
			return nil, errors.New("has a host that is no domain name")
		}
	} else {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && port != "443" {
		host += ":" + port
	}
	u.Host = host
	return u, nil
}

// parseForward reads any http or https URL.
func parseForward(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("is not an http or https URL with a host, such as http://localhost:3000/hook")
	}
	return u, nil
}
