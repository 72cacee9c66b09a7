package ginop_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// edge is an edge of made-up operations, whose one key is "pk_demo_good".
type edge struct {
	*ginop.Edge
	engine *gin.Engine
	log    *logBuffer
	prom   *prometheus.Registry
	finds  atomic.Int64 // look-ups of keys in the database
}

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends.
func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns what was written.
func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

type empty struct{}

type answer struct {
	Text string `json:"text"`
}

func newEdge(t *testing.T, proxies []string, shared ginop.Store) *edge {
	t.Helper()
	return newEdgeOf(t, func(c *ginop.Config) { c.Shared = shared }, operations(), proxies...)
}

// newEdgeOf is an edge whose configuration set changes.
func newEdgeOf(t *testing.T, set func(*ginop.Config), operations *op.Set, proxies ...string) *edge {
	t.Helper()
	e := &edge{log: &logBuffer{}, prom: prometheus.NewRegistry()}
	config := ginop.Config{
		Limits: ginop.DefaultLimits, Clock: domain.SystemClock{},
		Log: slog.New(slog.NewTextHandler(e.log, nil)), Metrics: ginop.NewMetrics(e.prom),
	}
	set(&config)
	if config.Keys == nil {
		config.Keys = ginop.NewKeys(e.find, config.Clock, false)
	}
	e.Edge = ginop.NewEdge(config)
	var err error
	if e.engine, err = e.Engine(proxies); err != nil {
		t.Fatal(err)
	}
	e.Mount(e.engine, operations, op.Latest).Open("/document", text)
	return e
}

// find knows the keys good, and good0 to good99. Ten keys are one partner's.
func (e *edge) find(_ context.Context, digest []byte) (*domain.Caller, error) {
	e.finds.Add(1)
	number, ok := goodKeys[[sha256.Size]byte(digest)]
	if !ok {
		return nil, &domain.Error{Code: domain.Unauthorized, Message: "unknown"}
	}
	both := []domain.Scope{domain.Read, domain.Write}
	return &domain.Caller{
		Key: domain.KeyID{byte(number)}, Partner: domain.PartnerID{byte((number + 9) / 10)},
		Prefix: "pk_good" + number.String(), Scopes: both,
	}, nil
}

// keyNumber is the number of a good key; 0 is the one without.
type keyNumber int

// String returns what follows good in the key.
func (n keyNumber) String() string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n) - 1)
}

var goodKeys = func() map[[sha256.Size]byte]keyNumber {
	keys := map[[sha256.Size]byte]keyNumber{}
	for n := range keyNumber(101) {
		keys[sha256.Sum256([]byte("pk_demo_good"+n.String()))] = n
	}
	return keys
}()

// operations fail, or succeed, in ways that the service's own do not.
func operations() *op.Set {
	set := &op.Set{}
	get := func(id string, run func(context.Context, *empty) (*answer, error)) {
		op.Add(set, op.Meta{
			ID: id, Method: "GET", Path: "/" + id, Scope: domain.Read, Since: op.V2_0, Status: 200, Summary: "s",
		}, run)
	}
	get("fine", func(context.Context, *empty) (*answer, error) { return &answer{Text: "ok"}, nil })
	get("panics", func(context.Context, *empty) (*answer, error) { panic("the secret of the house") })
	get("nil", func(context.Context, *empty) (*answer, error) { var a *answer; return &answer{a.Text}, nil })
	get("fails", func(context.Context, *empty) (*answer, error) { return nil, errors.New("the secret of the house") })
	get("wrapped", func(context.Context, *empty) (*answer, error) {
		return nil, fmt.Errorf("doing: %w", &domain.Error{
			Code: domain.Conflict, Message: "shown", Cause: errors.New("the secret of the house"),
		})
	})
	get("waits", func(context.Context, *empty) (*answer, error) {
		return nil, &domain.Error{Code: domain.Unavailable, Message: "shown", RetryAfter: 1500 * time.Millisecond}
	})
	op.Add(set, op.Meta{
		ID: "gone", Method: "DELETE", Path: "/gone", Scope: domain.Write, Since: op.V2_0, Status: 204, Summary: "s",
	}, func(context.Context, *empty) (*op.NoContent, error) { return &op.NoContent{}, nil })
	return set
}

