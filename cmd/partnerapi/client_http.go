package main

import (
	"fmt"
	"net/http"
	"time"
)

// newHTTPClient returns the client of commands that call a service, through transport;
// within bounds a call, 0 does not. A redirect is an error: the key, or the signature,
// is for the address that was given alone.
func newHTTPClient(transport http.RoundTripper, within time.Duration) *http.Client {
	return &http.Client{
		Transport: transport, Timeout: within,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			return &redirected{from: via[0].URL.Host, to: r.URL.String()}
		},
	}
}

// redirected is that a service answered with a redirect.
type redirected struct{ from, to string }

// Error says where it leads.
func (e *redirected) Error() string {
	return fmt.Sprintf("%s redirects to %s, which is not followed: give the address of the service itself", e.from, e.to)
}
