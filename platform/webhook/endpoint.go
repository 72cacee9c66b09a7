package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/egress"
)

const (
	// resolveWithin is how long Check waits for the addresses of a host.
	resolveWithin = 3 * time.Second
	// maxAnswer is the maximum number of bytes of a response's body that are read (decisions 8.4).
	maxAnswer = 64 << 10
	// maxHeader is the maximum length of a response's headers, in bytes.
	maxHeader = 32 << 10
	// idleFor is how long an idle connection is kept.
	idleFor = 90 * time.Second
	// maxIdle is the maximum number of idle connections, and maxIdleOf of those to one host, which may have the
	// endpoints of many subscriptions.
	maxIdle, maxIdleOf = 1000, 200
)

// Options configure Endpoints. The zero Options are those of production.
type Options struct {
	// AllowPrivate allows deliveries to private, local and special addresses, for tests and closed networks.
	AllowPrivate bool
	// Forward allows deliveries to any http or https URL, for a tool that forwards events to its own machine. It
	// implies AllowPrivate.
	Forward bool
	// CAFile is the name of a file of certificates in PEM that are trusted in addition to the system's; empty for none.
	CAFile string
	// Version is the version of the program in the header User-Agent; empty means "dev".
	Version string
	// Resolver resolves hosts; nil means the system's resolver.
	Resolver *net.Resolver
	// Clock gives the time of signatures and attempts; nil means the system's clock.
	Clock domain.Clock
}

// Endpoints is the HTTP client of deliveries. It is safe for concurrent use, and keeps connections until Close.
type Endpoints struct {
	allowPrivate bool
	parse        func(string) (*url.URL, error)
	resolver     *net.Resolver
	clock        domain.Clock
	agent        string
	transport    *http.Transport
}

// NewEndpoints returns endpoints. Unless AllowPrivate or Forward is set, each connection to a private, local or special
// address is refused. No proxy is used, so that the address connected to is the one checked. NewEndpoints fails if the
// file of certificates cannot be read.
func NewEndpoints(o Options) (*Endpoints, error) {
	trusted, err := readCAs(o.CAFile)
	if err != nil {
		return nil, err
	}
	e := &Endpoints{
		allowPrivate: o.AllowPrivate || o.Forward, parse: parseURL, resolver: cmp.Or(o.Resolver, net.DefaultResolver),
		clock: o.Clock, agent: "partnerapi-webhooks/" + cmp.Or(o.Version, "dev"),
	}
	if e.clock == nil {
		e.clock = domain.SystemClock{}
	}
	if o.Forward {
		e.parse = parseForward
	}
	dialer := &net.Dialer{Timeout: domain.WebhookDeadline, Resolver: o.Resolver}
	if !e.allowPrivate {
		dialer.Control = control
	}
	e.transport = &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted},
		TLSHandshakeTimeout: domain.WebhookDeadline, ResponseHeaderTimeout: domain.WebhookDeadline,
		DisableCompression: true, MaxResponseHeaderBytes: maxHeader, ForceAttemptHTTP2: true,
		MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdleOf, IdleConnTimeout: idleFor,
	}
	return e, nil
}

// readCAs returns the system's certificates, if they can be read, and those of a file. If name is empty it returns nil,
// which means the system's.
func readCAs(name string) (*x509.CertPool, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s contains no certificate in PEM", name)
	}
	return pool, nil
}

// Close closes idle connections.
func (e *Endpoints) Close() { e.transport.CloseIdleConnections() }

// Check returns InvalidRequest, of the field url, if deliveries to a URL are refused: because of its form or port, or
// because its host does not resolve, or any of the host's addresses is private, local or special (decisions 8.5). It
// waits for the resolver at most resolveWithin. If ctx ends, it returns ctx's error.
func (e *Endpoints) Check(ctx context.Context, address string) error {
	u, err := e.parse(address)
	if err != nil {
		return domain.ErrInvalid("url", err.Error())
	}
	addresses, err := e.resolve(ctx, u.Hostname())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil || len(addresses) == 0 || !e.allowPrivate && slices.ContainsFunc(addresses, isSpecial):
		return errHost
	}
	return nil
}

// errHost is the error for a host that does not resolve and also for a host with a private address, so that a caller
// cannot learn which names of the internal network exist.
var errHost = domain.ErrInvalid("url", "must have a host that resolves only to public IP addresses, not to "+
	"private, local or other special addresses; check the spelling of the host")

// isSpecial reports whether an address is private, local or otherwise special (package egress).
func isSpecial(address netip.Addr) bool { return egress.Check(address) != nil }

// resolve returns the addresses of a host, which may be an address itself.
func (e *Endpoints) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if at, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{at}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveWithin)
	defer cancel()
	addresses, err := e.resolver.LookupNetIP(ctx, "ip", host)
	for i := range addresses {
		addresses[i] = addresses[i].Unmap() // the resolver may return IPv4 addresses in IPv6 form
	}
	return addresses, err
}

// Answer is the response to an attempt.
type Answer struct {
	domain.DeliveryTry
	// RetryAfter is how long the endpoint asks to wait; 0 if it does not.
	RetryAfter time.Duration
}

