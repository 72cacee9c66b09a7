package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/cmd/internal/telemetry"
	"partnerapi/db"
	"partnerapi/v2/op"
)

// traced is a service whose spans and log are kept. Its answers are waited for, so
// that a request's spans are there when it is answered.
type traced struct {
	t     *testing.T
	s     *service
	spans *tracetest.InMemoryExporter
	logs  bytes.Buffer
}

func newTraced(t *testing.T, c serveCmd, flag string) *traced {
	t.Helper()
	s := &traced{t: t, spans: tracetest.NewInMemoryExporter()}
	traces := telemetry.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans)), propagation.TraceContext{})
	d, err := db.Open(strings.TrimPrefix(flag, "--database-url="), db.WithTracer(traces.Statements()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	c.Demo, c.Release, c.Listen = true, op.Latest, cli.DefaultListen
	store, err := c.OpenStore(t.Context(), t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	log := traces.Log(output.NewLog(&s.logs, slog.LevelInfo, "json"))
	if s.s, err = c.build(t.Context(), d, "http://localhost", resources{store: store}, log, traces); err != nil {
		t.Fatal(err)
	}
	return s
}

// get answers a request, and returns its spans, the outermost first.
func (s *traced) get(path string, headers ...string) ([]byte, []tracetest.SpanStub) {
	s.t.Helper()
	s.spans.Reset()
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("X-API-Key", "pk_demo_all")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.s.engine.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		s.t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	spans := s.spans.GetSpans()
	slices.Reverse(spans)
	return w.Body.Bytes(), spans
}

func valueOf(span tracetest.SpanStub, key string) string {
	for _, a := range span.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// TestTraces asks both versions for the users of a client, by a text that nobody
// else may see.
func TestTraces(t *testing.T) {
	t.Parallel()
	s := newTraced(t, serveCmd{}, demonstration(t))
	body, _ := s.get("/v2/clients?limit=1")
	var page struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(body, &page); err != nil {
		t.Fatal(err)
	}
	client := page.Data[0].ID
	_, v2 := s.get("/v2/clients/"+client+"/users?search=zebra", "X-Request-ID", "request-1")
	s.check(v2, "v2 users.list", "/v2/clients/:client_id/users", client)
	parent := v2[0].SpanContext.SpanID()
	for _, span := range v2[1:] {
		if span.Parent.SpanID() != parent || valueOf(span, "db.query.text") == "" {
			t.Errorf("%s is not a statement of the request: %+v", span.Name, span)
		}
	}
	if got := valueOf(v2[0], "partnerapi.request_id"); got != "request-1" {
		t.Errorf("the request's id is %q", got)
	}
	s.checkLog("request-1", v2[0])

	if !older() {
		return
	}
	var numbers struct{ Items []struct{ ID json.Number } }
	if body, _ = s.get("/v1/clients?limit=1"); json.Unmarshal(body, &numbers) != nil {
		t.Fatalf("v1 answers %s", body)
	}
	number := numbers.Items[0].ID.String()
	_, v1 := s.get("/v1/clients/" + number + "/users?search=zebra")
	if !strings.HasPrefix(v1[0].Name, "v1 ") {
		t.Fatalf("the request's span is %s", v1[0].Name)
	}
	s.check(v1, v1[0].Name, valueOf(v1[0], "http.route"), client)
	call := slices.IndexFunc(v1, func(span tracetest.SpanStub) bool { return span.Name == "users.list" })
	if call < 0 || v1[call].Parent.SpanID() != v1[0].SpanContext.SpanID() {
		t.Fatalf("v2's operation is not within the request of v1: %v", namesOf(v1))
	}
	if !slices.ContainsFunc(v1, func(span tracetest.SpanStub) bool {
		return span.Parent.SpanID() == v1[call].SpanContext.SpanID() && valueOf(span, "db.query.text") != ""
	}) {
		t.Errorf("the operation has no statement: %v", namesOf(v1))
	}
}

// check wants spans of one trace, the first of them the request's, that show nothing
// of whom it is about.
func (s *traced) check(spans []tracetest.SpanStub, name, route, client string) {
	s.t.Helper()
	if len(spans) < 2 || spans[0].Name != name || valueOf(spans[0], "http.route") != route ||
		valueOf(spans[0], "http.response.status_code") != "200" || valueOf(spans[0], "partnerapi.key") != "pk_demo_all" {
		s.t.Fatalf("the spans are %v: %+v", namesOf(spans), spans[0])
	}
	for _, span := range spans {
		if span.SpanContext.TraceID() != spans[0].SpanContext.TraceID() {
			s.t.Errorf("%s is of another trace", span.Name)
		}
		shown := slices.Concat(span.Attributes, []attribute.KeyValue{attribute.String("name", span.Name)})
		for _, a := range shown {
			for _, secret := range []string{"zebra", client, "127.0.0.1", "192.0.2.1"} {
				if strings.Contains(strings.ToLower(a.Value.String()), secret) {
					s.t.Errorf("%s shows %s in %s", span.Name, secret, a.Key)
				}
			}
		}
	}
}

// checkLog wants every line of a request to have its id and its trace's.
func (s *traced) checkLog(request string, span tracetest.SpanStub) {
	s.t.Helper()
	found := false
	for line := range strings.Lines(s.logs.String()) {
		var fields struct {
			Msg       string
			RequestID string `json:"request_id"`
			TraceID   string `json:"trace_id"`
		}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			s.t.Fatalf("%s: %v", line, err)
		}
		if fields.RequestID != request {
			continue
		}
		found = true
		if fields.TraceID != span.SpanContext.TraceID().String() {
			s.t.Errorf("a line of the request has the trace %q", fields.TraceID)
		}
		if strings.Count(line, `"request_id"`) != 1 {
			s.t.Errorf("the id stands there twice: %s", line)
		}
	}
	if !found {
		s.t.Errorf("no line has the request's id:\n%s", s.logs.String())
	}
}

func namesOf(spans []tracetest.SpanStub) []string {
	names := make([]string, len(spans))
	for i, span := range spans {
		names[i] = span.Name
	}
	return names
}

// TestTraceOfACaller: the trace that a caller names is a link; that of a trusted
// proxy is gone on with. Health has no spans.
func TestTraceOfACaller(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	const theirs = "4bf92f3577b34da6a3ce929d0e0e4736"
	header := []string{"Traceparent", "00-" + theirs + "-00f067aa0ba902b7-01"}
	for proxies, trusted := range map[string]bool{"": false, "198.51.100.0/24": false, "192.0.2.1": true} { // the peer's, of httptest
		c := serveCmd{}
		if proxies != "" {
			c.TrustedProxies = []string{proxies}
		}
		s := newTraced(t, c, flag)
		for _, path := range []string{"/healthz", "/metrics", "/readyz"} {
			if _, spans := s.get(path, header...); len(spans) > 0 {
				t.Errorf("%s has the spans %v", path, namesOf(spans))
			}
		}
		_, spans := s.get("/v2/openapi.json", header...)
		root := spans[0]
		if same := root.SpanContext.TraceID().String() == theirs; same != trusted || root.Parent.IsValid() != trusted {
			t.Errorf("proxies %q: the trace is %s", proxies, root.SpanContext.TraceID())
		}
		if linked := len(root.Links) == 1 && root.Links[0].SpanContext.TraceID().String() == theirs; linked == trusted {
			t.Errorf("proxies %q: the links are %v", proxies, root.Links)
		}
	}
}

// TestTracesToACollector runs the service as an operator does, and wants what the
// variables ask for to arrive, the last spans at the stop.
func TestTracesToACollector(t *testing.T) {
	var got bytes.Buffer
	arrived := make(chan []byte, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		arrived <- body.Bytes()
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_SERVICE_NAME", "api-of-tests")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
	r := serving(t, demonstration(t), "--demo", "--log-format=json")
	r.get("/v2/clients", "pk_demo_all").want(http.StatusOK)
	r.finish()
	close(arrived)
	for body := range arrived {
		got.Write(body)
	}
	for _, text := range []string{"api-of-tests", "v2 clients.list", "http.route", "SELECT"} {
		if !bytes.Contains(got.Bytes(), []byte(text)) {
			t.Errorf("the collector did not get %q in %d bytes", text, got.Len())
		}
	}
	for line := range strings.Lines(r.logs.String()) {
		if !strings.HasPrefix(line, "{") || !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is no JSON: %s", line)
		}
	}
}
