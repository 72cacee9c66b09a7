package telemetry

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"partnerapi/domain"
	"partnerapi/v2/op/ginop"
)

// The attributes that the service adds to those of OpenTelemetry.
const (
	operationKey = attribute.Key("partnerapi.operation")
	versionKey   = attribute.Key("partnerapi.version")
	prefixKey    = attribute.Key("partnerapi.key")
	requestIDKey = attribute.Key("partnerapi.request_id")
)

// Requests returns a middleware that starts a span for every request, except for those to the paths skip. The span is
// named by method and route until Begun names it by version and operation. A trace context in the request becomes the
// span's parent if the peer is in a trusted network, otherwise a link: an API caller must decide neither sampling nor
// the trace.
func (t *Telemetry) Requests(trusted domain.Networks, skip ...string) gin.HandlerFunc {
	return func(c *gin.Context) {
		if slices.Contains(skip, c.Request.URL.Path) {
			return
		}
		route := c.FullPath()
		name := strings.TrimSpace(c.Request.Method + " " + route) // without a route, the method alone
		options := []trace.SpanStartOption{
			trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(semconv.HTTPRequestMethodKey.String(c.Request.Method), semconv.HTTPRoute(route)),
		}
		ctx := c.Request.Context()
		extracted := t.propagator.Extract(ctx, propagation.HeaderCarrier(c.Request.Header))
		if remote := trace.SpanContextFromContext(extracted); remote.IsValid() {
			if peer, _ := netip.ParseAddr(c.RemoteIP()); trusted.Contain(peer) { // false after an error
				ctx = trace.ContextWithRemoteSpanContext(ctx, remote)
			} else {
				options = append(options, trace.WithLinks(trace.Link{SpanContext: remote}))
			}
		}
		ctx, span := t.tracer.Start(ctx, name, options...)
		defer span.End()
		c.Request = c.Request.WithContext(ctx)
		c.Next()

		status := c.Writer.Status()
		span.SetAttributes(semconv.HTTPResponseStatusCode(status))
		if status >= 500 {
			span.SetStatus(codes.Error, "")
		}
	}
}

// Operations returns a ginop.Tracing, which names the spans of requests; nil if t is nil.
func (t *Telemetry) Operations() ginop.Tracing {
	if t == nil {
		return nil
	}
	return operations{}
}

type operations struct{}

// Begun names the span of a request by version and operation, and records both and the request's id.
func (operations) Begun(ctx context.Context, version, operation, requestID string) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetName(version + " " + operation)
		span.SetAttributes(versionKey.String(version), operationKey.String(operation), requestIDKey.String(requestID))
	}
}

// Answered records the key's prefix and the kind of failure on a request's span.
func (operations) Answered(ctx context.Context, key string, err error) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if key != "" {
		span.SetAttributes(prefixKey.String(key))
	}
	if err != nil {
		span.SetAttributes(semconv.ErrorTypeKey.String(string(domain.AsError(err).Code)))
	}
}
