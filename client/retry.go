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
)

// idempotencyHeader names a task, so that the service does it once.
const idempotencyHeader = "Idempotency-Key"

// firstPause is the pause before the second try. Each is twice the one before, up to
// longestPause, and a tenth more or less.
const firstPause, longestPause = time.Second, 30 * time.Second

// Error is an answer that is not one of success.
type Error struct {
	Status int
	// RequestID is the id of the request, by which its operator finds it.
	RequestID string
	// Fault is what the service says. Its code is empty where the answer is none of the
	// service, but of what stands before it.
	Fault domain.Error
}

// Error is what the service says.
func (e *Error) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("the service answered %d %s", e.Status, e.Fault.Message))
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Unwrap returns the error of the domain.
func (e *Error) Unwrap() error { return &e.Fault }

// Err returns an answer that is not one of success as an *Error; nil for others.
func (a *Answer) Err() error {
	if a.Status/100 == 2 {
		return nil
	}
	var body struct {
		Error struct {
			Code    domain.Code         `json:"code"`
			Message string              `json:"message"`
			Fields  []domain.FieldError `json:"fields"`
		} `json:"error"`
	}
	if json.Unmarshal(a.Body, &body) != nil || body.Error.Message == "" {
		body.Error.Message = http.StatusText(a.Status)
	}
	if to := a.Header.Get("Location"); a.Status/100 == 3 && to != "" {
		body.Error.Message = "and" + notFollowed(to)
	}
	return &Error{Status: a.Status, RequestID: a.Header.Get("X-Request-Id"), Fault: domain.Error{
		Code: body.Error.Code, Message: body.Error.Message, Fields: body.Error.Fields,
		RetryAfter: max(domain.RetryAfter(a.Header.Get("Retry-After"), Answered(a.Header)), 0),
	}}
}

// Answered is when an answer was sent by the service's clock, which may differ from this
// machine's; now where its headers do not say.
func Answered(h http.Header) time.Time {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Now()
	}
	return at
}

// again reports whether another try may succeed, and after which pause.
func (c *Client) again(err error, try int) (pause time.Duration, ok bool) {
	pause = min(firstPause<<min(try-1, 10), longestPause)
	pause += time.Duration(rand.Int64N(int64(pause)/5)) - pause/10
	refused, answered := errors.AsType[*Error](err)
	if !answered { // the request or its answer was lost
		return pause, !c.lasting(err)
	}
	after := refused.Fault.RetryAfter
	switch refused.Status {
	case http.StatusConflict: // another try with the same Idempotency-Key is under way
		ok = after > 0
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		ok = true
	}
	return max(pause, after), ok && after <= c.config.MaxWait
}

// lasting reports whether an error without an answer will be the same in the next try. A
// name that is not found is, unless the service has answered at it before: then it is the
// resolver or the network that is gone.
func (c *Client) lasting(err error) bool {
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		return lookup.IsNotFound && !c.met.Load()
	}
	return errors.Is(err, http.ErrSchemeMismatch) ||
		is[unsendable](err) || is[tooLarge](err) || is[*net.AddrError](err) || is[*net.ParseError](err) ||
		is[net.InvalidAddrError](err) || is[tls.RecordHeaderError](err) ||
		is[*tls.CertificateVerificationError](err) || is[x509.CertificateInvalidError](err) ||
		is[x509.HostnameError](err) || is[x509.UnknownAuthorityError](err) || is[x509.SystemRootsError](err)
}

// is reports whether an error is or wraps one of a type.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

type idempotencyKey struct{}

// WithIdempotencyKey returns a context in which a POST has that Idempotency-Key, and not a
// new one for each call: so that the task is done once even where a program that ended
// begins it again.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, idempotencyKey{}, key)
}

// Do sends a request until it succeeds, fails for good, or was sent Config.Tries times.
// Every answer that is not one of success is an *Error. A POST gets an Idempotency-Key; a
// DELETE whose first answer was lost may be answered 404.
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
		pause, ok := c.again(err, try)
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
