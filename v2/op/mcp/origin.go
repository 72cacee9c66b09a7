package mcp

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"partnerapi/domain"
)

// Origins are the origins of pages of the service itself: that of its public
// address, and those of the address that it listens on. Where that is one of
// loopback, or all, they are those of loopback's names with its port.
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
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || host == "" || err == nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		hosts = append(hosts, "localhost", "127.0.0.1", "::1")
	}
	for _, host := range hosts {
		if host != "" {
			list = append(list, originOf(&url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}))
		}
	}
	return list
}

// originOf is the origin of an address as browsers write it.
func originOf(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	for of, port := range map[string]string{"http": ":80", "https": ":443"} {
		if scheme == of {
			host = strings.TrimSuffix(host, port)
		}
	}
	return scheme + "://" + host
}

// CheckOrigin reports Forbidden for a request of a page of another origin: a
// script that a browser runs. Other programs send no origin.
func (s *Server) CheckOrigin(r *http.Request) error {
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !s.origins[originOf(u)] {
			return domain.ErrForbidden("pages of another origin may not use this server")
		}
	}
	return nil
}
