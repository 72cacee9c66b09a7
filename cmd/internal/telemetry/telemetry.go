// Package telemetry exports traces of the service to a collector, if the standard variables of OpenTelemetry (OTEL_…)
// enable that. If they do not, the Telemetry is nil: its methods return nil hooks, and nothing is installed.
//
// Spans hold names, routes, statements without their values, statuses, prefixes of keys and ids of requests. They hold
// no secrets, and no addresses, names or ids of people. They hold no texts of errors either: those are in the log,
// whose lines have the trace's id.
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

// scope is the instrumentation scope of the spans.
const scope = "partnerapi"

// Telemetry starts spans; a nil Telemetry starts none. It is safe for concurrent use.
type Telemetry struct {
	provider   *sdktrace.TracerProvider
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

// Enabled reports whether the variables enable traces: they name an exporter other than none, or a collector's
// address, and do not disable the SDK.
func Enabled() bool {
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	switch {
	case strings.EqualFold(strings.TrimSpace(os.Getenv("OTEL_SDK_DISABLED")), "true"), exporter == "none":
		return false
	case exporter != "":
		return true
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Start starts exporting spans if the variables enable it; otherwise it returns nil. It does not wait for a collector.
// An unreachable one is logged, at most once a minute, and spans are dropped. Invalid variables are an error.
func Start(ctx context.Context, version string, log *slog.Logger) (*Telemetry, error) {
	if !Enabled() {
		return nil, nil
	}
	if err := Check(); err != nil {
		return nil, err
	}
	// The SDK writes its errors to standard error unless it has a handler.
	otel.SetErrorHandler(&errorLogger{log: log, now: time.Now})
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	exporter, err := newExporter(ctx)
	if err != nil {
		return nil, err
	}
	source, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("partnerapi"), semconv.ServiceVersion(version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, errors.Join(fmt.Errorf("the OTEL_… variables: %w", err), exporter.Shutdown(ctx))
	}
	return New(sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(source)),
		autoprop.NewTextMapPropagator()), nil
}

// Check returns an error if the variables enable traces and are invalid. It does not connect. The error shows no
// address and no header, as those may contain secrets: the SDK, which checks them too, would log them.
func Check() error {
	if !Enabled() {
		return nil
	}
	if name := os.Getenv("OTEL_TRACES_EXPORTER"); !slices.Contains([]string{"", "otlp", "console"}, name) {
		return fmt.Errorf("OTEL_TRACES_EXPORTER=%s is unknown; use otlp, console or none", name)
	}
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"} {
		if protocol := os.Getenv(prefix + "PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
			return fmt.Errorf("%sPROTOCOL=%s is not supported; use http/protobuf, which collectors accept on port 4318",
				prefix, protocol)
		}
		if _, err := url.Parse(os.Getenv(prefix + "ENDPOINT")); err != nil {
			return fmt.Errorf("%sENDPOINT is not a URL; write it as http://host:4318", prefix)
		}
		for header := range strings.SplitSeq(os.Getenv(prefix+"HEADERS"), ",") {
			name, value, hasValue := strings.Cut(header, "=")
			_, err := url.PathUnescape(value)
			if strings.TrimSpace(header) != "" && (!hasValue || err != nil || !httpguts.ValidHeaderFieldName(strings.TrimSpace(name))) {
				return fmt.Errorf("%sHEADERS must be a list of name=value,name=value with special characters escaped", prefix)
			}
		}
	}
	return nil
}

// newExporter returns the exporter that the variables name: the console, otherwise OTLP over HTTP, which reads the
// variables OTEL_EXPORTER_OTLP_… itself.
func newExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if os.Getenv("OTEL_TRACES_EXPORTER") == "console" {
		return stdouttrace.New()
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("the trace exporter cannot be created; correct the OTEL_… variables: %w", err)
	}
	return exporter, nil
}

// New returns a Telemetry with a provider of spans. The propagator reads the context that a caller sends.
func New(provider *sdktrace.TracerProvider, propagator propagation.TextMapPropagator) *Telemetry {
	return &Telemetry{provider: provider, tracer: provider.Tracer(scope), propagator: propagator}
}

// FlushWithin is the timeout for exporting the last spans when the service stops.
const FlushWithin = 5 * time.Second

// Shutdown exports the remaining spans until ctx ends, and starts no more. It logs that spans are lost if the collector
// did not accept them in time, which is no failure of the service. It does nothing if t is nil.
func (t *Telemetry) Shutdown(ctx context.Context, log *slog.Logger) {
	if t == nil {
		return
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		log.WarnContext(ctx, "the last traces were not exported", "error", err)
	}
}

// logErrorEvery is the minimum interval between logged export errors.
const logErrorEvery = time.Minute

// errorLogger logs the errors of the SDK.
type errorLogger struct {
	log  *slog.Logger
	now  func() time.Time
	mu   sync.Mutex
	last time.Time
}

// Handle logs an error, at most once per logErrorEvery.
func (c *errorLogger) Handle(err error) {
	c.mu.Lock()
	now := c.now()
	isDue := c.last.IsZero() || now.Sub(c.last) >= logErrorEvery
	if isDue {
		c.last = now
	}
	c.mu.Unlock()
	if isDue {
		c.log.Warn("traces are not exported; the export will be retried", "error", err)
	}
}
