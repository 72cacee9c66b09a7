package domain

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// The errors of CheckWebhookURL, in words for callers.
var (
	errURLForm     = errors.New("must be an https URL with a host, such as https://example.com/hook")
	errURLScheme   = errors.New("must begin with https://")
	errURLUser     = errors.New("must not contain a user name or a password")
	errURLFragment = errors.New("must not contain a fragment (#)")
	errURLPort     = errors.New("must have port 443 or a port from 1024 to 65535")
	errURLHost     = errors.New("must have a host that is a domain name of at most 253 characters or an IP address in its usual form")
	errURLLength   = errors.New("must be at most 2000 characters")
	errURLText     = errors.New("must not contain white space, control characters or backslashes")
)

// CheckWebhookURL returns an error, in words for callers, if the text is not a valid URL of an endpoint (decisions 8.5,
// 8.6). It does not check whether deliveries to the host are allowed, which depends on the host's addresses.
//
// A valid URL is an absolute https URL of at most MaxWebhookURL characters, without user info and fragment, without
// white space, control or invisible characters and backslashes, with the port 443 or a port from 1024 on. Its host is a
// domain name, which may be in Unicode, or an IP address in its usual form: numbers that some resolvers take for an
// IPv4 address, such as 0x7f.1, are invalid, and so is an IPv6 address with a zone.
func CheckWebhookURL(text string) error {
	if len(text) > utf8.UTFMax*MaxWebhookURL || utf8.RuneCountInString(text) > MaxWebhookURL {
		return errURLLength
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, isUnsafeInURL) {
		return errURLText
	}
	u, err := url.Parse(text)
	if err != nil {
		return errURLForm
	}
	switch {
	case u.Scheme != "https":
		return errURLScheme
	case u.Opaque != "" || u.Host == "":
		return errURLForm
	case u.User != nil:
		return errURLUser
	case strings.Contains(text, "#"):
		return errURLFragment
	}
	if err := checkURLHost(u.Hostname(), strings.HasPrefix(u.Host, "[")); err != nil {
		return err
	}
	return checkURLPort(u)
}

// isUnsafeInURL reports whether a character is invalid in a URL, or is interpreted differently by different programs.
func isUnsafeInURL(r rune) bool {
	return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || r == '\\' || r == utf8.RuneError
}

// checkURLPort returns an error unless the port is 443, or from 1024 to 65535 without leading zeros. A URL without a
// port and without a colon has the port 443.
func checkURLPort(u *url.URL) error {
	port := u.Port()
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return errURLPort
		}
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || port[0] == '0' || n != 443 && n < 1024 {
		return errURLPort
	}
	return nil
}

// SameWebhookServer reports whether the valid URLs of two endpoints have the same scheme, host and port, so that deliveries
// to both connect to the same server.
func SameWebhookServer(a, b string) bool {
	hostA, errA := serverOf(a)
	hostB, errB := serverOf(b)
	return errA == nil && errB == nil && hostA == hostB
}

// serverOf returns the server of the valid URL of an endpoint (WebhookServer).
func serverOf(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", errURLForm
	}
	return WebhookServer(u)
}

// WebhookServer returns the host of the URL of an endpoint, and its port unless that is 443, in the form in which
// deliveries connect to it. A domain name is in ASCII, in lower case and without a trailing dot, and an IPv6 address in
// its shortest form.
func WebhookServer(u *url.URL) (string, error) {
	host := u.Hostname()
	if address, err := netip.ParseAddr(host); err == nil && address.Is6() {
		host = "[" + address.String() + "]"
	} else {
		name, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
		if err != nil {
			return "", errURLHost
		}
		host = strings.ToLower(name)
	}
	if port := u.Port(); port != "" && port != "443" {
		host += ":" + port
	}
	return host, nil
}

// maxHost is the greatest length of a domain name, in bytes of its ASCII form.
const maxHost = 253

// checkURLHost returns an error for a host that is neither a domain name nor an IP address in its usual form. bracketed
// is true if the host was in brackets: it must be an IPv6 address without a zone.
func checkURLHost(host string, bracketed bool) error {
	if bracketed {
		address, err := netip.ParseAddr(host)
		if err != nil || !address.Is6() || address.Zone() != "" {
			return errURLHost
		}
		return nil
	}
	if address, err := netip.ParseAddr(host); err == nil && address.Is4() {
		return nil
	}

	name, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
	if err != nil || name == "" || len(name) > maxHost || strings.ContainsAny(name, "%:[]") {
		return errURLHost
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 {
			return errURLHost
		}
	}
	if isNumeric(labels[len(labels)-1]) {
		return errURLHost
	}
	return nil
}

// isNumeric reports whether the last label of a host is a decimal, octal or hexadecimal number: some programs take such
// a host for an IPv4 address (the URL Standard's "ends in a number").
func isNumeric(label string) bool {
	if digits, ok := strings.CutPrefix(strings.ToLower(label), "0x"); ok {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
