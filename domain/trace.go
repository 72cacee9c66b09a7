package domain

import (
	"context"
	"log/slog"
)

// Trace begins a span for an operation: a child of the span in ctx, or the root of a new trace if ctx has none. The
// operation runs with the returned context; end ends the span, with the operation's error and further attributes. Names
// and attributes are few and small; they contain no secrets, and no names, addresses or ids of people. Of an error the
// span has the kind, and not the text. A nil Trace does nothing.
//
// Packages depend on this type only; cmd/internal/telemetry implements it.
type Trace func(ctx context.Context, name string, attrs ...slog.Attr) (
	within context.Context, end func(err error, attrs ...slog.Attr),
)

// Begin begins a span by t; end must be called after the operation. If t is nil, within is ctx, and end does nothing.
func (t Trace) Begin(ctx context.Context, name string, attrs ...slog.Attr) (
	within context.Context, end func(err error, attrs ...slog.Attr),
) {
	if t == nil {
		return ctx, func(error, ...slog.Attr) {}
	}
	return t(ctx, name, attrs...)
}
