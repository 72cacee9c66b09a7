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

	"partnerapi/client"
	"partnerapi/domain"
)

const (
	// maxInFlight is how many requests are in progress at a time.
	maxInFlight = 4
	// answerWithin is how long a service may take to answer.
	answerWithin = time.Minute
	// maxTries bounds how often a request is sent that is answered 429, 502, 503, 504
	// or not at all.
	maxTries = 8
	// longestWait bounds what a service may ask to wait for.
	longestWait = 5 * time.Minute
)

// request is a request to a service: the path with its query, and the body where there
// is one.
type request struct {
	method, path, body string
	noKey              bool
}

// get is a request that reads a path.
func get(path string) request { return request{method: http.MethodGet, path: path} }

func post(path, body string) request { return request{method: http.MethodPost, path: path, body: body} }

// answer is what a request was answered.
type answer struct {
	request
	from   *service
	id     string // that was sent as X-Request-Id
	status int
	header http.Header
	body   []byte
}

// service is a service that is read.
type service struct {
	base string
	// variable is what stands in commands for the key.
	variable string
	client   *client.Client
	wait     Wait
	say      func(string) // says for what is waited
	slots    chan struct{}
	run      string // begins the ids of requests
	sent     atomic.Int64
	met      atomic.Bool // an answer came: what fails from now on is tried again

	mu    sync.Mutex
	until time.Time // when the key has a budget again, by this process's clock
}

// Wait pauses; it returns early, with the context's error, where that ends.
type Wait func(ctx context.Context, d time.Duration) error

// newService checks an address.
func newService(base, key, variable string, c Config) (*service, error) {
	calls, err := client.New(client.Config{URL: base, Key: key, Timeout: answerWithin})
	if err != nil {
		return nil, err
	}
	return &service{
		base: strings.TrimRight(base, "/"), variable: variable, client: calls, wait: c.Wait, say: c.Say,
		slots: make(chan struct{}, maxInFlight), run: "parity-" + rand.Text()[:8] + "-",
	}, nil
}

// do sends a request until it is answered otherwise than with 429, 502, 503 or 504, but
// maxTries times at the most.
func (s *service) do(ctx context.Context, r request) (answer, error) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	defer func() { <-s.slots }()

	for try := 1; ; try++ {
		if err := s.awaitBudget(ctx); err != nil {
			return answer{}, err
		}
		a, err := s.once(ctx, r)
		after := domain.RetryAfter(a.header.Get("Retry-After"), client.Answered(a.header))
		pause := min(max(after, time.Second), longestWait)
		switch {
		case ctx.Err() != nil:
			return a, ctx.Err()
		case err != nil && !s.met.Load():
			return a, fmt.Errorf("%s does not answer: %w", s.base, err)
		case try == maxTries:
			return a, err
		case a.status == http.StatusTooManyRequests:
			s.usedUp(time.Now().Add(pause))
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

// once sends a request.
func (s *service) once(ctx context.Context, r request) (answer, error) {
	a := answer{request: r, from: s, id: s.run + strconv.FormatInt(s.sent.Add(1), 10)}
	got, err := s.client.Send(ctx, client.Request{
		Method: r.method, Path: r.path, Body: []byte(r.body), NoKey: r.noKey, Header: http.Header{"X-Request-Id": {a.id}},
	})
	if got != nil {
		s.met.Store(true)
		a.status, a.header, a.body = got.Status, got.Header, got.Body
	}
	if err != nil {
		return a, err
	}
	if !r.noKey {
		s.spent(a.header)
	}
	return a, nil
}

// spent reads an answer's headers of the key's budget. Where it may not last for the
// requests that are under way and one more, the next window is waited for.
func (s *service) spent(h http.Header) {
	left, wrong := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	end, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	if wrong != nil || err != nil || left > maxInFlight {
		return
	}
	s.usedUp(time.Now().Add(time.Unix(end, 0).Sub(client.Answered(h))))
}

// usedUp notes that the key has no budget until a time, and says so.
func (s *service) usedUp(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until.Sub(s.until) < time.Second {
		return
	}
	s.until = until
	if s.say != nil {
		s.say(fmt.Sprintf("waiting %v for the key's budget at %s", time.Until(until).Round(time.Second), s.base))
	}
}

// awaitBudget waits for the key's budget where it is used up.
func (s *service) awaitBudget(ctx context.Context) error {
	s.mu.Lock()
	d := time.Until(s.until)
	s.mu.Unlock()
	if d <= 0 {
		return nil
	}
	return s.wait(ctx, min(d, longestWait))
}

// curl is the command that sends the request again.
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
