package telemetry

import (
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

// Transport returns a RoundTripper that starts a span for each request that it sends through base; base itself if t is
// nil. The span shows the method, the host and the status: the whole URL, which OpenTelemetry's otelhttp always shows,
// may contain ids of people, page tokens of directories and secrets of subscriptions. The trace is not propagated.
func (t *Telemetry) Transport(base http.RoundTripper) http.RoundTripper {
	if t == nil {
		return base
	}
	return &transport{base: base, tracer: t.tracer}
}

type transport struct {
	base   http.RoundTripper
	tracer trace.Tracer
}

// RoundTrip sends a request within a span, which ends with the headers of the response. A status of 400 or more fails
// the span, as an error does.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, span := t.tracer.Start(r.Context(), "HTTP "+r.Method, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(semconv.HTTPRequestMethodKey.String(r.Method), semconv.ServerAddress(r.URL.Hostname())))
	if port, err := strconv.Atoi(r.URL.Port()); err == nil {
		span.SetAttributes(semconv.ServerPort(port))
	}
	answer, err := t.base.RoundTrip(r.WithContext(ctx))
	if err == nil {
		span.SetAttributes(semconv.HTTPResponseStatusCode(answer.StatusCode))
		if answer.StatusCode >= 400 {
			span.SetStatus(codes.Error, "")
		}
	}
	endSpan(span, err)
	return answer, err
}
