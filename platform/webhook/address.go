package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

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
	if err := checkForm(text); err != nil {
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

// checkForm reports what is wrong with the form of an address: it is to be an https
// URL with a host and no user, a port of 443, 1024 or above, and a host that nobody
// takes for a number (decisions 8.5, 8.6).
func checkForm(text string) error {
	if utf8.RuneCountInString(text) > domain.MaxWebhookURL {
		return fmt.Errorf("is longer than %d characters", domain.MaxWebhookURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || strings.ContainsAny(text, "\\# \t\r\n"):
		return errors.New("is not an https URL with a host, such as https://example.com/hook")
	case u.Scheme != "https":
		return errors.New("does not begin with https://")
	case u.User != nil:
		return errors.New("has a user name or password")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || !goodPort(uint16(n)) {
			return errors.New("has a port other than 443, or one below 1024")
		}
	}
	if strings.HasPrefix(u.Host, "[") {
		if address, err := netip.ParseAddr(u.Hostname()); err != nil || address.Zone() != "" {
			return errors.New("has a host that is no IP address")
		}
		return nil
	}
	return checkName(u.Hostname())
}

// checkName reports a host that is neither a domain name nor an IPv4 address of four
// decimal numbers: some readers take 0x7f.1 or 2130706433 for addresses.
func checkName(host string) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	name, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
	if err != nil || name == "" || len(name) > 253 || strings.ContainsAny(name, "%:[]") {
		return errors.New("has a host that is no domain name")
	}
	if _, err := netip.ParseAddr(name); err == nil { // in other dots or digits
		return errors.New("has a host that is no domain name: write the IP address in its usual form")
	}
	last := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	hex, isHex := strings.CutPrefix(last, "0x")
	if strings.Trim(last, "0123456789") == "" || isHex && strings.Trim(hex, "0123456789abcdef") == "" {
		return errors.New("has a host that is a number: write the IP address in its usual form")
	}
	return nil
}