// Succeeded reports whether the endpoint accepted the event.
func (a Answer) Succeeded() bool { return a.StatusCode >= 200 && a.StatusCode < 300 }

// Send makes one signed attempt and reports the response. It returns no error: an attempt without a response has
// StatusCode 0, and Response says why.
func (e *Endpoints) Send(ctx context.Context, m domain.DeliveryMessage) domain.DeliveryTry {
	return e.Post(ctx, m).DeliveryTry
}

// Post makes one signed attempt and reports the response, with its Retry-After. Redirects are not followed. An attempt
// without a response has StatusCode 0, and Response says why.
//
// The first 64 KiB of the response must arrive within domain.WebhookDeadline, counted from connecting: otherwise its
// status is ignored. The status counts if the endpoint closes the connection before the end of the response.
func (e *Endpoints) Post(ctx context.Context, m domain.DeliveryMessage) Answer {
	at, began := e.clock.Now(), time.Now() // began only measures the duration
	ctx, cancel := context.WithTimeout(ctx, domain.WebhookDeadline)
	defer cancel()
	a, err := e.post(ctx, m, at)
	if err != nil {
		a = Answer{}
		a.Response = storableText([]byte(describeFailure(ctx, err)))
	}
	a.At, a.DurationMS = at, time.Since(began).Milliseconds()
	return a
}

// post sends the request, signed with the time at, and reads the response. It returns an error if there is no response
// in time.
func (e *Endpoints) post(ctx context.Context, m domain.DeliveryMessage, at time.Time) (a Answer, err error) {
	u, err := e.parse(m.URL)
	if err != nil {
		return a, fmt.Errorf("the URL %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(m.Body))
	if err != nil {
		return a, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", e.agent)
	if err := Sign(request.Header, m, at); err != nil {
		return a, err
	}
	if m.Authorization != "" {
		request.Header.Set("Authorization", m.Authorization)
	}
	// This header lets the transport retry on a new connection if an idle connection turns
	// out to be closed. Without a value it is not sent.
	request.Header["Idempotency-Key"] = []string{}

	response, err := e.transport.RoundTrip(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil && ctx.Err() != nil { // other errors: the endpoint closed the connection
		return a, err
	}
	a.StatusCode, a.Response = response.StatusCode, storableText(redact(text, m.Authorization))
	a.RetryAfter = max(0, domain.RetryAfter(response.Header.Get("Retry-After"), at))
	return a, nil
}

// redact replaces the value of the header Authorization, and its credentials alone, in a response: an endpoint may repeat
// them, and callers who list deliveries must not see them.
func redact(answer []byte, authorization string) []byte {
	_, credentials, _ := strings.Cut(authorization, " ")
	for _, hidden := range []string{authorization, strings.TrimSpace(credentials)} {
		if hidden != "" {
			answer = bytes.ReplaceAll(answer, []byte(hidden), []byte("[authorization]"))
		}
	}
	return answer
}

// storableText returns the start of a response as text that the database can store: valid UTF-8 of at most
// domain.MaxTryResponse bytes, without NUL.
func storableText(answer []byte) string {
	text := answer[:min(len(answer), domain.MaxTryResponse)]
	valid := strings.ReplaceAll(strings.ToValidUTF8(string(text), "\uFFFD"), "\x00", "\uFFFD")
	if len(valid) > domain.MaxTryResponse { // a replacement character has three bytes
		valid = strings.ToValidUTF8(valid[:domain.MaxTryResponse], "")
	}
	return valid
}

// describeFailure describes why there was no response, for the owner of the endpoint. It does not contain the addresses
// to which a name resolved.
func describeFailure(ctx context.Context, err error) string {
	var lookup *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, egress.ErrSpecial):
		return egress.ErrSpecial.Error()
	case errors.Is(ctx.Err(), context.DeadlineExceeded), os.IsTimeout(err):
		return fmt.Sprintf("no complete response within %v", domain.WebhookDeadline)
	case ctx.Err() != nil:
		return "the attempt was interrupted"
	case errors.As(err, &lookup):
		return "the host does not resolve"
	case errors.As(err, &certificate):
		return "the certificate is not trusted: " + certificate.Err.Error()
	}
	var connection *net.OpError
	if errors.As(err, &connection) { // the text of connection contains the address
		return "no connection, or the connection ended: " + connection.Err.Error()
	}
	return "no response: " + err.Error()
}

// control is egress.Control, but also refuses ports that allowedPort does not allow.
func control(network, address string, raw syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !allowedPort(at.Port()) {
		return egress.ErrSpecial
	}
	return egress.Control(network, address, raw)
}

// allowedPort reports whether deliveries to a port are allowed (decisions 8.5).
func allowedPort(port uint16) bool { return port == 443 || port >= 1024 }

// parseURL parses the URL of an endpoint, and normalizes its host and port (domain.WebhookServer).
// The error says what is wrong.
func parseURL(text string) (*url.URL, error) {
	if err := domain.CheckWebhookURL(text); err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("is not a URL")
	}
	u.Host, err = domain.WebhookServer(u)
	return u, err
}

// parseForward parses any http or https URL.
func parseForward(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("is not an http or https URL with a host, such as http://localhost:3000/hook")
	}
	return u, nil
}