func (e *edge) do(method, path, key string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return e.serve(r, key)
}

// serve serves a request with a key, or none.
func (e *edge) serve(r *http.Request, key string) *httptest.ResponseRecorder {
	if key != "" {
		r.Header.Set("X-API-Key", key)
	}
	w := httptest.NewRecorder()
	e.engine.ServeHTTP(w, r)
	for name, values := range w.Header() { // as a client reads them, in any case
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	return w
}

// TestInternal: whatever goes wrong in an operation is a 500 that shows
// nothing, with all headers, and is logged with its cause.
func TestInternal(t *testing.T) {
	for _, id := range []string{"panics", "nil", "fails"} {
		t.Run(id, func(t *testing.T) {
			e := newEdge(t, nil, nil)
			w := e.do("GET", "/v2/"+id, "pk_demo_good", "X-Request-Id", "mine")
			var body op.ErrorEnvelope
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatalf("%v: %s", err, w.Body)
			}
			if w.Code != 500 || body.Error.Code != domain.Internal || body.Error.RequestID != "mine" ||
				w.Header().Get("X-Request-Id") != "mine" {
				t.Errorf("answers %d %s", w.Code, w.Body)
			}
			if strings.Contains(w.Body.String(), "secret") || strings.Contains(w.Body.String(), "goroutine") {
				t.Errorf("shows internals: %s", w.Body)
			}
			if w.Header().Get("X-RateLimit-Remaining") != "599" {
				t.Errorf("the headers are %v", w.Header())
			}
			if !strings.Contains(e.log.String(), "level=ERROR") || !strings.Contains(e.log.String(), "mine") {
				t.Errorf("logs %s", e.log)
			}
			logs := e.log.String()
			if id == "panics" && (!strings.Contains(logs, "secret of the house") || !strings.Contains(logs, "goroutine")) {
				t.Errorf("the log lacks the panic: %s", e.log)
			}
			if again := e.do("GET", "/v2/fine", "pk_demo_good"); again.Code != 200 {
				t.Errorf("then answers %d", again.Code)
			}
		})
	}
}

