package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"partnerapi/cmd/internal/telemetry"
	"partnerapi/domain"
)

// recorded returns telemetry whose spans are kept.
func recorded(t *testing.T) (*telemetry.Telemetry, *tracetest.InMemoryExporter) {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	return telemetry.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept)), propagation.TraceContext{}), kept
}

// attribute is the text of an attribute of a span.
func attribute(span tracetest.SpanStub, key string) string {
	for _, a := range span.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// shown is all that a span shows.
func shown(span tracetest.SpanStub) string {
	text := span.Name + " " + span.Status.Description
	for _, event := range span.Events {
		span.Attributes = append(span.Attributes, event.Attributes...)
	}
	for _, a := range span.Attributes {
		text += " " + a.Value.String()
	}
	return text
}

// withVariables runs a test with variables NAME=value.
func withVariables(t *testing.T, text string, test func(t *testing.T)) {
	t.Run(text, func(t *testing.T) {
		for variable := range strings.FieldsSeq(text) {
			name, value, _ := strings.Cut(variable, "=")
			t.Setenv(name, value)
		}
		test(t)
	})
}

// TestEnabled: traces are made where the variables name an exporter or a collector's address.
func TestEnabled(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                           false,
		"OTEL_SERVICE_NAME=x":                        false,
		"OTEL_TRACES_EXPORTER=none":                  false,
		"OTEL_TRACES_EXPORTER=otlp":                  true,
		"OTEL_TRACES_EXPORTER=console":               true,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http:x":         true,
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http:x":  true,
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http:x": false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http:x OTEL_TRACES_EXPORTER=none":         false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http:x OTEL_SDK_DISABLED=TRUE":            false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http:x OTEL_SDK_DISABLED=false":           true,
		"OTEL_TRACES_EXPORTER=otlp OTEL_SDK_DISABLED=true OTEL_SERVICE_NAME=x": false,
	} {
		withVariables(t, text, func(t *testing.T) {
			if got := telemetry.Enabled(); got != want {
				t.Errorf("%q: %v", text, got)
			}
		})
	}
}

// TestOff: without the variables nothing is installed anywhere.
func TestOff(t *testing.T) {
	for _, name := range []string{"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		t.Setenv(name, "")
	}
	log := slog.New(slog.DiscardHandler)
	off, err := telemetry.Start(t.Context(), "1", log)
	if err != nil || off != nil {
		t.Fatalf("%v, %v", off, err)
	}
	if off.Statements() != nil || off.Operations() != nil || off.OperationTrace() != nil || off.Work() != nil {
		t.Error("something is traced")
	}
	if off.Transport(http.DefaultTransport) != http.DefaultTransport {
		t.Error("the transport is wrapped")
	}
	off.Shutdown(t.Context(), log)
}

// TestSilentCollector: a collector that takes connections and never answers keeps
// neither the work nor the stop waiting, and the log says so.
func TestSilentCollector(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+silent.Addr().String())
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "8")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
	// The exporter may go on to log after the stop, which does not wait for it.
	on, err := telemetry.Start(t.Context(), "1", slog.New(slog.DiscardHandler))
	if err != nil || on == nil {
		t.Fatalf("%v, %v", on, err)
	}
	for range 1000 { // far more than the queue holds
		_, end := on.Work()(t.Context(), "work")
		end(nil)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var logs bytes.Buffer
	on.Shutdown(over, slog.New(slog.NewTextHandler(&logs, nil)))
	if !strings.Contains(logs.String(), "the last traces were not exported") {
		t.Errorf("the log says %s", logs.String())
	}
}

// TestStatementErrors: what PostgreSQL says of a value is in no span.
func TestStatementErrors(t *testing.T) {
	t.Parallel()
	on, kept := recorded(t)
	tracer := on.Statements()
	run := func(ctx context.Context) {
		ctx = tracer.TraceQueryStart(ctx, nil, pgx.TraceQueryStartData{SQL: "INSERT INTO users VALUES ($1)", Args: []any{"ann@example.com"}})
		tracer.TraceQueryEnd(ctx, nil, pgx.TraceQueryEndData{Err: &pgconn.PgError{
			Code: "22P02", Message: `invalid input "ann@example.com"`, Detail: "Key (email)=(ann@example.com) exists.",
		}})
	}
	run(t.Context())
	if n := len(kept.GetSpans()); n > 0 {
		t.Errorf("a statement without a span around it makes %d spans", n)
	}
	ctx, end := on.Work()(t.Context(), "work")
	run(ctx)
	end(nil)
	span := kept.GetSpans()[0]
	if span.Name != "INSERT" || attribute(span, "db.query.text") != "INSERT INTO users VALUES ($1)" || span.Status.Code != codes.Error {
		t.Errorf("the span is %+v", span)
	}
	if text := shown(span); strings.Contains(text, "ann@") || !strings.Contains(text, "22P02") {
		t.Errorf("the span shows %s", text)
	}
}

// TestTransport: a call to the outside shows its host and nothing of its path, and
// takes nothing of the trace along.
func TestTransport(t *testing.T) {
	t.Parallel()
	on, kept := recorded(t)
	var sent http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Clone()
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	client := http.Client{Transport: on.Transport(server.Client().Transport)}
	ctx, end := on.Work()(t.Context(), "work")
	r, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/users/ann@example.com?$skiptoken=secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	end(nil)
	span := kept.GetSpans()[0]
	if span.Name != "HTTP GET" || attribute(span, "server.address") != "127.0.0.1" ||
		attribute(span, "http.response.status_code") != "429" || span.Status.Code != codes.Error {
		t.Errorf("the span is %+v", span)
	}
	if text := shown(span); strings.Contains(text, "ann") || strings.Contains(text, "secret") {
		t.Errorf("the span shows %s", text)
	}
	if sent.Get("Traceparent") != "" {
		t.Errorf("the trace is told to others: %v", sent)
	}
}

