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

// Endpoints are the addresses of the vendors' services, without a version: for
// national clouds, and for tests. An empty one is that of the public service.
type Endpoints struct {
	// Graph is Microsoft Graph's.
	Graph string
	// Login is where Microsoft gives tokens.
	Login string
	// Google is the Admin SDK's. Where Google gives tokens stands in the credentials: it
	// must be https and a public address where this is Google's own address.
	Google string
}

func (e Endpoints) graph() string  { return trimmed(e.Graph, "https://graph.microsoft.com") }
func (e Endpoints) login() string  { return trimmed(e.Login, "https://login.microsoftonline.com") }
func (e Endpoints) google() string { return trimmed(e.Google, "https://admin.googleapis.com") }

func trimmed(address, usual string) string { return strings.TrimRight(cmp.Or(address, usual), "/") }

// CheckEndpoint reports an error where credentials must not be sent to an address:
// it is to be https, or http on this machine.
func CheckEndpoint(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("not a URL")
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q is not a URL of scheme, host and path", u.Redacted())
	case u.Scheme != "https" && (u.Scheme != "http" || !local):
		return fmt.Errorf("%q is not https", u.Redacted())
	}
	return nil
}

// Option changes how sources wait.
type Option func(*connector)

// WithClock makes sources read the time from clock, and wait by wait instead of a
// timer: for tests. wait returns the context's error where that ends first, and is
// called by several goroutines at once.
func WithClock(clock domain.Clock, wait func(ctx context.Context, d time.Duration) error) Option {
	return func(c *connector) { c.clock, c.wait = clock, wait }
}

// WithTransport puts what wrap returns around the transport of the client.
func WithTransport(wrap func(http.RoundTripper) http.RoundTripper) Option {
	return func(c *connector) { c.wrap = wrap }
}

// connector makes sources.
type connector struct {
	endpoints Endpoints
	client    *http.Client
	// public is the client for addresses that others name, which it connects to where
	// they are public.
	public *http.Client
	clock  domain.Clock
	wait   func(context.Context, time.Duration) error
	wrap   func(http.RoundTripper) http.RoundTripper // nil for nothing
}

// NewConnect returns a Connect that reads the directories at these addresses with
// a client; nil for the default one. It refuses redirects to other hosts. Settings
// and credentials that can't be right are an error that says what to do.
func NewConnect(e Endpoints, client *http.Client, options ...Option) Connect {
	c := connector{endpoints: e, clock: domain.SystemClock{}, wait: domain.Pause}
	for _, option := range options {
		option(&c)
	}
	own, public := http.Client{}, http.Client{}
	if client != nil {
		own, public = *client, *client
	}
	if transport, ok := http.DefaultTransport.(*http.Transport); ok && own.Transport == nil {
		transport = transport.Clone()
		transport.MaxIdleConnsPerHost = batchesAtOnce
		own.Transport, public.Transport = transport, onlyPublic(transport)
	}
	if c.wrap != nil {
		own.Transport, public.Transport = c.wrap(own.Transport), c.wrap(public.Transport)
	}
	own.CheckRedirect, public.CheckRedirect = sameHost, sameHost
	c.client, c.public = &own, &public
	return c.connect
}

// directly connects to public addresses, and passes on what goes by a proxy of the
// environment, whose address is the operator's.
type directly struct{ public, proxied *http.Transport }

func onlyPublic(transport *http.Transport) directly {
	public := transport.Clone()
	public.Proxy = nil
	public.DialContext = (&net.Dialer{Timeout: answerWithin, Control: egress.Control}).DialContext
	return directly{public, transport}
}

// RoundTrip sends a request.
func (d directly) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.proxied.Proxy != nil {
		if proxy, err := d.proxied.Proxy(r); err != nil || proxy != nil {
			return d.proxied.RoundTrip(r)
		}
	}
	return d.public.RoundTrip(r)
}

func (c connector) connect(
	_ context.Context, provider string, settings json.RawMessage, credentials []byte,
) (Source, error) {
	switch domain.Directory(provider) {
	case domain.Microsoft:
		s, err := read[MicrosoftSettings](settings)
		if err != nil {
			return nil, err
		}
		return c.microsoft(s, string(bytes.TrimSpace(credentials)))
	case domain.Google:
		s, err := read[GoogleSettings](settings)
		if err != nil {
			return nil, err
		}
		return c.google(s, credentials)
	}
	return nil, fmt.Errorf("the directory %q is not known: there are %s", provider,
		strings.Join(domain.Directory("").Values(), " and "))
}

func read[Settings any](text json.RawMessage) (s Settings, err error) {
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("the settings of the directory can't be read: %w", err)
	}
	return s, nil
}
