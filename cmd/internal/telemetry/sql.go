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

// Statements makes a span of each SQL statement that is part of a request or of a
// piece of background work, with its text and without its values; nil where t is.
// It is named as the statement is: "read a client". Statements of none, such as
// looks at an empty outbox, have no span.
func (t *Telemetry) Statements() pgx.QueryTracer {
	if t == nil {
		return nil
	}
	return statements{otelpgx.NewTracer(
		otelpgx.WithTracerProvider(t.provider), otelpgx.WithMeterProvider(noop.NewMeterProvider()),
		otelpgx.WithDisableConnectionDetailsInAttributes(),
	)}
}

// statements leaves out what otelpgx shows of the pool and of connections.
type statements struct{ tracer *otelpgx.Tracer }

// TraceQueryStart begins the span of a statement.
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

// TraceQueryEnd ends the span of a statement. Of an error it records the SQLSTATE: its
// text may hold values.
func (s statements) TraceQueryEnd(ctx context.Context, c *pgx.Conn, data pgx.TraceQueryEndData) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return
	}
	data.Err = withoutValues(data.Err)
	s.tracer.TraceQueryEnd(ctx, c, data)
}

// withoutValues is an error in which no value of a statement stands.
func withoutValues(err error) error {
	var theirs *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &theirs):
		return &pgconn.PgError{Severity: theirs.Severity, Code: theirs.Code, ConstraintName: theirs.ConstraintName}
	}
	return errors.New(kindOf(err))
}
