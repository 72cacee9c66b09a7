package domain

import (
	"context"
	"log/slog"
)

// Trace begins a span of a piece of work: a child of the span of ctx, or the root of a
// new trace if ctx has none. The work runs in the returned context; end ends the span
// with the work's error and further attributes. Names and attributes are few and small;
// they hold no secrets, and no names, addresses or ids of people. Errors show as their
// kind, without their texts. A nil Trace is off.
//
// It is what packages know of tracing: see cmd/internal/telemetry.
type Trace func(ctx context.Context, name string, attrs ...slog.Attr) (
	within context.Context, end func(err error, attrs ...slog.Attr),
)

// Begin calls the Trace; if it is nil, Begin does nothing.
func (t Trace) Begin(ctx context.Context, name string, attrs ...slog.Attr) (
	within context.Context, end func(err error, attrs ...slog.Attr),
) {
	if t == nil {
		return ctx, func(error, ...slog.Attr) {}
	}
	return t(ctx, name, attrs...)
}
