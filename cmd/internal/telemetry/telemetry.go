// Package telemetry shows what the service does to a collector of traces, where
// the standard variables of OpenTelemetry (OTEL_…) ask for it. Where they do not,
// there is no Telemetry: its methods on nil return nil hooks, and nothing is
// installed anywhere.
//
// Spans hold names, routes, statements without their values, statuses, prefixes of
// keys and ids of requests: no secrets, no addresses, names or ids of people, and
// no texts of errors. The lines of the log, which have the trace's id, hold those.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/propagators/autoprop"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/net/http/httpguts"
)

// scope names the source of the spans.
const scope = "partnerapi"

// Telemetry makes spans. A nil one is off. It is safe for concurrent use.
type Telemetry struct {
	provider   *sdktrace.TracerProvider
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

// Asked reports whether the variables ask for traces: they name an exporter other
// than none, or the address of a collector, and do not disable the SDK.
func Asked(getenv func(string) string) bool {
	exporter := getenv("OTEL_TRACES_EXPORTER")
	switch {
	case strings.EqualFold(strings.TrimSpace(getenv("OTEL_SDK_DISABLED")), "true"), exporter == "none":
		return false
	case exporter != "":
		return true
	}
	return getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Start begins to export spans, of a version of the program, where the variables
// ask for it; else it returns nil. It waits for no collector. One that cannot be
// reached is logged, at most once a minute, and spans are dropped.
// Variables that make no sense are an error.
func Start(ctx context.Context, version string, log *slog.Logger) (*Telemetry, error) {
	if !Asked(os.Getenv) {
		return nil, nil
	}
	if err := Check(os.Getenv); err != nil {
		return nil, err
	}
	// What the SDK complains of goes to standard error unless it has a handler.
	otel.SetErrorHandler(&complaints{log: log, now: time.Now})
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	exporter, err := newExporter(ctx)
	if err != nil {
		return nil, err
	}
	source, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("partnerapi"), semconv.ServiceVersion(version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, errors.Join(fmt.Errorf("the variables OTEL_…: %w", err), exporter.Shutdown(ctx))
	}
	return New(sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(source)),
		autoprop.NewTextMapPropagator()), nil
}

// Check reports what is wrong with the variables, where they ask for traces. It connects to
// nothing. An error shows no address and no header: those may hold secrets, and the SDK
// would write what it cannot read into the log.
func Check(getenv func(string) string) error {
	if !Asked(getenv) {
		return nil
	}
	if name := getenv("OTEL_TRACES_EXPORTER"); !slices.Contains([]string{"", "otlp", "console"}, name) {
		return fmt.Errorf("OTEL_TRACES_EXPORTER=%s is not known: use otlp, console or none", name)
	}
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"} {
		if protocol := getenv(prefix + "PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
			return fmt.Errorf("%sPROTOCOL=%s is not known: traces are sent by http/protobuf, which collectors take on port 4318",
				prefix, protocol)
		}
		if _, err := url.Parse(getenv(prefix + "ENDPOINT")); err != nil {
			return fmt.Errorf("%sENDPOINT is no URL: write it as http://host:4318", prefix)
		}
		for header := range strings.SplitSeq(getenv(prefix+"HEADERS"), ",") {
			name, value, pair := strings.Cut(header, "=")
			_, err := url.PathUnescape(value)
			if strings.TrimSpace(header) != "" && (!pair || err != nil || !httpguts.ValidHeaderFieldName(strings.TrimSpace(name))) {
				return fmt.Errorf("%sHEADERS is no list of name=value,name=value with special characters escaped", prefix)
			}
		}
	}
	return nil
}

// newExporter returns what the variables name: OTLP over HTTP, which reads its own
// variables, or the console.
func newExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if os.Getenv("OTEL_TRACES_EXPORTER") == "console" {
		return stdouttrace.New()
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("the variables OTEL_… ask for traces that cannot be made: %w", err)
	}
	return exporter, nil
}

// New makes spans by a provider. The propagator reads the context that a caller
// sends.
func New(provider *sdktrace.TracerProvider, propagator propagation.TextMapPropagator) *Telemetry {
	return &Telemetry{provider: provider, tracer: provider.Tracer(scope), propagator: propagator}
}

// FlushWithin is how long the last spans may take when the service stops.
const FlushWithin = 5 * time.Second

// Shutdown exports what is left until ctx ends, and makes no more spans. Spans that
// a collector did not take by then are lost, which is no failure of the service:
// the log says so.
func (t *Telemetry) Shutdown(ctx context.Context, log *slog.Logger) {
	if t == nil {
		return
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		log.WarnContext(ctx, "the last traces were not exported", "error", err)
	}
}

// complainEvery is how often a failure to export is logged.
const complainEvery = time.Minute

// complaints logs what the SDK cannot do.
type complaints struct {
	log  *slog.Logger
	now  func() time.Time
	mu   sync.Mutex
	last time.Time
}

// Handle logs an error, unless one was logged within the last minute.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	now := c.now()
	logged := c.last.IsZero() || now.Sub(c.last) >= complainEvery
	if logged {
		c.last = now
	}
	c.mu.Unlock()
	if logged {
		c.log.Warn("traces are not exported; it will be tried again", "error", err)
	}
}
