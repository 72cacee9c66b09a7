package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"partnerapi/domain"
)

// Work returns a Trace that starts spans of background work; nil if t is nil.
func (t *Telemetry) Work() domain.Trace {
	if t == nil {
		return nil
	}
	return func(ctx context.Context, name string, attrs ...slog.Attr) (context.Context, func(error, ...slog.Attr)) {
		ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(attributes(attrs)...))
		return ctx, func(err error, more ...slog.Attr) {
			span.SetAttributes(attributes(more)...)
			endSpan(span, err)
		}
	}
}

// RecordSpan makes the span of background work that began at a time and has just ended. Loops use it, so that
// polls that find no work have no span. It does nothing if t is nil.
func (t *Telemetry) RecordSpan(ctx context.Context, name string, began time.Time, err error, attrs ...slog.Attr) {
	if t == nil {
		return
	}
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(began), trace.WithAttributes(attributes(attrs)...))
	endSpan(span, err)
}

// OperationTrace returns a Trace that starts a span for each call of an operation from elsewhere than its own route,
// such as from a route of v1: the request to its own route has a span already. It returns nil if t is nil.
func (t *Telemetry) OperationTrace() domain.Trace {
	work := t.Work()
	if work == nil {
		return nil
	}
	return func(ctx context.Context, name string, attrs ...slog.Attr) (context.Context, func(error, ...slog.Attr)) {
		current, ok := trace.SpanFromContext(ctx).(sdktrace.ReadOnlySpan)
		if ok && current.Name() == "v2 "+name { // the span of the operation's own route
			return domain.Trace(nil).Begin(ctx, name) // starts no span
		}
		return work(ctx, name, attrs...)
	}
}

// endSpan ends a span. With an error, the span fails and its attribute error.type is the kind of the error.
func endSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(semconv.ErrorTypeKey.String(kindOf(err)))
	}
	span.End()
}

// kindOf returns the kind of an error: a domain error's code, canceled or deadline_exceeded, otherwise its Go type.
func kindOf(err error) string {
	var known *domain.Error
	switch {
	case errors.As(err, &known):
		return string(known.Code)
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline_exceeded"
	}
	return fmt.Sprintf("%T", err)
}

// attributes converts log attributes.
func attributes(attrs []slog.Attr) []attribute.KeyValue {
	list := make([]attribute.KeyValue, len(attrs))
	for i, a := range attrs {
		key := attribute.Key("partnerapi." + a.Key)
		switch v := a.Value; v.Kind() {
		case slog.KindInt64:
			list[i] = key.Int64(v.Int64())
		case slog.KindBool:
			list[i] = key.Bool(v.Bool())
		default:
			list[i] = key.String(v.String())
		}
	}
	return list
}
