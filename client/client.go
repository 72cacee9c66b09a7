// Package client calls the operations of a running service over HTTP. Package api (v2/api) declares them; their inputs
// and outputs are the arguments and the results.
//
//	c, err := client.New(client.Config{URL: "https://api.example.com", Key: key})
//	…
//	for user, err := range client.Items(ctx, c, api.ListUsers, in) {
//		…
//	}
//
// A request that may succeed later is retried, with growing pauses and not before Retry-After. Every POST has an
// Idempotency-Key, the same in each attempt. The API key is sent to the given address only: a redirect is an error. A
// response other than a success is an *Error, in which errors.As finds the *domain.Error. Verify checks the signature
// of a webhook's delivery.
package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Config configures a Client. Only URL is required.
type Config struct {
	// URL is the address of the service, without /v2.
	URL string
	Key string
	// UserAgent identifies the program to the service; empty means partnerapi-go with the latest release.
	UserAgent string
	// Timeout is the time limit of an attempt, including the reading of the response; 0 means 30 seconds.
	Timeout time.Duration
	// MaxBody is the maximum size of a response's body, in bytes; 0 means 64 MiB.
	MaxBody int64
	// Tries is the maximum number of attempts per request; 0 means 5.
	Tries int
	// MaxWait is the longest Retry-After that a request waits for; with a longer one it returns the error at once. 0
	// means two minutes, after which every limit per minute allows requests again.
	MaxWait time.Duration
	// Wait waits for a duration; if the context ends first, it returns the context's error. nil means domain.Pause.
	Wait func(context.Context, time.Duration) error
	// Retrying, if set, is called before the pause between two attempts.
	Retrying func(err error, pause time.Duration)
	// Transport sends requests; nil means a copy of http.DefaultTransport.
	Transport http.RoundTripper
}

// String describes the configuration without the key.
func (c Config) String() string {
	key := "no key"
	if c.Key != "" {
		key = "a key"
	}
	return "a client of " + redactAddress(c.URL) + " with " + key
}

// Format writes String for every verb.
func (c Config) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, c.String()) }

// LogValue returns String, for logs.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// redactAddress replaces the part of an address before its last @, which may contain a password, by an ellipsis.
func redactAddress(address string) string {
	if at := strings.LastIndex(address, "@"); at >= 0 {
		return "…" + address[at:]
	}
	return address
}

// userAgent is the default of Config.UserAgent.
var userAgent = "partnerapi-go/" + op.Latest.String()

// Client calls a service. It is safe for concurrent use.
type Client struct {
	config Config        // without the key
	key    func() string // a function, so that fmt does not print the key
	// base is the service's address without a trailing slash; address is the same, parsed.
	base     string
	address  *url.URL
	http     *http.Client
	answered *atomic.Bool // true after the first response to any request
}

