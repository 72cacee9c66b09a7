package worldtest

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// Statements counts SQL statements (db.WithTracer), without pings and the begin, commit and rollback of transactions.
type Statements struct{ n atomic.Int64 }

// TraceQueryStart counts a statement.
func (s *Statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	switch q.SQL {
	case "begin", "commit", "rollback", ";", "-- ping":
	default:
		s.n.Add(1)
	}
	return ctx
}

// TraceQueryEnd does nothing.
func (s *Statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// During returns how many statements ran during fn.
func (s *Statements) During(fn func()) int {
	before := s.n.Load()
	fn()
	return int(s.n.Load() - before)
}
