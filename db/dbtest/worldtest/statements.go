package worldtest

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// Statements counts what is sent to a database (db.WithTracer).
type Statements struct{ n atomic.Int64 }

// TraceQueryStart counts a statement.
func (s *Statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}

// TraceQueryEnd does nothing.
func (s *Statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// During counts the statements that do sends.
func (s *Statements) During(do func()) int {
	before := s.n.Load()
	do()
	return int(s.n.Load() - before)
}
