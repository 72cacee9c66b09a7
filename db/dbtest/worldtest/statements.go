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

// Reset begins to count anew.
func (s *Statements) Reset() { s.n.Store(0) }

// Count is how many statements were sent since.
func (s *Statements) Count() int { return int(s.n.Load()) }
