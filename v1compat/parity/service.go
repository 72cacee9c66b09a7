package parity

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxInFlight is how many requests are in progress at a time.
	maxInFlight = 4
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 64 << 20
	// answerWithin is how long a service may take to answer.
	answerWithin = time.Minute
	// maxTries bounds how often a request is sent that is answered 429 or not at all, and
	// maxFailed one that is answered 502, 503 or 504: that is an answer then.
	maxTries, maxFailed = 8, 4
	// longestWait bounds what a service may ask to wait for.
	longestWait = 5 * time.Minute
)

// request is a request to a service: the path with its query, and the body where there
// is one.
type request struct {
	method, path, body string
	noKey              bool
}

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
	base, key string
	// variable is what stands in commands for the key.
	variable string
	client   *http.Client
	wait     Wait
	say      func(string) // says for what is waited
	slots    chan struct{}
	run      string // begins the ids of requests
	sent     atomic.Int64
	met      atomic.Bool // an answer came: what fails from now on is tried again

	mu sync.Mutex
	// known says that left is how many requests the key has left until reset, which
	// is by this process's clock.
	known bool
	left  int
	reset time.Time
	// said is the end of the last wait that was said.
	said time.Time
}

// Wait pauses; it returns early, with the context's error, where that ends.
type Wait func(ctx context.Context, d time.Duration) error

// Pause is the Wait of the system's clock.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// newService checks an address.
func newService(base, key, variable string, c Config) (*service, error) {
	at, err := url.Parse(base)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.RawQuery != "" {
		return nil, fmt.Errorf("%q is no address of a service: give one such as https://api.example.com, without /v1", base)
	}
	return &service{
		base: strings.TrimSuffix(base, "/"), key: key, variable: variable, wait: c.Wait, say: c.Say,
		client: &http.Client{
			Timeout: answerWithin, Transport: http.DefaultTransport.(*http.Transport).Clone(),
			// The key is for this service alone.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		slots: make(chan struct{}, maxInFlight), run: "parity-" + rand.Text()[:8] + "-",
	}, nil
}

// get is a request that reads a path.
func get(path string) request { return request{method: http.MethodGet, path: path} }

// do sends a request until it is answered otherwise than with 429, or with 502, 503 or 504
// some times.
func (s *service) do(ctx context.Context, r request) (answer, error) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	defer func() { <-s.slots }()

	pause := time.Second
	for try := 1; ; try++ {
		if err := s.spend(ctx); err != nil {
			return answer{}, err
		}
		a, err := s.once(ctx, r)
		switch {
		case ctx.Err() != nil:
			return a, ctx.Err()
		case err != nil && !s.met.Load():
			return a, fmt.Errorf("%s does not answer: %w", s.base, err)
		case err == nil && (!passes(a.status) || a.status != http.StatusTooManyRequests && try == maxFailed):
			return a, nil
		case try == maxTries:
			return a, err
		}

		until := max(retryAfter(a.header), time.Second)
		if a.status == http.StatusTooManyRequests {
			s.waits(until)
		} else {
			until = max(until, pause)
			pause *= 2
		}
		if err := s.wait(ctx, min(until, longestWait)); err != nil {
			return a, err
		}
	}
}

// passes reports whether sending a request again may help.
func passes(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// waits says that the key's budget is waited for, once for requests that wait until the
// same time.
func (s *service) waits(until time.Duration) {
	end := time.Now().Add(until)
	s.mu.Lock()
	recent := end.Sub(s.said) < time.Second
	if !recent {
		s.said = end
	}
	s.mu.Unlock()
	if s.say != nil && !recent {
		s.say(fmt.Sprintf("waiting %v for the key's budget at %s", until.Round(time.Second), s.base))
	}
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, int(longestWait/time.Second))) * time.Second
}

// once sends a request.
func (s *service) once(ctx context.Context, r request) (answer, error) {
	a := answer{request: r, from: s, id: s.run + strconv.FormatInt(s.sent.Add(1), 10)}
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	out, err := http.NewRequestWithContext(ctx, r.method, s.base+r.path, body)
	if err != nil {
		return a, err
	}
	out.Header.Set("X-Request-Id", a.id)
	if r.body != "" {
		out.Header.Set("Content-Type", "application/json")
	}
	if !r.noKey {
		out.Header.Set("X-API-Key", s.key)
	}

	response, err := s.client.Do(out)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	s.met.Store(true)
	a.status, a.header = response.StatusCode, response.Header
	a.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(a.body) > maxAnswer {
		err = errors.New("the answer is over 64 MiB")
	}
	if err != nil {
		return a, fmt.Errorf("read the answer to %s %s%s: %w", r.method, s.base, r.path, err)
	}
	if !r.noKey {
		s.spent(a.header)
	}
	return a, nil
}

// spend takes a request off the key's budget, and waits for the next one where it is
// used up. Others may use the key too: their requests show in the next answer.
func (s *service) spend(ctx context.Context) error {
	for {
		s.mu.Lock()
		now := time.Now()
		if !s.known || now.After(s.reset) {
			s.known = false
			s.mu.Unlock()
			return nil
		}
		if s.left > 0 {
			s.left--
			s.mu.Unlock()
			return nil
		}
		until := s.reset.Sub(now)
		s.known = false
		s.mu.Unlock()
		s.waits(until)
		if err := s.wait(ctx, min(until, longestWait)); err != nil {
			return err
		}
	}
}

// spent notes what an answer says of the key's budget. Answers come back out of
// order: of one window the least counts.
func (s *service) spent(h http.Header) {
	left, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	if err != nil {
		return
	}
	end, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil {
		return
	}
	// The service's clock may be another one than this process's.
	now := time.Now()
	there := now
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		there = at
	}
	left -= maxInFlight // others that were sent before this answer
	reset := now.Add(time.Unix(end, 0).Sub(there))

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && reset.Sub(s.reset).Abs() < 2*time.Second {
		left = min(left, s.left)
	}
	s.known, s.left, s.reset = true, left, reset
}

// curl is the command that sends the request again.
func (a answer) curl() string {
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
	b.WriteString(" " + quoted(a.from.base+a.path))
	return b.String()
}

// quoted is a text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