// New returns a client of the service at c.URL, or an error if that cannot be the address of a service.
func New(c Config) (*Client, error) {
	address, err := parseAddress(c.URL)
	if err != nil {
		return nil, err
	}
	c.MaxBody, c.UserAgent = cmp.Or(c.MaxBody, 64<<20), cmp.Or(c.UserAgent, userAgent)
	c.Tries, c.MaxWait = cmp.Or(c.Tries, 5), cmp.Or(c.MaxWait, 2*time.Minute)
	if c.Wait == nil {
		c.Wait = domain.Pause
	}
	if c.Transport == nil {
		c.Transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	key := c.Key
	c.Key = "" // only the function key returns it, so that fmt does not print it
	return &Client{
		config: c, key: func() string { return key }, base: strings.TrimRight(c.URL, "/"), address: address,
		answered: new(atomic.Bool),
		http: &http.Client{
			Transport: c.Transport, Timeout: cmp.Or(c.Timeout, 30*time.Second),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// parseAddress parses the address of a service: an http or https URL without a query, a fragment or a user, that does
// not end in /v1 or /v2.
func parseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.RawQuery != "", u.Fragment != "",
		slices.Contains([]string{"v1", "v2"}, path.Base(u.Path)):
		return nil, fmt.Errorf("%q is not the URL of a service; use a URL such as https://api.example.com, without /v1 or /v2",
			redactAddress(address))
	case u.User != nil:
		return nil, fmt.Errorf("the URL %q contains a user, which is not sent; use a URL such as https://api.example.com",
			redactAddress(address))
	}
	return u, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// HTTP returns an HTTP client for other protocols of the service: it sends the key, to this service only, follows
// no redirect and has no timeout.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: keyTransport{c}, CheckRedirect: rejectRedirect}
}

// keyTransport adds the key to requests to the service, and rejects requests to other hosts.
type keyTransport struct{ *Client }

func (k keyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != k.address.Scheme || r.URL.Host != k.address.Host {
		if r.Body != nil {
			_ = r.Body.Close() // every RoundTripper must close it
		}
		return nil, fmt.Errorf("the key is only for %s, not for %s", k.address.Host, r.URL.Host)
	}
	r = r.Clone(r.Context())
	r.Header.Set("X-API-Key", k.key())
	r.Header.Set("User-Agent", k.config.UserAgent)
	return k.config.Transport.RoundTrip(r)
}

// rejectRedirect is a CheckRedirect that returns an error with the target of the redirect.
func rejectRedirect(r *http.Request, via []*http.Request) error {
	return errors.New(via[0].URL.Host + redirectText(r.URL.String()))
}

// redirectText returns the end of the error message about a redirect to an address.
func redirectText(to string) string {
	return " redirects to " + to + ", but redirects are not followed; use the URL of the service itself"
}

// Request is a request to the service.
type Request struct {
	// Path is the part of the URL after Config.URL, with the query.
	Method, Path string
	// Body is JSON; empty for none.
	Body []byte
	// Header adds headers, or replaces those that every request has.
	Header http.Header
	// NoKey leaves the key out.
	NoKey bool
}

// Answer is the response to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Send sends a request once. An error means that no complete response arrived: the Answer is then nil or incomplete. A
// response with an error status is not an error (see Answer.Err).
func (c *Client) Send(ctx context.Context, r Request) (*Answer, error) {
	out, err := c.request(ctx, r)
	if err != nil {
		return nil, unsendableError{err}
	}
	response, err := c.http.Do(out)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	c.answered.Store(true)
	a := &Answer{Status: response.StatusCode, Header: response.Header}
	a.Body, err = io.ReadAll(io.LimitReader(response.Body, c.config.MaxBody+1))
	if err == nil && int64(len(a.Body)) > c.config.MaxBody {
		err = tooLargeError{c.config.MaxBody}
	}
	if err != nil {
		return a, fmt.Errorf("read the response to %s %s%s: %w", r.Method, c.base, r.Path, err)
	}
	return a, nil
}

// request returns the HTTP request, or an error for a request that cannot be sent. Its errors never contain the key.
func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	if !strings.HasPrefix(r.Path, "/") {
		return nil, fmt.Errorf("%q is not a path; it must begin with a slash", r.Path)
	}
	out, err := http.NewRequestWithContext(ctx, r.Method, c.base+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	out.Header.Set("User-Agent", c.config.UserAgent)
	if len(r.Body) > 0 {
		out.Header.Set("Content-Type", "application/json")
	}
	if key := c.key(); key != "" && !r.NoKey {
		out.Header.Set("X-API-Key", key)
	}
	maps.Copy(out.Header, r.Header)

	for name, values := range out.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return nil, fmt.Errorf("%q is not a valid header name", name)
		}
		if slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }) {
			return nil, fmt.Errorf("the header %s contains a character that is not allowed in headers, such as a line break", name)
		}
	}
	return out, nil
}

// unsendableError is the error for a request that cannot be sent, so that it is not retried.
type unsendableError struct{ error }

func (e unsendableError) Unwrap() error { return e.error }

// tooLargeError is the error for a response over Config.MaxBody.
type tooLargeError struct{ most int64 }

func (e tooLargeError) Error() string { return fmt.Sprintf("it is over %d bytes", e.most) }
