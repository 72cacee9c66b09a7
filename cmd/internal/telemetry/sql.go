package telemetry

import (
	"context"
	"errors"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"partnerapi/db/pg"
)

// Statements returns a tracer that starts a span for each SQL statement within a request or background work; nil if t is
// nil. The span has the statement's name, such as "read a client", and its text without its values. Statements outside,
// such as polls of an empty outbox, have no span.
func (t *Telemetry) Statements() pgx.QueryTracer {
	if t == nil {
		return nil
	}
	return statements{otelpgx.NewTracer(
		otelpgx.WithTracerProvider(t.provider), otelpgx.WithMeterProvider(noop.NewMeterProvider()),
		otelpgx.WithDisableConnectionDetailsInAttributes(),
	)}
}

// statements is a tracer without otelpgx's spans for the pool and for connections.
type statements struct{ tracer *otelpgx.Tracer }

// TraceQueryStart starts the span of a statement within a recorded span, and gives it the statement's name, if any.
func (s statements) TraceQueryStart(ctx context.Context, c *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	ctx = s.tracer.TraceQueryStart(ctx, c, data)
	if name := pg.StatementName(ctx); name != "" {
		trace.SpanFromContext(ctx).SetName(name)
	}
	return ctx
}

// TraceQueryEnd ends the span of a statement. It records the SQLSTATE of an error, as its text may contain values.
func (s statements) TraceQueryEnd(ctx context.Context, c *pgx.Conn, data pgx.TraceQueryEndData) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return
	}
	data.Err = withoutValues(data.Err)
	s.tracer.TraceQueryEnd(ctx, c, data)
}

// withoutValues returns an error without a statement's values: of a PostgreSQL error its severity, SQLSTATE and
// constraint, of another its kind. The end of a context is returned unchanged.
func withoutValues(err error) error {
	var pgErr *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &pgErr):
		return &pgconn.PgError{Severity: pgErr.Severity, Code: pgErr.Code, ConstraintName: pgErr.ConstraintName}
	}
	return errors.New(kindOf(err))
}
