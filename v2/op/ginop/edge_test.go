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
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// edge is an edge of made-up operations, which the good keys may call.
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

// find knows the good keys.
func (e *edge) find(_ context.Context, digest []byte) (*domain.Caller, error) {
	e.finds.Add(1)
	if caller := goodKeys[[sha256.Size]byte(digest)]; caller != nil {
		return caller, nil
	}
	return nil, &domain.Error{Code: domain.Unauthorized, Message: "unknown"}
}

// goodKeys are pk_demo_good, and pk_demo_good0 to pk_demo_good99. Ten keys are one partner's.
var goodKeys = func() map[[sha256.Size]byte]*domain.Caller {
	keys := map[[sha256.Size]byte]*domain.Caller{}
	for n := range 101 {
		name := "good"
		if n > 0 {
			name += strconv.Itoa(n - 1)
		}
		keys[sha256.Sum256([]byte("pk_demo_"+name))] = &domain.Caller{
			Key: domain.KeyID{byte(n)}, Partner: domain.PartnerID{byte((n + 9) / 10)}, Prefix: "pk_" + name,
			Scopes: []domain.Scope{domain.Read, domain.Write},
		}
	}
	return keys
}()

// operations fail, or succeed, in ways that the service's own do not.
func operations() *op.Set {
	set := &op.Set{}
	get := func(id string, run func(context.Context, *empty) (*answer, error)) {
		add(set, id, "GET", "/"+id, 200, run)
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
	add(set, "gone", "DELETE", "/gone", 204, func(context.Context, *empty) (*op.NoContent, error) {
		return &op.NoContent{}, nil
	})
	return set
}

// add adds an operation, of scope read for GET, else of scope write.
func add[In, Out any](set *op.Set, id, method, path string, status int, run func(context.Context, *In) (*Out, error)) {
	scope := domain.Write
	if method == "GET" {
		scope = domain.Read
	}
	op.Add(set, op.Meta{ID: id, Method: method, Path: path, Scope: scope, Since: op.V2_0, Status: status, Summary: "s"}, run)
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

// wantStatus wants an answer to have a status.
func wantStatus(t *testing.T, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	if w.Code != status {
		t.Errorf("answers %d, not %d: %v %s", w.Code, status, w.Header(), w.Body)
	}
}

// wantError wants an answer to be the error of a code.
func wantError(t *testing.T, w *httptest.ResponseRecorder, code domain.Code) {
	t.Helper()
	var body op.ErrorEnvelope
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Error.Code != code {
		t.Errorf("is not %s: %s", code, w.Body)
	}
	wantStatus(t, w, op.StatusOf(code))
}

// wantRemaining wants an answer to have a status, and to show what is left of a budget.
func wantRemaining(t *testing.T, w *httptest.ResponseRecorder, status, remaining int) {
	t.Helper()
	wantStatus(t, w, status)
	if left := w.Header().Get("X-RateLimit-Remaining"); left != strconv.Itoa(remaining) {
		t.Errorf("%s requests are left, not %d", left, remaining)
	}
}

// TestInternal: whatever goes wrong in an operation is a 500 that shows
// nothing, with all headers, and is logged with its cause.
func TestInternal(t *testing.T) {
	const secret = "the secret of the house"
	for id, logged := range map[string][]string{"panics": {secret, "goroutine"}, "nil": {"goroutine"}, "fails": {secret}} {
		t.Run(id, func(t *testing.T) {
			e := newEdge(t, nil, nil)
			w := e.do("GET", "/v2/"+id, "pk_demo_good", "X-Request-Id", "mine")
			wantError(t, w, domain.Internal)
			wantRemaining(t, w, 500, 599)
			if !strings.Contains(w.Body.String(), `"request_id":"mine"`) || w.Header().Get("X-Request-Id") != "mine" {
				t.Errorf("answers %v %s", w.Header(), w.Body)
			}
			if strings.Contains(w.Body.String(), "secret") || strings.Contains(w.Body.String(), "goroutine") {
				t.Errorf("shows internals: %s", w.Body)
			}
			for _, part := range append(logged, "level=ERROR", "mine") {
				if !strings.Contains(e.log.String(), part) {
					t.Errorf("no %s is logged: %s", part, e.log)
				}
			}
			wantStatus(t, e.do("GET", "/v2/fine", "pk_demo_good"), 200)
		})
	}
}

func TestOutcomes(t *testing.T) {
	e := newEdge(t, nil, nil)
	w := e.do("GET", "/v2/wrapped", "pk_demo_good")
	if wantStatus(t, w, 409); strings.Contains(w.Body.String(), "secret") || !strings.Contains(e.log.String(), "secret") {
		t.Errorf("a wrapped error answers %s, logs %s", w.Body, e.log)
	}
	w = e.do("GET", "/v2/waits", "pk_demo_good")
	if wantStatus(t, w, 503); w.Header().Get("Retry-After") != "2" {
		t.Errorf("a wait of 1.5 s answers %v", w.Header())
	}
	w = e.do("DELETE", "/v2/gone", "pk_demo_good")
	wantStatus(t, w, 204)
	if w.Body.Len() != 0 || w.Header().Get("X-Request-Id") == "" || w.Header().Get("Content-Type") != "" {
		t.Errorf("no content answers %q %v", w.Body, w.Header())
	}
	for range 2 { // needs no key and is not counted
		w := e.do("GET", "/v2/document", "")
		wantRemaining(t, w, 200, 60)
		if w.Body.String() != "text" || w.Header().Get("X-Request-Id") == "" || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("a document answers %q %v", w.Body, w.Header())
		}
	}
	e.wantMetric(t, `partnerapi_requests_total{operation="wrapped",status="409",version="v2"} 1`)
}

// wantMetric wants a line among the metrics.
func (e *edge) wantMetric(t *testing.T, line string) {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(e.prom, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if !strings.Contains(w.Body.String(), line+"\n") {
		t.Errorf("the metrics have no %s:\n%s", line, w.Body)
	}
}

// TestAddresses: who asks is the peer, unless a trusted proxy says otherwise, by X-Forwarded-For
// alone (decisions 2.2).
func TestAddresses(t *testing.T) {
	const peer = "192.0.2.1" // of httptest's requests
	for name, test := range map[string]struct {
		proxies []string
		headers []string
		last    int // the status of the 61st
	}{
		"none trusted":    {nil, []string{"X-Forwarded-For"}, 429},
		"another trusted": {[]string{"10.0.0.0/8"}, []string{"X-Forwarded-For"}, 429},
		"trusted":         {[]string{peer + "/32"}, []string{"X-Forwarded-For"}, 401},
		"other headers": {[]string{peer}, []string{
			"X-Real-IP", "Forwarded", "CF-Connecting-IP", "X-Appengine-Remote-Addr", "X-Client-IP",
		}, 429},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t, test.proxies, nil)
			for i := range 61 {
				var headers []string
				for _, name := range test.headers {
					headers = append(headers, name, fmt.Sprintf("198.51.100.%d", i))
				}
				want := 401
				if i == 60 {
					want = test.last
				}
				wantStatus(t, e.do("GET", "/v2/fine", "bad", headers...), want)
			}
			wantStatus(t, e.do("GET", "/v2/document", ""), 200) // which is not counted
		})
	}
	e := newEdge(t, nil, nil)
	if _, err := e.Engine([]string{"not a network"}); err == nil {
		t.Error("a proxy that is no network is taken")
	}
}

