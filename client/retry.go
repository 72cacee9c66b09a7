package client

import (
	"context"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// idempotencyHeader is the header by which the service recognizes a repeated request, and runs it once.
const idempotencyHeader = "Idempotency-Key"

// firstPause is the pause before the second attempt. Each pause is twice the previous one, up to longestPause, with
// 10% jitter.
const firstPause, longestPause = time.Second, 30 * time.Second

// Error is a response other than a success.
type Error struct {
	Status int
	// RequestID is the id of the request in the service's log.
	RequestID string
	// Fault is the service's error. Its Fields name the parts of the request that are wrong or that conflict, such as
	// email if the user exists. Its code is empty if the response is not from the service, but, for example, from a proxy
	// in front of it.
	Fault domain.Error
}

// Error returns the service's message.
func (e *Error) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("the service returned %d %s", e.Status, e.Fault.Message))
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Unwrap returns the domain error.
func (e *Error) Unwrap() error { return &e.Fault }

// Err returns the *Error of a response other than a success; nil for a success.
func (a *Answer) Err() error {
	if a.Status/100 == 2 {
		return nil
	}
	var body op.ErrorEnvelope
	if json.Unmarshal(a.Body, &body) != nil || body.Error.Message == "" {
		body.Error.Message = http.StatusText(a.Status)
	}
	if to := a.Header.Get("Location"); a.Status/100 == 3 && to != "" {
		body.Error.Message = "and" + redirectText(to) // as Error writes it: answered 301 and redirects to
	}
	return &Error{Status: a.Status, RequestID: a.Header.Get("X-Request-Id"), Fault: domain.Error{
		Code: body.Error.Code, Message: body.Error.Message, Fields: body.Error.Fields,
		RetryAfter: max(domain.RetryAfter(a.Header.Get("Retry-After"), Answered(a.Header)), 0),
	}}
}

// Answered returns the time of a response (the header Date), by the service's clock, which may differ from this
// machine's. It returns this machine's time if the headers have no valid one.
func Answered(h http.Header) time.Time {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Now()
	}
	return at
}

// retryPause reports whether a request that failed with err, after the given number of tries, is to be sent again, and
// returns the pause before that. It is not sent again if another attempt would fail too, or if Retry-After is longer
// than Config.MaxWait.
func (c *Client) retryPause(err error, tries int) (pause time.Duration, retry bool) {
	pause = min(firstPause<<min(tries-1, 10), longestPause)        // without overflow
	pause += time.Duration(rand.Int64N(int64(pause)/5)) - pause/10 // up to a tenth more or less
	response, ok := errors.AsType[*Error](err)
	if !ok { // there is no complete response
		return pause, !c.isPermanent(err)
	}
	retryAfter, retryable := response.Fault.RetryAfter, false
	switch response.Status {
	case http.StatusConflict: // with Retry-After, an attempt with the same Idempotency-Key is still running
		retryable = retryAfter > 0
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		retryable = true
	}
	return max(pause, retryAfter), retryable && retryAfter <= c.config.MaxWait
}

// isPermanent reports whether another attempt after an error without a response would fail too. An unknown host name is
// permanent, unless there was a response before: then the resolver or the network is down.
func (c *Client) isPermanent(err error) bool {
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		return lookup.IsNotFound && !c.answered.Load()
	}
	return errors.Is(err, http.ErrSchemeMismatch) ||
		isA[unsendableError](err) || isA[tooLargeError](err) || isA[*net.AddrError](err) || isA[*net.ParseError](err) ||
		isA[net.InvalidAddrError](err) || isA[tls.RecordHeaderError](err) ||
		isA[*tls.CertificateVerificationError](err) || isA[x509.CertificateInvalidError](err) ||
		isA[x509.HostnameError](err) || isA[x509.UnknownAuthorityError](err) || isA[x509.SystemRootsError](err)
}

// isA reports whether err's chain has an error of type E.
func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

type idempotencyKey struct{}

// WithIdempotencyKey returns a context in which a POST has the given Idempotency-Key instead of a new key for each
// call. So the service runs a call once even if a restarted program repeats it.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, idempotencyKey{}, key)
}

// Do sends a request until it succeeds, fails permanently, has been sent Config.Tries times, or ctx ends. It returns
// the last Answer and its error: an *Error for every response other than a success. A POST without an Idempotency-Key
// gets one; a DELETE whose first response was lost may fail with 404.
func (c *Client) Do(ctx context.Context, r Request) (*Answer, error) {
	if r.Method == http.MethodPost && r.Header.Get(idempotencyHeader) == "" {
		key, given := ctx.Value(idempotencyKey{}).(string)
		if !given {
			key = crand.Text()
		}
		header := http.Header{}
		maps.Copy(header, r.Header)
		header.Set(idempotencyHeader, key)
		r.Header = header
	}
	for try := 1; ; try++ {
		a, err := c.Send(ctx, r)
		if err == nil {
			err = a.Err()
		}
		if err == nil || ctx.Err() != nil || try >= c.config.Tries {
			return a, err
		}
		pause, ok := c.retryPause(err, try)
		if !ok {
			return a, err
		}
		if c.config.Retrying != nil {
			c.config.Retrying(err, pause)
		}
		if err := c.config.Wait(ctx, pause); err != nil {
			return a, err
		}
	}
}