func TestOutcomes(t *testing.T) {
	e := newEdge(t, nil, nil)
	if w := e.do("GET", "/v2/wrapped", "pk_demo_good"); w.Code != 409 || strings.Contains(w.Body.String(), "secret") ||
		!strings.Contains(e.log.String(), "secret") {
		t.Errorf("a wrapped error answers %d %s", w.Code, w.Body)
	}
	if w := e.do("GET", "/v2/waits", "pk_demo_good"); w.Code != 503 || w.Header().Get("Retry-After") != "2" {
		t.Errorf("a wait of 1.5 s answers %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	if w := e.do("DELETE", "/v2/gone", "pk_demo_good"); w.Code != 204 || w.Body.Len() != 0 ||
		w.Header().Get("X-Request-Id") == "" || w.Header().Get("Content-Type") != "" {
		t.Errorf("no content answers %d %q %v", w.Code, w.Body, w.Header())
	}
	for range 2 { // needs no key and is not counted
		w := e.do("GET", "/v2/document", "")
		if w.Code != 200 || w.Body.String() != "text" ||
			w.Header().Get("X-RateLimit-Remaining") != "60" || w.Header().Get("X-Request-Id") == "" {
			t.Errorf("a document answers %d %q %v", w.Code, w.Body, w.Header())
		}
	}
	if got := e.counted(t, "wrapped", "409"); got != 1 {
		t.Errorf("counts %v requests", got)
	}
}

// counted is how many requests of an operation had a status.
func (e *edge) counted(t *testing.T, operation, status string) float64 {
	t.Helper()
	return e.sum(t, "partnerapi_requests_total",
		map[string]string{"operation": operation, "status": status, "version": "v2"})
}

// sum is what the counters of a name that have the labels have counted.
func (e *edge) sum(t *testing.T, name string, labels map[string]string) (n float64) {
	t.Helper()
	families, err := e.prom.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			has := 0
			for _, l := range m.GetLabel() {
				if want, asked := labels[l.GetName()]; asked && l.GetValue() == want {
					has++
				}
			}
			if has == len(labels) {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// TestAddresses: who asks is the peer, unless a trusted proxy says otherwise
// (decisions 2.2).
func TestAddresses(t *testing.T) {
	const peer = "192.0.2.1" // of httptest's requests
	for _, test := range []struct {
		name    string
		proxies []string
		forward func(i int) string
		refused bool // the 61st
	}{
		{"none trusted", nil, func(i int) string { return fmt.Sprintf("198.51.100.%d", i) }, true},
		{"another trusted", []string{"10.0.0.0/8"}, func(i int) string { return fmt.Sprintf("198.51.100.%d", i) }, true},
		{"trusted", []string{peer + "/32"}, func(i int) string { return fmt.Sprintf("198.51.100.%d", i) }, false},
		{"trusted, one caller", []string{peer}, func(int) string { return "198.51.100.7" }, true},
		{"trusted, forged start", []string{peer}, func(i int) string {
			return fmt.Sprintf("203.0.113.%d, 198.51.100.7", i)
		}, true},
		{"trusted, with ports", []string{peer}, func(i int) string { return fmt.Sprintf("198.51.100.7:%d", 1000+i) }, true},
		{"trusted, no address", []string{peer}, func(i int) string { return fmt.Sprintf("198.51.100.%d, unknown", i) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEdge(t, test.proxies, nil)
			for i := range 60 {
				if w := e.do("GET", "/v2/fine", "bad", "X-Forwarded-For", test.forward(i)); w.Code != 401 {
					t.Fatalf("request %d answers %d", i, w.Code)
				}
			}
			w := e.do("GET", "/v2/fine", "bad", "X-Forwarded-For", test.forward(61))
			if (w.Code == 429) != test.refused {
				t.Errorf("then answers %d %s", w.Code, w.Body)
			}
			if w := e.do("GET", "/v2/document", "", "X-Forwarded-For", test.forward(61)); w.Code != 200 {
				t.Errorf("the document is counted: %d", w.Code)
			}
		})
	}
	for _, proxies := range [][]string{nil, {peer}} { // no other header is read
		e := newEdge(t, proxies, nil)
		for i := range 61 {
			forged := fmt.Sprintf("198.51.100.%d", i)
			w := e.do("GET", "/v2/fine", "bad", "X-Real-IP", forged, "Forwarded", "for="+forged, "CF-Connecting-IP", forged,
				"X-Appengine-Remote-Addr", forged, "X-Client-IP", forged)
			if want := min(401+i/60*28, 429); w.Code != want {
				t.Fatalf("forged request %d answers %d", i, w.Code)
			}
		}
	}
	e := newEdge(t, nil, nil)
	if _, err := e.Engine([]string{"not a network"}); err == nil {
		t.Error("a proxy that is no network is taken")
	}
}

// unreachable is a shared store that does not answer.
type unreachable struct{}

// Add fails.
func (unreachable) Add(context.Context, string, int64, time.Duration) (int64, time.Time, error) {
	return 0, time.Time{}, errors.New("connection refused")
}

// TestSharedBudgetsUnreachable: each process counts for itself then.
func TestSharedBudgetsUnreachable(t *testing.T) {
	e := newEdge(t, nil, unreachable{})
	for left := 599; left > 590; left-- {
		w := e.do("GET", "/v2/fine", "pk_demo_good")
		if w.Code != 200 || w.Header().Get("X-RateLimit-Remaining") != fmt.Sprint(left) {
			t.Fatalf("answers %d, remaining %q", w.Code, w.Header().Get("X-RateLimit-Remaining"))
		}
	}
	if !strings.Contains(e.log.String(), "connection refused") {
		t.Error("does not say so in the log")
	}
}

// TestEveryCodeHasAStatus holds the table of decisions 3.2.
func TestEveryCodeHasAStatus(t *testing.T) {
	for code, want := range map[domain.Code]int{
		domain.InvalidRequest: 400, domain.Unauthorized: 401, domain.Forbidden: 403, domain.NotFound: 404,
		domain.RequestTimeout: 408, domain.Conflict: 409, domain.PayloadTooLarge: 413, domain.RateLimited: 429,
		domain.Internal: 500, domain.Unavailable: 503,
	} {
		if got := op.StatusOf(code); got != want {
			t.Errorf("%s is %d, not %d", code, got, want)
		}
	}
}

// text is a document.
var text http.HandlerFunc = func(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write([]byte("text"))
}
