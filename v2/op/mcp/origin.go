package mcp

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"partnerapi/domain"
)

// Origins returns the origins of the service's own pages: of its public URL, and of the address that it listens on. If
// that is loopback or all addresses, they include localhost, 127.0.0.1 and ::1 with its port. An invalid one has none.
func Origins(publicURL, listen string) []string {
	var list []string
	if u, err := url.Parse(publicURL); err == nil && u.Host != "" {
		list = append(list, originOf(u))
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return list
	}
	hosts := []string{host}
	ip, _ := netip.ParseAddr(host) // a name has the zero Addr, which is neither loopback nor unspecified
	listensOnAll := host == "" || ip.IsUnspecified()
	if listensOnAll || host == "localhost" || ip.IsLoopback() {
		hosts = append(hosts, "localhost", "127.0.0.1", "::1")
	}
	for _, host := range hosts {
		if host != "" {
			list = append(list, originOf(&url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}))
		}
	}
	return list
}

// originOf returns the origin of an address as browsers write it: in lower case, an international name in ASCII,
// without the scheme's default port.
func originOf(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if name := u.Hostname(); !isASCII(name) {
		if ascii, err := idna.Lookup.ToASCII(name); err == nil {
			host = ascii + strings.TrimPrefix(host, strings.ToLower(name))
		}
	}
	for name, port := range map[string]string{"http": ":80", "https": ":443"} {
		if scheme == name {
			host = strings.TrimSuffix(host, port)
		}
	}
	return scheme + "://" + host
}

// isASCII reports whether a text has only characters of ASCII.
func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0
}

// pageless are schemes with which browsers open no pages with scripts of that origin.
var pageless = []string{"ftp", "ftps", "file", "ws", "wss"}

// ParseOrigin parses an origin that an operator allows, such as https://app.example.com, and returns it as browsers
// write it. An error is a path, a query, * for all origins, or an origin that no page has.
func ParseOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || strings.Contains(text, "*") || text != u.Scheme+"://"+u.Host {
		return "", fmt.Errorf("%q is not an origin, such as https://app.example.com", text)
	}
	origin := originOf(u)
	if slices.Contains(pageless, u.Scheme) || !isASCII(origin) {
		return "", fmt.Errorf("%q is not the origin of a web page; use one such as https://app.example.com", text)
	}
	return origin, nil
}

// preflightSeconds is how long a browser may remember the response to a preflight request.
const preflightSeconds = 600

// CheckOrigin returns Forbidden for a request from a script of a page whose origin is not in Config.Origins. Programs
// other than browsers send no origin. For other pages it sets the headers with which browsers let scripts read the
// response (https://fetch.spec.whatwg.org/#http-cors-protocol), and answers preflight requests, which have no key.
func (s *Server) CheckOrigin(w http.ResponseWriter, r *http.Request) (answered bool, err error) {
	given := r.Header.Values("Origin")
	for _, origin := range given {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !s.origins[originOf(u)] {
			return false, domain.ErrForbidden("web pages of this origin may not use this server; the operator can allow the origin with --mcp-origins")
		}
	}
	if len(given) == 0 {
		return false, nil
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", given[0])
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, Retry-After, WWW-Authenticate, X-API-Key-Expires, X-Request-Id")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false, nil
	}
	h.Set("Access-Control-Allow-Methods", allowedMethods)
	h.Set("Access-Control-Allow-Headers", "*, Authorization") // * does not include Authorization
	h.Set("Access-Control-Max-Age", strconv.Itoa(preflightSeconds))
	w.WriteHeader(http.StatusNoContent)
	return true, nil
}
