package parity

import (
	"context"
	"encoding/json"
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
	at := proxy(t, w.URL, func(request string, a *answered) {
		switch n.Add(1) {
		case 5:
			a.status, a.body = 429, `{}`
			a.header.Set("Retry-After", "17")
		case 6:
			a.status, a.body = 503, `{}`
			a.header.Set("Retry-After", "9")
		case 7:
			a.status, a.body = 502, `gone`
		}
	})
	waited := &waits{}
	c := config(at, w.tenant.Key, w.Clock.Now())
	c.Wait = waited.wait
	var said []string
	c.Say = func(text string) { said = append(said, text) }
	same(t, c)
	if !slices.Equal(said, []string{"waiting 17s for the key's budget at " + at}) {
		t.Errorf("said %q", said)
	}
	if len(waited.all) < 3 || waited.all[0] != 17*time.Second || waited.all[1] != 9*time.Second {
		t.Errorf("waited %v", waited.all)
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
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if _, err := s.do(t.Context(), get("/v1/partner")); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if refused > 0 || waited == 0 {
		t.Errorf("%d were refused; waited %d times", refused, waited)
	}
}

// TestUnable: where nothing can be compared, the error is Unable and says why.
func TestUnable(t *testing.T) {
	t.Parallel()
	w := small(t)
	gone := proxy(t, w.URL, func(request string, a *answered) {
		if strings.Contains(request, "/v1/") {
			a.status, a.body = 410, `{"status":410,"error":"gone","message":"call GET /v2/clients","request_id":"1"}`
		}
	})
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for what, c := range map[string]Config{
		"call GET /v2/clients": config(gone, w.tenant.Key, w.Clock.Now()),
		"does not take":        config(w.URL, "pk_nobody", w.Clock.Now()),
		"no address":           config("ftp://example.com", w.tenant.Key, w.Clock.Now()),
		"does not answer":      config(closed.URL, w.tenant.Key, w.Clock.Now()),
		"answered 404":         config(w.URL+"/elsewhere", w.tenant.Key, w.Clock.Now()),
	} {
		r, err := Compare(t.Context(), c)
		if unable := (Unable{}); !errors.As(err, &unable) || !strings.Contains(err.Error(), what) {
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
	at := proxy(t, w.URL, func(request string, a *answered) {
		if strings.Contains(request, "/darkweb/") {
			cancel()
		}
	})
	r, err := Compare(ctx, config(at, w.tenant.Key, w.Clock.Now()))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if !slices.ContainsFunc(r.Operations, func(o *Operation) bool { return o.Operation == "GET /v1/clients" && o.Equal > 0 }) {
		t.Errorf("GET /v1/clients was compared, and is not reported")
	}
}

// TestOld: two services' v1 are compared by every byte of their items, but for what may
// differ.
func TestOld(t *testing.T) {
	t.Parallel()
	w := small(t)
	c := config(w.URL, w.tenant.Key, w.Clock.Now())
	c.OldURL = w.URL
	same(t, c)

	plants := []struct {
		name, at, old, new, operation, field, tolerate string
	}{
		{"a value", "/v1/clients?", `"client_name":"Fernhill"`, `"client_name":"Fern"`, "GET /v1/clients", "client_name", "client_name"},
		{"a date's precision", "/v1/clients?", `"created_date":"2026-06-15T12:00:00Z"`, `"created_date":"2026-06-15T12:00:00.1Z"`, "GET /v1/clients", "created_date", "created_date"},
		{"a number's form", "/v1/clients?", `"phishing_click_rate_total":0`, `"phishing_click_rate_total":0.0`, "GET /v1/clients", "phishing_click_rate_total", "phishing_click_rate_total"},
		{"a field less", "/users?", `"department":"",`, ``, "GET /v1/clients/{client_id}/users", "department", "department"},
		{"a total", "/collections?", `"total":2`, `"total":5`, "GET /v1/clients/{client_id}/collections", "total", ""},
		{"an error", "/v1/clients?limit=x", `"error":"invalid_request"`, `"error":"bad"`, "GET /v1/clients", "error", "error"},
		{"a header", "/v1/partner", "", "", "GET /v1/partner", "Content-Type", "content-type"},
	}
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			c := config(w.URL, w.tenant.Key, w.Clock.Now())
			c.OldURL = proxy(t, w.URL, func(request string, a *answered) {
				if strings.Contains(request, p.at) {
					a.body = strings.ReplaceAll(a.body, p.old, p.new)
					if p.old == "" {
						a.header.Set("Content-Type", "text/json")
					}
				}
			})
			r, err := Compare(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(r.Operations, func(o *Operation) bool {
				return o.Operation == p.operation && slices.ContainsFunc(o.Differences, func(d Difference) bool {
					return d.Field == p.field && strings.Contains(d.Request, "$V1_KEY") && strings.Contains(d.Request, c.OldURL)
				})
			}) {
				_ = r.WriteText(t.Output())
				t.Errorf("%s of %s is not found", p.field, p.operation)
			}
			if p.tolerate != "" {
				c.Tolerate = []string{p.tolerate}
				same(t, c)
			}
		})
	}
}

// TestJSON: the report's JSON, with all that it can have.
func TestJSON(t *testing.T) {
	t.Parallel()
	s, err := newService("https://api.example.com", "secret", "KEY", Config{Wait: unhurried})
	if err != nil {
		t.Fatal(err)
	}
	r := &Report{Operations: []*Operation{}}
	r.count("GET /v1/clients", verdict{equal: 7, explained: 2, faults: []fault{{"client_name", valueOf("O'Neil"), nil}}},
		answer{request: get("/v1/clients?limit=50"), from: s}, answer{request: post("/v2/x", `{"a":"it's"}`), from: s})
	r.count("GET /v1/partner", verdict{equal: 1})
	var b strings.Builder
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	want := `{
  "operations": [
    {
      "operation": "GET /v1/clients",
      "compared": 10,
      "equal": 7,
      "explained": 2,
      "different": 1,
      "differences": [
        {
          "field": "client_name",
          "v1": "O'Neil",
          "request": "curl -s -H \"X-API-Key: $KEY\" 'https://api.example.com/v1/clients?limit=50'\ncurl -s -X POST -H \"X-API-Key: $KEY\" -d '{\"a\":\"it'\\''s\"}' 'https://api.example.com/v2/x'"
        }
      ]
    },
    {
      "operation": "GET /v1/partner",
      "compared": 1,
      "equal": 1,
      "explained": 0,
      "different": 0,
      "differences": []
    }
  ]
}
`
	if b.String() != want || !json.Valid([]byte(want)) {
		t.Errorf("%s", b.String())
	}
}