// TestCalls: the call of an operation is a span within that of another surface, and
// none within its own request's.
func TestCalls(t *testing.T) {
	t.Parallel()
	on, kept := recorded(t)
	call := func(name string) {
		ctx, end := on.Work()(t.Context(), name)
		_, done := on.OperationTrace()(ctx, "clients.list")
		done(&domain.Error{Code: domain.NotFound, Message: "there is no client Acme"})
		end(nil)
	}
	call("v2 clients.list")
	call("v1 getClients")
	spans := kept.GetSpans()
	if len(spans) != 3 || spans[1].Name != "clients.list" || spans[1].Parent.SpanID() != spans[2].SpanContext.SpanID() ||
		attribute(spans[1], "error.type") != "not_found" {
		t.Errorf("the spans are %+v", spans)
	}
}

// TestJobs: a try of a job is a span, and what it does is within it.
func TestJobs(t *testing.T) {
	t.Parallel()
	on, kept := recorded(t)
	ctx, end := on.Work()(t.Context(), "job report", slog.Int("try", 2))
	_, ended := on.Work()(ctx, "within", slog.String("outcome", "made"))
	ended(nil)
	end(errors.New("the client Acme is away"))
	spans := kept.GetSpans()
	if len(spans) != 2 {
		t.Fatalf("%d spans", len(spans))
	}
	within, job := spans[0], spans[1]
	if job.Name != "job report" || attribute(job, "partnerapi.try") != "2" ||
		job.Status.Code != codes.Error || job.Status.Description != "" || len(job.Events) > 0 {
		t.Errorf("the job's span is %+v", job)
	}
	if within.Parent.SpanID() != job.SpanContext.SpanID() || attribute(within, "partnerapi.outcome") != "made" {
		t.Errorf("the span within is %+v", within)
	}
	if text := shown(within) + shown(job); strings.Contains(text, "Acme") {
		t.Errorf("the spans show %s", text)
	}
}

// TestCheck: variables that make no sense are an error that shows no address and no header.
func TestCheck(t *testing.T) {
	for text, wrong := range map[string]bool{
		"":                                 false,
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc": false, // asks for nothing
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://a:4318 OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20sesame,b=c": false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://a:4317 OTEL_EXPORTER_OTLP_PROTOCOL=grpc":                             true,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://a:4317 OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc":                      true,
		"OTEL_TRACES_EXPORTER=zipkin":                                            true,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://someone:ses%ame@a":                   true,
		"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_HEADERS=sesame":            true,
		"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_HEADERS=api:key=sesame":    true,
		"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_TRACES_HEADERS=a=ses%zame": true,
	} {
		withVariables(t, text, func(t *testing.T) {
			err := telemetry.Check()
			if (err != nil) != wrong || err != nil && (strings.Contains(err.Error(), "ses") || !strings.Contains(err.Error(), "OTEL_")) {
				t.Errorf("%s: %v", text, err)
			}
		})
	}
}

// TestRequests: the trace that a caller names is a link; that of a trusted proxy is gone on
// with. A path that is passed over has no span.
func TestRequests(t *testing.T) {
	t.Parallel()
	const theirs = "4bf92f3577b34da6a3ce929d0e0e4736"
	gin.SetMode(gin.ReleaseMode)
	for proxies, trusted := range map[string]bool{"": false, "198.51.100.0/24": false, "192.0.2.1/32": true} { // the peer's, of httptest
		var networks []netip.Prefix
		if proxies != "" {
			networks = append(networks, netip.MustParsePrefix(proxies))
		}
		traces, kept := recorded(t)
		engine := gin.New()
		engine.Use(traces.Requests(networks, "/healthz"))
		engine.GET("/x", func(*gin.Context) {})
		for _, path := range []string{"/healthz", "/x"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Traceparent", "00-"+theirs+"-00f067aa0ba902b7-01")
			engine.ServeHTTP(httptest.NewRecorder(), r)
		}
		spans := kept.GetSpans()
		if len(spans) != 1 || spans[0].Name != "GET /x" {
			t.Fatalf("the spans are %v", spans)
		}
		root := spans[0]
		if same := root.SpanContext.TraceID().String() == theirs; same != trusted || root.Parent.IsValid() != trusted {
			t.Errorf("proxies %q: the trace is %s", proxies, root.SpanContext.TraceID())
		}
		if linked := len(root.Links) == 1 && root.Links[0].SpanContext.TraceID().String() == theirs; linked == trusted {
			t.Errorf("proxies %q: the links are %v", proxies, root.Links)
		}
	}
}

// TestOffAllocatesNothing: what packages do for tracing costs nothing where it is off,
// and the id of a request comes with its caller.
func TestOffAllocatesNothing(t *testing.T) {
	var off *telemetry.Telemetry
	work, tracer, ctx := off.Work(), off.Statements(), t.Context()
	caller, id := &domain.Caller{}, "request"
	for name, one := range map[string]struct {
		want float64
		do   func()
	}{
		"a span":    {0, func() { _, end := work.Begin(ctx, "work"); end(nil) }},
		"a tracer":  {0, func() { _ = tracer == nil }},
		"a request": {1, func() { kept = domain.WithRequest(ctx, caller, id) }},
		"a caller":  {1, func() { kept = domain.WithCaller(ctx, caller) }}, // as it was without ids
	} {
		if got := testing.AllocsPerRun(100, one.do); got != one.want {
			t.Errorf("%s allocates %v times, not %v", name, got, one.want)
		}
	}
}

// kept keeps a result from being optimized away.
var kept context.Context
