package db

import (
	"context"

	"partnerapi/db/pg"
)

// claimIdle is how long a claim may rest within its transaction: its rows are nobody
// else's meanwhile.
const claimIdle = "5s"

// Claim runs fn in a transaction that claims rows of a queue: mails, deliveries, reports
// or sync runs. The transaction has its number before fn looks which partners are
// suspended. By that a move knows it: either the move waits for the claim to end, or fn
// sees that the partner is suspended (db/move). fn leaves out the rows of Resting clients.
// A claim whose process stands still is rolled back after claimIdle.
func (d *DB) Claim(ctx context.Context, fn func(ctx context.Context) error) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		if _, err := pg.Exec(ctx, d, "number a claim", pg.Prepared(pg.SQL(
			"SELECT pg_current_xact_id(), set_config('idle_in_transaction_session_timeout', ?, true)", claimIdle))); err != nil {
			return err
		}
		return fn(ctx)
	})
}
