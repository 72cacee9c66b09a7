package parity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"partnerapi/v1compat/usage"
	"partnerapi/v1compat/v1test"
)

// waits remembers the pauses that were asked for.
type waits struct {
	mu  sync.Mutex
	all []time.Duration
}

func (w *waits) wait(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, d.Round(time.Second))
	return ctx.Err()
}

// TestWaits: 429 and 503 are waited out, as long as the service says.
func TestWaits(t *testing.T) {
	t.Parallel()
	w := small(t)
	var n atomic.Int64
	at := v1test.Proxy(t, w.URL, func(request string, a *v1test.Answer) {
		switch n.Add(1) {
		case 5:
			a.Status, a.Body = 429, `{}`
			a.Header.Set("Retry-After", "17")
		case 6:
			a.Status, a.Body = 503, `{}`
			a.Header.Set("Retry-After", "9")
		case 7:
			a.Status, a.Body = 502, `gone`
		}
	})
	waited := &waits{}
	c := w.compare(at)
	c.Wait = waited.wait
	var said []string
	c.Waiting = func(text string) { said = append(said, text) }
	same(t, c)
	if !slices.Equal(said, []string{"waiting 17s for the key's request budget at " + at}) {
		t.Errorf("said %q", said)
	}
	if len(waited.all) < 3 || waited.all[0] != 17*time.Second || waited.all[1] != 9*time.Second {
		t.Errorf("waited %v", waited.all)
	}
}

// TestUserAgent verifies that every request of a comparison has the user agent by which the service counts it apart.
func TestUserAgent(t *testing.T) {
	t.Parallel()
	w := small(t)
	var requests, foreign atomic.Int64
	at := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if !strings.HasPrefix(r.Header.Get("User-Agent"), usage.ParityAgent) {
			foreign.Add(1)
		}
		out.WriteHeader(http.StatusBadRequest)
	}))
	t.Cleanup(at.Close)
	_, _ = Compare(t.Context(), w.compare(at.URL)) // a service that answers nothing is an error
	_, _ = Replay(t.Context(), w.compare(at.URL), strings.NewReader("/v1/partner\n"), func(int, string) {})
	_, _, _ = Writes(t.Context(), w.compare(at.URL), "17")
	if requests.Load() == 0 || foreign.Load() > 0 {
		t.Errorf("%d of %d requests have another user agent", foreign.Load(), requests.Load())
	}
}

// TestBudget: the key's budget is never used up.
func TestBudget(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	left, refused := 20, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if left == 0 {
			refused++
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		left--
		w.Header().Set("X-RateLimit-Remaining", fmt.Sprint(left))
		w.Header().Set("X-RateLimit-Reset", fmt.Sprint(time.Now().Add(40*time.Second).Unix()))
	}))
	t.Cleanup(server.Close)
	waited := 0
	s, err := newService(server.URL, "key", "KEY", Config{Wait: func(_ context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		waited++
		left = 20
		if d < 30*time.Second || d > 42*time.Second {
			t.Errorf("waits %v for a window of 40 s", d)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	group.SetLimit(maxInFlight)
	for range 100 {
		group.Go(func() error {
			_, err := s.do(t.Context(), get("/v1/partner"))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if refused > 0 || waited == 0 {
		t.Errorf("%d were refused; waited %d times", refused, waited)
	}
}

// TestUnable: where nothing can be compared, the error says why.
func TestUnable(t *testing.T) {
	t.Parallel()
	w := small(t)
	gone := v1test.Proxy(t, w.URL, func(request string, a *v1test.Answer) {
		if strings.Contains(request, "/v1/") {
			a.Status, a.Body = 410, `{"status":410,"error":"gone","message":"call GET /v2/clients","request_id":"1"}`
		}
	})
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for what, c := range map[string]Config{
		"call GET /v2/clients": w.compare(gone),
		"rejects the key":      config(w.URL, "pk_nobody", w.Clock.Now()),
		"is not the URL":       w.compare("ftp://example.com"),
		"does not respond":     w.compare(closed.URL),
		"returned 404":         w.compare(w.URL + "/elsewhere"),
	} {
		r, err := Compare(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
		if r.Different() > 0 {
			t.Errorf("%s: %d differences", what, r.Different())
		}
	}
}

// TestStopped: what was compared until then is reported.
func TestStopped(t *testing.T) {
	t.Parallel()
	w := small(t)
	ctx, cancel := context.WithCancel(t.Context())
	at := v1test.Proxy(t, w.URL, func(request string, a *v1test.Answer) {
		if strings.Contains(request, "/darkweb/") {
			cancel()
		}
	})
	r, err := Compare(ctx, w.compare(at))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if count(r, clients) == 0 {
		t.Errorf("GET /v1/clients was compared, and is not reported")
	}
}

// TestJSON: the report's JSON leaves out what there is none of, and its commands are for a shell.
func TestJSON(t *testing.T) {
	t.Parallel()
	s, err := newService("https://api.example.com", "secret", "KEY", Config{Wait: unhurried})
	if err != nil {
		t.Fatal(err)
	}
	r := &Report{Between: []string{"https://old.example.com", "https://api.example.com"}}
	f := mismatched("client_name", valueOf("O'Neil"), nil,
		answer{request: get("/v1/clients?limit=50"), from: s}, answer{request: post("/v2/x", `{"a":"it's"}`), from: s})
	f.equal, f.explained, f.unsettled = 7, 2, true
	f.object, f.row = Object{Kind: "client", V1: "1", V2: "cli_1"}, "2 times"
	r.add("GET /v1/clients", f)
	r.add("GET /v1/partner", finding{equal: 1})
	var b strings.Builder
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	compact := jsontext.Value(b.String())
	if err := compact.Compact(); err != nil {
		t.Fatal(err)
	}
	want := `{"between":["https://old.example.com","https://api.example.com"],"operations":[{"operation":"GET /v1/clients",` +
		`"compared":10,"equal":7,"explained":2,"different":1,"differences":[{"field":"client_name",` +
		`"object":{"kind":"client","v1":"1","v2":"cli_1"},"row":"2 times","v1":"O'Neil","unsettled":true,"request":` +
		`"curl -s -H \"X-API-Key: $KEY\" 'https://api.example.com/v1/clients?limit=50'\ncurl -s -X POST ` +
		`-H \"X-API-Key: $KEY\" -d '{\"a\":\"it'\\''s\"}' 'https://api.example.com/v2/x'"}],"unsettled":1},` +
		`{"operation":"GET /v1/partner","compared":1,"equal":1,"explained":0,"different":0,"differences":[]}]}`
	if string(compact) != want {
		t.Errorf("%s", compact)
	}
}
