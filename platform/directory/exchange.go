package directory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"

	"partnerapi/domain"
	"partnerapi/platform/egress"
)

const (
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 32 << 20
	// answerWithin bounds the time of a request and its answer.
	answerWithin = 30 * time.Second
	// maxFailures is how often a request is sent that fails each time.
	maxFailures = 5
	// maxMalformed is how often a request is sent that is answered with something
	// else than was asked for, such as a page to log in at.
	maxMalformed = 3
	// longestBackoff bounds a pause that the vendor did not name.
	longestBackoff = time.Minute
	// patience bounds the pauses for a throttled request, all together.
	patience = 30 * time.Minute
)

// session talks to the service of a vendor. It is safe for concurrent use.
type session struct {
	connector
	vendor string
	// tokens is the client for tokens, and fetch gets one with the HTTP client of the
	// context.
	tokens *http.Client
	fetch  func(context.Context) (*oauth2.Token, error)
	// denied is the error where no token is given.
	denied func(code, description string) error
	// refusal is the error of an answer that is neither a success nor temporary.
	refusal func(answer) error
	// secret is never shown.
	secret string

	// fetching is held while a token is fetched.
	fetching sync.Mutex
	token    atomic.Pointer[oauth2.Token]
}

// answer is a whole answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// retryable is a failure that another try may not meet.
type retryable struct {
	kind failureKind
	// after is how long the vendor asks to wait; below 0 where it does not say.
	after time.Duration
	err   error
}

func (r *retryable) Error() string { return r.err.Error() }

type failureKind int

const (
	failed failureKind = iota
	malformed
	throttled
)

func (s *session) failed(format string, args ...any) error {
	return &retryable{failed, -1, fault(s.vendor, format, args...)}
}

func (s *session) malformed(format string, args ...any) error {
	return &retryable{malformed, -1, fault(s.vendor, format, args...)}
}

func (s *session) throttled(after time.Duration) error {
	return &retryable{throttled, after, errors.New(s.vendor + " is throttling requests")}
}

// persist calls send until it succeeds, fails for good, or has failed too often,
// which is Temporary unless the answers were malformed. What a vendor asks to wait is
// waited.
func (s *session) persist(ctx context.Context, send func(context.Context) error) error {
	var times [3]int // by kind
	var waited time.Duration
	for {
		err := send(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var r *retryable
		if !errors.As(err, &r) {
			return err
		}
		times[r.kind]++
		after := r.after
		if after < 0 {
			after = min(time.Second<<min(times[r.kind]-1, 10), longestBackoff)
		}
		waited += max(after, time.Second) // so that a vendor who asks for no pause is not asked for ever

		switch {
		case r.kind == throttled && waited > patience:
			return &Temporary{fmt.Errorf("%w, for longer than %v: try again later", r.err, patience)}
		case r.kind == failed && times[failed] >= maxFailures:
			return &Temporary{fmt.Errorf("%w (tried %d times)", r.err, maxFailures)}
		case r.kind == malformed && times[malformed] >= maxMalformed:
			return fmt.Errorf("%w (tried %d times)", r.err, maxMalformed)
		}
		if err := s.wait(ctx, after); err != nil {
			return err
		}
	}
}

// call sends a request with a token, as often as it takes, and gives the answer's
// body to take. A token that is refused is renewed once.
func (s *session) call(
	ctx context.Context, method, address string, header http.Header, body []byte, take func([]byte) error,
) error {
	renewed := false
	return s.persist(ctx, func(ctx context.Context) error {
		for {
			token, err := s.authorize(ctx)
			if err != nil {
				return err
			}
			req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
			if err != nil {
				return err
			}
			req.Header = header.Clone()
			token.SetAuthHeader(req)

			a, err := s.exchange(s.client, req)
			switch {
			case err != nil:
				return err
			case a.status == http.StatusUnauthorized && !renewed:
				renewed = true
				s.token.CompareAndSwap(token, nil) // another request may have renewed it
			case a.status/100 != 2:
				return s.refusal(a)
			default:
				return take(a.body)
			}
		}
	})
}

// exchange sends a request and reads the answer: a JSON object, or one whose
// status says that the request was refused.
func (s *session) exchange(by *http.Client, req *http.Request) (answer, error) {
	ctx, cancel := context.WithTimeout(req.Context(), answerWithin)
	defer cancel()
	res, err := by.Do(req.WithContext(ctx))
	if err != nil {
		return answer{}, s.broken(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	a := answer{res.StatusCode, res.Header, body}

	switch {
	case err != nil:
		return a, s.broken(err)
	case a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable:
		return a, s.throttled(domain.RetryAfter(a.header.Get("Retry-After"), s.clock.Now()))
	case a.status == http.StatusRequestTimeout || a.status >= 500:
		return a, s.failed("fails with the status %d", a.status)
	case len(body) > maxAnswer:
		return a, fmt.Errorf("%s answers with more than %d MiB", s.vendor, maxAnswer>>20)
	case a.status/100 == 2 && !isObject(body):
		return a, s.malformed("answers with something else than JSON: is there a proxy or a page to log in between, or " +
			"the address of another service?")
	}
	return a, nil
}

func isObject(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) && json.Valid(body)
}

// broken is the failure of a request that had no whole answer.
func (s *session) broken(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // the URL may hold a position
	}
	if errors.Is(err, errRedirect) {
		return fmt.Errorf("%s %w", s.vendor, err)
	}
	if errors.Is(err, egress.ErrSpecial) {
		return fault(s.vendor, "gives no token at the token_uri of the credentials file: %w", egress.ErrSpecial)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return s.failed("did not answer within %v", answerWithin)
	}
	return s.failed("can't be reached, or broke off: %w", err)
}

var errRedirect = errors.New("redirects to another host, which is not followed")

// sameHost lets redirects be followed on the same host only: tokens go nowhere
// else.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		return fmt.Errorf("%w (%s)", errRedirect, req.URL.Host)
	}
	if len(via) >= 5 {
		return errors.New("too many redirects")
	}
	return nil
}

// quote puts what a vendor says into an error: one line, not too long, without
// the secrets that it was sent.
func (s *session) quote(parts ...string) string {
	text := strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
	if s.secret != "" {
		text = strings.ReplaceAll(text, s.secret, "…")
	}
	if token := s.token.Load(); token != nil {
		text = strings.ReplaceAll(text, token.AccessToken, "…")
	}
	if runes := []rune(text); len(runes) > 300 {
		text = string(runes[:300]) + "…"
	}
	return text
}

// property is a value of a JSON object that distinguishes absent from null: only the
// former is not given.
type property[T any] struct{ domain.Property[T] }

// UnmarshalJSON takes a value, or null.
func (p *property[T]) UnmarshalJSON(text []byte) error {
	p.Given = true
	return json.Unmarshal(text, &p.Value) // null leaves the zero value
}
