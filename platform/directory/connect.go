package directory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/egress"
)

// Endpoints are the base addresses of the vendors' services, for national clouds and for tests. An empty address means
// the public service.
type Endpoints struct {
	// Graph is the address of Microsoft Graph.
	Graph string
	// Login is the address of Microsoft's token service.
	Login string
	// Google is the address of the Admin SDK. The address for tokens is in the credentials. If Google is the public
	// service, that must be https, and not in a private or special network.
	Google string
}

func (e Endpoints) graph() string  { return endpointOr(e.Graph, "https://graph.microsoft.com") }
func (e Endpoints) login() string  { return endpointOr(e.Login, "https://login.microsoftonline.com") }
func (e Endpoints) google() string { return endpointOr(e.Google, "https://admin.googleapis.com") }

// endpointOr returns the address, or the default if it is empty, without trailing slashes.
func endpointOr(address, fallback string) string {
	return strings.TrimRight(cmp.Or(address, fallback), "/")
}

// CheckEndpoint returns an error if credentials must not be sent to an address. It must be a URL of scheme, host and
// path, and https, or http on this machine.
func CheckEndpoint(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("the URL is invalid")
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q must consist only of a scheme, a host and a path", u.Redacted())
	case u.Scheme != "https" && (u.Scheme != "http" || !local):
		return fmt.Errorf("%q must be an https URL (http is allowed only for this machine)", u.Redacted())
	}
	return nil
}

// connector creates sources.
type connector struct {
	endpoints Endpoints
	client    *http.Client
	// public is the client for addresses that clients choose: it connects only to public addresses.
	public *http.Client
	clock  domain.Clock
	// wait waits between two requests; several goroutines call it at once.
	wait func(context.Context, time.Duration) error
}

// NewConnect returns a Connect for directories at these addresses. wrap, if not nil, wraps the transports of its
// HTTP clients, which refuse redirects to other hosts. Connect rejects invalid settings and credentials with an error
// that says what to do.
func NewConnect(e Endpoints, wrap func(http.RoundTripper) http.RoundTripper) Connect {
	return newConnector(e, wrap).connect
}

// newConnector returns a connector to directories at the endpoints e. wrap, if not nil, wraps the clients' transports.
func newConnector(e Endpoints, wrap func(http.RoundTripper) http.RoundTripper) connector {
	if wrap == nil {
		wrap = func(transport http.RoundTripper) http.RoundTripper { return transport }
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = batchesAtOnce
	return connector{
		endpoints: e, clock: domain.SystemClock{}, wait: domain.Pause,
		client: &http.Client{Transport: wrap(transport), CheckRedirect: sameHost},
		public: &http.Client{Transport: wrap(onlyPublic(transport)), CheckRedirect: sameHost},
	}
}

// publicTransport connects to public addresses only (package egress), or through a proxy of the environment, whose
// address is the operator's choice.
type publicTransport struct{ public, proxied *http.Transport }

// onlyPublic returns a pair: a copy of transport that connects to public addresses only, and transport, for proxies.
func onlyPublic(transport *http.Transport) publicTransport {
	public := transport.Clone()
	public.Proxy = nil // it connects directly
	public.DialContext = (&net.Dialer{Timeout: answerWithin, Control: egress.Control}).DialContext
	return publicTransport{public, transport}
}

// RoundTrip sends r through the proxy that the environment sets for it, otherwise directly, to a public address only.
func (t publicTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.proxied.Proxy != nil {
		if proxy, err := t.proxied.Proxy(r); err != nil || proxy != nil { // with a bad setting, proxied returns its error
			return t.proxied.RoundTrip(r)
		}
	}
	return t.public.RoundTrip(r)
}

// connect implements Connect: it returns the source of a directory of the provider.
func (c connector) connect(provider domain.Directory, settings json.RawMessage, credentials []byte) (Source, error) {
	switch provider {
	case domain.Microsoft:
		s, err := decodeSettings[MicrosoftSettings](settings)
		if err != nil {
			return nil, err
		}
		return c.newMicrosoft(s, string(bytes.TrimSpace(credentials)))
	case domain.Google:
		s, err := decodeSettings[GoogleSettings](settings)
		if err != nil {
			return nil, err
		}
		return c.newGoogle(s, credentials)
	}
	return nil, fmt.Errorf("the directory %q is not known: there are %s", provider,
		strings.Join(provider.Values(), " and "))
}

// decodeSettings decodes the settings of a connection.
func decodeSettings[Settings any](text json.RawMessage) (s Settings, err error) {
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("the settings of the directory can't be read: %w", err)
	}
	return s, nil
}

// MicrosoftSettings are the non-secret settings of a connection to a Microsoft Entra ID. Its credentials are the
// app's client secret.
type MicrosoftSettings struct {
	// Tenant is the id or a domain of the tenant.
	Tenant string `json:"tenant"`
	// AppID is the id of the registered app (its client id).
	AppID string `json:"app_id"`
	// Group is the object id of the group whose transitive members are synced; empty for every account.
	Group string `json:"group,omitempty"`
}

// GoogleSettings are the non-secret settings of a connection to a Google Workspace. Its credentials are the JSON
// key of a service account.
type GoogleSettings struct {
	// Admin is the email address of the administrator for whom the service account acts.
	Admin string `json:"admin"`
	// Domain is the only domain that is synced; empty for all domains of the customer.
	Domain string `json:"domain,omitempty"`
}

// Connect returns the Source of a connection from its provider, its settings, and its decrypted credentials. It does
// not call the directory yet.
type Connect func(provider domain.Directory, settings json.RawMessage, credentials []byte) (Source, error)
