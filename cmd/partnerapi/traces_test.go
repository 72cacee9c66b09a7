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

	"partnerapi/cmd/internal/output"
	"partnerapi/cmd/internal/telemetry"
	"partnerapi/db"
)

// traced is a service whose spans and log are kept. Its answers are waited for, so
// that a request's spans are there when it is answered.
type traced struct {
	t     *testing.T
	s     *service
	spans *tracetest.InMemoryExporter
	logs  bytes.Buffer
}

func newTraced(t *testing.T, flag string) *traced {
	t.Helper()
	s := &traced{t: t, spans: tracetest.NewInMemoryExporter()}
	traces := telemetry.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans)), propagation.TraceContext{})
	d, err := db.Open(strings.TrimPrefix(flag, "--database-url="), db.WithTracer(traces.Statements()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	line := parses(t, "serve", "--demo", "--release=latest", "--trusted-proxies=192.0.2.1") // the peer's, of httptest
	log := output.NewLog(&s.logs, slog.LevelInfo, "json")
	if s.s, err = line.Serve.build(t.Context(), d, "http://localhost", resources{}, log, traces); err != nil {
		t.Fatal(err)
	}
	return s
}

// theirs is the trace that requests name.
const theirs = "4bf92f3577b34da6a3ce929d0e0e4736"

// get answers a request, and returns its spans, the outermost first.
func (s *traced) get(path string) (answer fields, spans tracetest.SpanStubs) {
	s.t.Helper()
	s.spans.Reset()
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("X-API-Key", "pk_demo_all")
	r.Header.Set("X-Request-ID", "request-1")
	r.Header.Set("Traceparent", "00-"+theirs+"-00f067aa0ba902b7-01")
	w := httptest.NewRecorder()
	s.s.engine.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		s.t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	_ = json.Unmarshal(w.Body.Bytes(), &answer) // metrics are none
	spans = s.spans.GetSpans()
	slices.Reverse(spans)
	return answer, spans
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
	s := newTraced(t, demonstration(t))
	first := func(path, list string) fields {
		answer, _ := s.get(path)
		return answer[list].([]any)[0].(fields)
	}
	client := first("/v2/clients?limit=1", "data")["id"].(string)
	for _, path := range []string{"/healthz", "/metrics", "/readyz"} {
		if _, spans := s.get(path); len(spans) > 0 {
			t.Errorf("%s has the spans %v", path, spans)
		}
	}
	s.logs.Reset()
	_, spans := s.get("/v2/clients/" + client + "/users?search=zebra")
	s.check(spans, "v2 users.list", client, 0)
	s.checkLog()
	if older() {
		number := remarshal(t, first("/v1/clients?limit=1", "items")["id"])
		_, spans := s.get("/v1/clients/" + number + "/users?search=zebra")
		s.check(spans, "v1 users", client, slices.IndexFunc(spans, func(span tracetest.SpanStub) bool { return span.Name == "users.list" }))
	}
}

// check wants spans of the trace that the proxy named, the first of them the request's, that
// show nothing of whom it is about. within is the index of the operation's span, of which
// statements are parts.
func (s *traced) check(spans tracetest.SpanStubs, name, client string, within int) {
	s.t.Helper()
	request := spans[0]
	if len(spans) < 2 || within < 0 || request.Name != name || !strings.HasSuffix(valueOf(request, "http.route"), "/clients/:client_id/users") ||
		valueOf(request, "http.response.status_code") != "200" || valueOf(request, "partnerapi.key") != "pk_demo_all" ||
		valueOf(request, "partnerapi.request_id") != "request-1" || !request.Parent.IsValid() {
		s.t.Fatalf("the spans are %+v", spans)
	}
	if within > 0 && spans[within].Parent.SpanID() != request.SpanContext.SpanID() {
		s.t.Errorf("v2's operation is not within the request: %+v", spans)
	}
	statements := 0
	for _, span := range spans {
		if span.SpanContext.TraceID().String() != theirs {
			s.t.Errorf("%s is of another trace", span.Name)
		}
		if span.Parent.SpanID() == spans[within].SpanContext.SpanID() && valueOf(span, "db.query.text") != "" {
			statements++
		}
		for _, a := range append(slices.Clone(span.Attributes), attribute.String("name", span.Name)) {
			for _, secret := range []string{"zebra", client, "127.0.0.1", "192.0.2.1"} {
				if strings.Contains(strings.ToLower(a.Value.String()), secret) {
					s.t.Errorf("%s shows %s in %s", span.Name, secret, a.Key)
				}
			}
		}
	}
	if statements == 0 || within == 0 && statements != len(spans)-1 {
		s.t.Errorf("%d statements are of the operation: %+v", statements, spans)
	}
}

// checkLog wants every line of a request to have its id and its trace's, once.
func (s *traced) checkLog() {
	s.t.Helper()
	lines := strings.Count(s.logs.String(), "\n")
	for _, part := range []string{`"request_id":"request-1"`, `"trace_id":"` + theirs + `"`} {
		if n := strings.Count(s.logs.String(), part); lines == 0 || n != lines {
			s.t.Errorf("%d of %d lines have %s:\n%s", n, lines, part, &s.logs)
		}
	}
}

// TestTracesToACollector runs the service as an operator does, and wants what the
// variables ask for to arrive, the last spans at the stop.
func TestTracesToACollector(t *testing.T) {
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
	var got []byte
	for body := range arrived {
		got = append(got, body...)
	}
	says(t, string(got), "api-of-tests", "v2 clients.list", "http.route", "SELECT")
	for line := range strings.Lines(r.logs.String()) {
		if !strings.HasPrefix(line, "{") || !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is no JSON: %s", line)
		}
	}
}
