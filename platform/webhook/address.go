package webhook

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"golang.org/x/net/idna"

	"partnerapi/domain"
	"partnerapi/platform/egress"
)

// control is egress.Control, which refuses ports that are not delivered to as well.
func control(network, address string, raw syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !goodPort(at.Port()) {
		return egress.ErrSpecial
	}
	return egress.Control(network, address, raw)
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
