package directory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	// maxAnswer bounds a response, in bytes.
	maxAnswer = 32 << 20
	// answerWithin bounds the time of a request and its response.
	answerWithin = 30 * time.Second
	// maxFailures is the number of failures after which a request is not sent again.
	maxFailures = 5
	// maxMalformed is the number of malformed answers, such as a login page, after which a request is not sent again.
	maxMalformed = 3
	// longestBackoff bounds a pause if the vendor does not ask for one.
	longestBackoff = time.Minute
	// patience bounds the sum of the pauses for a throttled request.
	patience = 30 * time.Minute
	// unknownWait means that the vendor does not say how long to wait.
	unknownWait time.Duration = -1
)

// session calls a vendor's service. It is safe for concurrent use.
type session struct {
	connector
	vendor string
	// fetch requests a token, by the HTTP client in its context. This client, which authorize sets, sends through
	// tokenClient.
	fetch       func(context.Context) (*oauth2.Token, error)
	tokenClient *http.Client
	// tokenError returns the error for a refused request for a token.
	tokenError func(code, description string) error
	// requestError returns the error for a response that is neither a success nor temporary.
	requestError func(answer) error
	secret       string // is removed from quoted messages; empty for none

	fetching sync.Mutex // is locked while a token is fetched
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
	kind  failureKind
	after time.Duration // how long the vendor asks to wait, or unknownWait
	err   error
}

func (r *retryable) Error() string { return r.err.Error() }

type failureKind int

const (
	failed failureKind = iota
	malformed
	throttled
)

// failedError returns the retryable error of a failed request.
func (s *session) failedError(format string, args ...any) error {
	return &retryable{failed, unknownWait, errorf(s.vendor, format, args...)}
}

// malformedError returns the retryable error of a malformed answer.
func (s *session) malformedError(format string, args ...any) error {
	return &retryable{malformed, unknownWait, errorf(s.vendor, format, args...)}
}

// throttledError returns the retryable error of a throttled request; after is the vendor's wait, or unknownWait.
func (s *session) throttledError(after time.Duration) error {
	return &retryable{throttled, after, errors.New(s.vendor + " is throttling requests")}
}

// sendWithRetries calls send until it succeeds or returns an error that is not retryable. It gives up with a Temporary
// error after maxFailures failed requests, or at a throttled request if all pauses together exceed patience, and with a
// permanent error after maxMalformed malformed answers. A pause is as long as the vendor asks, otherwise a backoff.
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
		if after == unknownWait {
			after = min(time.Second<<min(failures[r.kind]-1, 10), longestBackoff)
		}
		waited += max(after, time.Second) // at least a second, so that repeated waits of 0 reach patience too

		switch {
		case r.kind == throttled && waited > patience:
			return &Temporary{fmt.Errorf("%w for longer than %v; try again later", r.err, patience)}
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

// call sends a request with a token, with retries: a POST, or a GET if body is nil. It decodes the response, and
// returns it if check accepts it; check may return a retryable error too. A response that cannot be decoded is
// malformed; what names it in the error. A refused token is renewed once. For other statuses than 2xx it returns
// requestError's error.
func call[T any](
	ctx context.Context, s *session, address string, header http.Header, body []byte, what string, check func(T) error,
) (decoded T, err error) {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	renewed := false
	err = s.sendWithRetries(ctx, func(ctx context.Context) error {
		for {
			token, err := s.authorize(ctx)
			if err != nil {
				return err
			}
			req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
			if err != nil {
				return err
			}
			maps.Copy(req.Header, header)
			token.SetAuthHeader(req)

			a, err := s.exchange(s.client, req)
			switch {
			case err != nil:
				return err
			case a.status == http.StatusUnauthorized && !renewed:
				renewed = true
				s.token.CompareAndSwap(token, nil) // another request may have renewed it
			case a.status/100 != 2:
				return s.requestError(a)
			default:
				decoded = *new(T) // a malformed answer before may have set fields
				if err := json.Unmarshal(a.body, &decoded); err != nil {
					return s.malformedError("returned %s that can't be read: %w", what, err)
				}
				return check(decoded)
			}
		}
	})
	return decoded, err
}

// exchange sends a request and reads the response: without an error, a JSON object of a status 2xx, or any body of a
// status 3xx or 4xx. Errors are retryable, except those of a body over maxAnswer, and of a refused redirect or address.
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
		return a, s.throttledError(domain.RetryAfter(a.header.Get("Retry-After"), s.clock.Now()))
	case a.status == http.StatusRequestTimeout || a.status >= 500:
		return a, s.failedError("failed with status %d", a.status)
	case len(body) > maxAnswer:
		return a, fmt.Errorf("%s returned more than %d MiB", s.vendor, maxAnswer>>20)
	case a.status/100 == 2 && !isObject(body):
		return a, s.malformedError("returned something other than JSON; check for a proxy or a login page in between, " +
			"or the address of another service")
	}
	return a, nil
}

// isObject reports whether a body is a JSON object.
func isObject(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) && json.Valid(body)
}

// connectionError returns the error of a request without a complete response. It is retryable, unless the request was
// redirected to another host or, for a token, sent to an address that package egress refuses.
func (s *session) connectionError(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // without the URL, which may contain a position
	}
	if errors.Is(err, errRedirect) {
		return fmt.Errorf("%s %w", s.vendor, err)
	}
	if errors.Is(err, egress.ErrSpecial) {
		return errorf(s.vendor, "issued no token at the token_uri of the credentials file: %w", egress.ErrSpecial)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return s.failedError("did not respond within %v", answerWithin)
	}
	return s.failedError("can't be reached, or broke off the connection: %w", err)
}

var errRedirect = errors.New("redirects to another host, which the service does not follow")

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

// quote formats a vendor's message, in parts, for an error: as one line of at most 300 characters, without the secret
// and the token.
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

// authorize returns the current token while it is valid, otherwise requests a new one. The error is the transport's if
// it has one, tokenError's if the request was refused, otherwise a malformedError: the response is no token.
func (s *session) authorize(ctx context.Context) (*oauth2.Token, error) {
	s.fetching.Lock()
	defer s.fetching.Unlock()
	if token := s.token.Load(); token.Valid() {
		return token, nil
	}

	transport := &tokenTransport{session: s}
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
		return nil, s.tokenError(response.Code, response.Description)
	case err != nil:
		return nil, s.malformedError("returned something other than a token")
	case token.AccessToken == "":
		return nil, s.malformedError("returned no token")
	}
	s.token.Store(token)
	return token, nil
}

// tokenTransport is the transport of requests for tokens. It keeps the error of the last request, of which the OAuth
// libraries may return only the text.
type tokenTransport struct {
	session *session
	err     error
}

// RoundTrip sends a request with the session's exchange, so the response is complete. It keeps the error in t.err.
func (t *tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	a, err := t.session.exchange(t.session.tokenClient, req)
	t.err = err
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: a.status, Header: a.header, Request: req, Body: io.NopCloser(bytes.NewReader(a.body)),
		ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// errorf is fmt.Errorf for a sentence that begins with the vendor's name; format is the rest of it.
func errorf(vendor, format string, args ...any) error { return fmt.Errorf(vendor+" "+format, args...) }
