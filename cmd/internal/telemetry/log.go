package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// Log adds trace_id and span_id to the lines that are logged within a span; the same
// log where t is nil.
func (t *Telemetry) Log(log *slog.Logger) *slog.Logger {
	if t == nil {
		return log
	}
	return slog.New(ofSpans{log.Handler()})
}

type ofSpans struct{ slog.Handler }

// Handle handles a line.
func (h ofSpans) Handle(ctx context.Context, line slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		line = line.Clone()
		line.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, line)
}

// WithAttrs is the handler with attributes.
func (h ofSpans) WithAttrs(attrs []slog.Attr) slog.Handler {
	return ofSpans{h.Handler.WithAttrs(attrs)}
}

// WithGroup is the handler within a group.
func (h ofSpans) WithGroup(name string) slog.Handler { return ofSpans{h.Handler.WithGroup(name)} }