// unreachable is a shared store that does not answer.
type unreachable struct{}

// Add fails.
func (unreachable) Add(context.Context, string, int64, time.Duration) (int64, time.Duration, error) {
	return 0, 0, errors.New("connection refused")
}

// TestSharedBudgetsUnreachable: each process counts for itself then.
func TestSharedBudgetsUnreachable(t *testing.T) {
	e := newEdge(t, nil, unreachable{})
	for left := 599; left > 590; left-- {
		wantRemaining(t, e.do("GET", "/v2/fine", "pk_demo_good"), 200, left)
	}
	if !strings.Contains(e.log.String(), "connection refused") {
		t.Error("does not say so in the log")
	}
}

// TestEveryCodeHasAStatus holds the table of decisions 3.2.
func TestEveryCodeHasAStatus(t *testing.T) {
	for code, want := range map[domain.Code]int{
		domain.InvalidRequest: 400, domain.Unauthorized: 401, domain.Forbidden: 403, domain.NotFound: 404,
		domain.MethodNotAllowed: 405, domain.RequestTimeout: 408, domain.Conflict: 409, domain.PayloadTooLarge: 413, domain.UnsupportedEncoding: 415, domain.RateLimited: 429,
		domain.Internal: 500, domain.Unavailable: 503,
	} {
		if got := op.StatusOf(code); got != want {
			t.Errorf("%s is %d, not %d", code, got, want)
		}
	}
}

// TestNoRoute verifies that a path outside of all surfaces is v2's error, without a key, and that a 404 says so if the
// path ends in a slash.
func TestNoRoute(t *testing.T) {
	e := newEdge(t, nil, nil)
	const slash = ": no path of the API ends in a slash"
	for _, path := range []string{"//v2/fine", "/V2/fine", "/v3/fine", "/v2x", "/", "/mcp/", "/v2/../fine/", "/%76%32//", "/v2/fine/", "/v2/"} {
		key, what := "", "no such path"
		if strings.HasPrefix(path, "/v2/") || path == "/%76%32//" {
			key, what = "pk_demo_good", "no such operation"
		}
		if path != "/" && strings.HasSuffix(path, "/") {
			what += slash
		}
		for _, method := range []string{"GET", "POST"} {
			w := e.do(method, path, key, "X-Request-Id", "mine")
			wantError(t, w, domain.NotFound)
			var body op.ErrorEnvelope
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if h := w.Header(); body.Error.Message != what+"; see /v2/openapi.yaml" || body.Error.RequestID != "mine" || h.Get("X-Request-Id") != "mine" ||
				h.Get("Content-Type") != "application/json; charset=utf-8" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s %s: got %v %s, want %s", method, path, h, w.Body, what)
			}
		}
	}
}

// text is a document.
var text http.HandlerFunc = func(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write([]byte("text"))
}
