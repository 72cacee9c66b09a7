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

// Requests returns what makes a span of every request: named by its method and its
// route until the edge names it by version and operation. The context of a trace
// that the request carries becomes the span's parent where the peer is one of the
// trusted networks, and a link of the span elsewhere: a caller of the API does not
// decide what is sampled, or which trace its requests show in. skip are paths
// without spans.
func (t *Telemetry) Requests(trusted []netip.Prefix, skip ...string) gin.HandlerFunc {
	passed := map[string]bool{}
	for _, path := range skip {
		passed[path] = true
	}
	return func(c *gin.Context) {
		if passed[c.Request.URL.Path] {
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
		sent := t.propagator.Extract(ctx, propagation.HeaderCarrier(c.Request.Header))
		if from := trace.SpanContextFromContext(sent); from.IsValid() {
			if isTrusted(c.RemoteIP(), trusted) {
				ctx = trace.ContextWithRemoteSpanContext(ctx, from)
			} else {
				options = append(options, trace.WithLinks(trace.Link{SpanContext: from}))
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

// Operations names the spans of requests, as ginop.Config.Tracing; nil where t is.
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

// Answered records on a span whose request it was, and the kind of its failure.
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
