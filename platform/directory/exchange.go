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
	// maxFailures is the number of failures after which a request is not sent again.
	maxFailures = 5
	// maxMalformed is the number of malformed answers, such as a login page, after which a request is not sent again.
	maxMalformed = 3
	// longestBackoff bounds a pause if the vendor does not ask for one.
	longestBackoff = time.Minute
	// patience bounds the sum of the pauses for a throttled request.
	patience = 30 * time.Minute
)

// session calls a vendor's service. It is safe for concurrent use.
type session struct {
	connector
	vendor string
	// fetch requests a token with the HTTP client in its context: authorize puts one there that sends with tokens.
	tokens *http.Client
	fetch  func(context.Context) (*oauth2.Token, error)
	// denied returns the error for a refused token.
	denied func(code, description string) error
	// refusal returns the error for an answer that is neither a success nor temporary.
	refusal func(answer) error
	// secret is removed from quoted messages; empty for none.
	secret string

	// fetching is locked while a token is fetched.
	fetching sync.Mutex
	token    atomic.Pointer[oauth2.Token]
}

// answer is a complete response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// retryable is an error after which the request is sent again.
type retryable struct {
	kind failureKind
	// after is how long the vendor asks to wait; negative if it does not say.
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

// failed returns a retryable failure.
func (s *session) failed(format string, args ...any) error {
	return &retryable{failed, -1, fault(s.vendor, format, args...)}
}

// malformed returns a retryable failure caused by a malformed answer.
func (s *session) malformed(format string, args ...any) error {
	return &retryable{malformed, -1, fault(s.vendor, format, args...)}
}

// throttled returns the retryable failure of a throttled request, with the vendor's wait (see retryable.after).
func (s *session) throttled(after time.Duration) error {
	return &retryable{throttled, after, errors.New(s.vendor + " is throttling requests")}
}

// sendWithRetries calls send until it succeeds or its error is not retryable, or until it has failed maxFailures times,
// been throttled for longer than patience (both Temporary), or been malformed maxMalformed times (permanent). It waits
// as long as the vendor asks, or else with backoff.
func (s *session) sendWithRetries(ctx context.Context, send func(context.Context) error) error {
	var failures [3]int // by kind
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
		failures[r.kind]++
		after := r.after
		if after < 0 {
			after = min(time.Second<<min(failures[r.kind]-1, 10), longestBackoff)
		}
		waited += max(after, time.Second) // at least a second, so that repeated waits of 0 reach patience too

		switch {
		case r.kind == throttled && waited > patience:
			return &Temporary{fmt.Errorf("%w, for longer than %v: try again later", r.err, patience)}
		case r.kind == failed && failures[failed] >= maxFailures:
			return &Temporary{fmt.Errorf("%w (tried %d times)", r.err, maxFailures)}
		case r.kind == malformed && failures[malformed] >= maxMalformed:
			return fmt.Errorf("%w (tried %d times)", r.err, maxMalformed)
		}
		if err := s.wait(ctx, after); err != nil {
			return err
		}
	}
}

// call sends a request with a token, with retries, and passes the answer's body to take, whose errors may be retryable
// too. It renews a refused token once. For other statuses than 2xx it returns refusal's error.
func (s *session) call(
	ctx context.Context, method, address string, header http.Header, body []byte, take func([]byte) error,
) error {
	renewed := false
	return s.sendWithRetries(ctx, func(ctx context.Context) error {
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

// exchange sends a request and reads the response. Without an error, it is a JSON object of a status 2xx, or any body
// of a status 3xx or 4xx. Errors are retryable, except those of a body over maxAnswer and of a refused address.
func (s *session) exchange(client *http.Client, req *http.Request) (answer, error) {
	ctx, cancel := context.WithTimeout(req.Context(), answerWithin)
	defer cancel()
	res, err := client.Do(req.WithContext(ctx))
	if err != nil {
		return answer{}, s.connectionError(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	a := answer{res.StatusCode, res.Header, body}

	switch {
	case err != nil:
		return a, s.connectionError(err)
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

// isObject reports whether a body is a JSON object.
func isObject(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) && json.Valid(body)
}

// connectionError returns the error of a request without a complete response. It is retryable, unless the request was
// redirected to another host or sent to a special address.
func (s *session) connectionError(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // without the URL, which may contain a position
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

// sameHost is a CheckRedirect function that allows up to four redirects, and only to the host and scheme of the first
// request, so that tokens are not sent to other hosts.
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

// quote formats a vendor's message for an error: one line of at most 300 characters, without the secret and the token.
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

// jsonProperty is a property of a JSON object; Given distinguishes null, the zero value, from absent.
type jsonProperty[T any] struct{ domain.Optional[T] }

func (p *jsonProperty[T]) UnmarshalJSON(text []byte) error {
	p.Given = true
	return json.Unmarshal(text, &p.Value) // null leaves the zero value
}

// authorize returns a token: the current token while it is valid, or else a new one. A failure to connect has the
// error of exchange, a refusal that of denied, and an answer without a token is malformed.
func (s *session) authorize(ctx context.Context) (*oauth2.Token, error) {
	s.fetching.Lock()
	defer s.fetching.Unlock()
	if token := s.token.Load(); token.Valid() {
		return token, nil
	}

	transport := &recorder{session: s}
	token, err := s.fetch(context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: transport}))
	var refused *oauth2.RetrieveError
	switch {
	case transport.err != nil:
		return nil, transport.err
	case errors.As(err, &refused):
		var response struct {
			Code        string `json:"error"`
			Description string `json:"error_description"`
		}
		_ = json.Unmarshal(refused.Body, &response) // if it is not JSON, response stays empty
		return nil, s.denied(response.Code, response.Description)
	case err != nil:
		return nil, s.malformed("answers the request for a token with something else")
	case token.AccessToken == "":
		return nil, s.malformed("answers the request for a token without one")
	}
	s.token.Store(token)
	return token, nil
}

// recorder is the transport of token requests. It keeps the error of the last request, which the OAuth libraries
// would return as text only.
type recorder struct {
	session *session
	err     error
}

// RoundTrip sends a request with the session's exchange, so the response is complete.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	a, err := r.session.exchange(r.session.tokens, req)
	r.err = err
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: a.status, Header: a.header, Request: req, Body: io.NopCloser(bytes.NewReader(a.body)),
		ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// fault returns an error that starts with a vendor's name.
func fault(vendor, format string, args ...any) error { return fmt.Errorf(vendor+" "+format, args...) }
