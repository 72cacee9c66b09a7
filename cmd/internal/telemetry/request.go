package telemetry

import (
	"context"
	"net/netip"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"partnerapi/domain"
	"partnerapi/v2/op/ginop"
)

// Attributes of the service's own.
const (
	operationKey = attribute.Key("partnerapi.operation")
	versionKey   = attribute.Key("partnerapi.version")
	prefixKey    = attribute.Key("partnerapi.key")
	requestIDKey = attribute.Key("partnerapi.request_id")
)

// Requests returns a middleware that makes a span of every request, named by method and route until the edge names it
// by version and operation. A trace context in the request becomes the span's parent if the peer is in a trusted
// network, and a link elsewhere: an API caller decides neither sampling nor the trace. skip are paths without spans.
func (t *Telemetry) Requests(trusted []netip.Prefix, skip ...string) gin.HandlerFunc {
	skipped := map[string]bool{}
	for _, path := range skip {
		skipped[path] = true
	}
	return func(c *gin.Context) {
		if skipped[c.Request.URL.Path] {
			return
		}
		route := c.FullPath()
		name := c.Request.Method + " " + route
		if route == "" {
			name = c.Request.Method
		}
		options := []trace.SpanStartOption{
			trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(semconv.HTTPRequestMethodKey.String(c.Request.Method), semconv.HTTPRoute(route)),
		}
		ctx := c.Request.Context()
		extracted := t.propagator.Extract(ctx, propagation.HeaderCarrier(c.Request.Header))
		if remote := trace.SpanContextFromContext(extracted); remote.IsValid() {
			if isTrusted(c.RemoteIP(), trusted) {
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

// isTrusted reports whether the peer is in one of the networks.
func isTrusted(peer string, networks []netip.Prefix) bool {
	address, err := netip.ParseAddr(peer)
	if err != nil {
		return false
	}
	address = address.Unmap().WithZone("")
	for _, network := range networks {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// Operations names the spans of requests, as ginop.Config.Tracing; nil if t is.
func (t *Telemetry) Operations() ginop.Tracing {
	if t == nil {
		return nil
	}
	return operations{}
}

type operations struct{}

// Begun names the span of a request to an operation.
func (operations) Begun(ctx context.Context, version, operation, requestID string) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetName(version + " " + operation)
		span.SetAttributes(versionKey.String(version), operationKey.String(operation), requestIDKey.String(requestID))
	}
}

// Answered records the key and the kind of failure on a request's span.
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
