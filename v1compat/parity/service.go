package parity

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"partnerapi/client"
	"partnerapi/domain"
	"partnerapi/v1compat/usage"
	"partnerapi/v2/op"
)

// UserAgent is the User-Agent of the comparison's requests, by which the service counts them apart.
var UserAgent = usage.ParityAgent + op.Latest.String()

const (
	// maxInFlight bounds how many requests are in progress, or lists compared, at a time.
	maxInFlight = 4
	// requestTimeout bounds how long a service may take to answer.
	requestTimeout = time.Minute
	// maxTries bounds how often a request is sent.
	maxTries = 8
	// maxWait bounds a wait that a service asks for.
	maxWait = 5 * time.Minute
)

// request is a request to a service. The path has the query; the body may be empty.
type request struct {
	method, path, body string
	noKey              bool
}

func get(path string) request { return request{method: http.MethodGet, path: path} }

func post(path, body string) request { return request{method: http.MethodPost, path: path, body: body} }

// answer is the response to a request.
type answer struct {
	request
	from   *service // nil if it was never sent
	id     string   // the X-Request-Id sent
	status int
	header http.Header
	body   []byte
}

// service sends requests to a service within the budget of a key.
type service struct {
	base      string
	variable  string // stands for the key in commands
	client    *client.Client
	wait      func(context.Context, time.Duration) error
	waiting   func(text string) // may be nil
	idPrefix  string            // of the ids of requests
	sent      atomic.Int64
	reachable atomic.Bool // it has answered once; only then are lost requests sent again

	mu    sync.Mutex
	until time.Time // when the key has a budget again, by this process's clock
}

// newService returns the service at an address; an error if that is invalid. variable stands for the key in commands.
func newService(base, key, variable string, c Config) (*service, error) {
	caller, err := client.New(client.Config{URL: base, Key: key, UserAgent: UserAgent, Timeout: requestTimeout})
	return &service{
		base: strings.TrimRight(base, "/"), variable: variable, client: caller, wait: c.Wait, waiting: c.Waiting,
		idPrefix: "parity-" + rand.Text()[:8] + "-",
	}, err
}

// do sends a request, and again, up to maxTries times in all, if the response is 429, 502, 503 or 504, or is lost. A
// 429 delays all requests to the service. If the service has never answered, a lost request is an error at once.
func (s *service) do(ctx context.Context, r request) (answer, error) {
	for try := 1; ; try++ {
		if err := s.awaitBudget(ctx); err != nil {
			return answer{}, err
		}
		a, err := s.send(ctx, r)
		after := domain.RetryAfter(a.header.Get("Retry-After"), client.Answered(a.header))
		pause := min(max(after, time.Second), maxWait)
		switch {
		case ctx.Err() != nil:
			return a, ctx.Err()
		case err != nil && !s.reachable.Load():
			return a, fmt.Errorf("%s does not respond: %w", s.base, err)
		case try == maxTries:
			return a, err
		case a.status == http.StatusTooManyRequests:
			s.pauseUntil(time.Now().Add(pause))
			continue
		case err == nil && a.status != http.StatusBadGateway && a.status != http.StatusServiceUnavailable &&
			a.status != http.StatusGatewayTimeout:
			return a, nil
		}
		if err := s.wait(ctx, pause); err != nil {
			return a, err
		}
	}
}

// send sends a request once.
func (s *service) send(ctx context.Context, r request) (answer, error) {
	a := answer{request: r, from: s, id: s.idPrefix + strconv.FormatInt(s.sent.Add(1), 10)}
	got, err := s.client.Send(ctx, client.Request{
		Method: r.method, Path: r.path, Body: []byte(r.body), NoKey: r.noKey, Header: http.Header{"X-Request-Id": {a.id}},
	})
	if got != nil {
		s.reachable.Store(true)
		a.status, a.header, a.body = got.Status, got.Header, got.Body
	}
	if err == nil && !r.noKey {
		s.noteBudget(a.header)
	}
	return a, err
}

// noteBudget reads the key's budget off a response. If it may not last for the requests in progress and one more,
// requests wait for the next window. A response without valid headers changes nothing.
func (s *service) noteBudget(h http.Header) {
	left, errLeft := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	end, errEnd := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	if errLeft == nil && errEnd == nil && left <= maxInFlight {
		s.pauseUntil(time.Now().Add(time.Unix(end, 0).Sub(client.Answered(h))))
	}
}

// pauseUntil lets no request begin before a time, and reports the wait. It does nothing if requests wait already until
// then, or until less than a second before.
func (s *service) pauseUntil(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until.Sub(s.until) < time.Second {
		return
	}
	s.until = until
	if s.waiting != nil {
		s.waiting(fmt.Sprintf("waiting %v for the key's request budget at %s", time.Until(until).Round(time.Second), s.base))
	}
}

// awaitBudget waits until the key has a budget, but at most maxWait.
func (s *service) awaitBudget(ctx context.Context) error {
	s.mu.Lock()
	d := time.Until(s.until)
	s.mu.Unlock()
	if d <= 0 {
		return nil
	}
	return s.wait(ctx, min(d, maxWait))
}

// curl returns the command that repeats the request.
func (a answer) curl() string {
	quoted := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
	var b strings.Builder
	b.WriteString("curl -s")
	if a.method != http.MethodGet {
		b.WriteString(" -X " + a.method)
	}
	if !a.noKey {
		b.WriteString(` -H "X-API-Key: $` + a.from.variable + `"`)
	}
	if a.request.body != "" {
		b.WriteString(" -d " + quoted(a.request.body))
	}
	return b.String() + " " + quoted(a.from.base+a.path)
}

// release returns the release of v2 that the service serves, which its OpenAPI document names. Without that document,
// or for a release that this program does not know, it returns the latest that it knows.
func (s *service) release(ctx context.Context) (op.Release, error) {
	a, err := s.do(ctx, request{method: http.MethodGet, path: "/v2/openapi.json", noKey: true})
	if err != nil {
		return 0, err
	}
	var document struct {
		Info struct {
			Version string `json:"version"`
		} `json:"info"`
	}
	_ = json.Unmarshal(a.body, &document) // another body names no release
	release, err := op.ParseRelease(document.Info.Version)
	if err != nil {
		return op.Latest, nil
	}
	return release, nil
}
