package domain

import (
	"context"
	"log/slog"
)

// Trace begins a piece of work that tracing shows: a span of that name within the
// one of ctx, or the first of a trace where ctx has none. The work runs in the
// context that is returned, and end ends the span, with the error of the work and
// with what is known of it by then. Names and attributes are few and small; they
// hold no secrets, and no names, addresses or ids of people. Errors show as their
// kind, without their texts. A nil Trace is off.
//
// It is what packages know of tracing: see cmd/internal/telemetry.
type Trace func(ctx context.Context, name string, attrs ...slog.Attr) (
	within context.Context, end func(err error, attrs ...slog.Attr),
)

// Begin is a call of the Trace; one that is nil does nothing.
func (t Trace) Begin(ctx context.Context, name string, attrs ...slog.Attr) (
	within context.Context, end func(err error, attrs ...slog.Attr),
) {
	if t == nil {
		return ctx, func(error, ...slog.Attr) {}
	}
	return t(ctx, name, attrs...)
}
