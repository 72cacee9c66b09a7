package db

import (
	"context"

	"partnerapi/db/pg"
)

// claimIdle bounds the idle time within the transaction of a claim, which locks its rows.
const claimIdle = "5s"

// Claim runs fn in a transaction that claims rows of a queue: mails, deliveries, reports
// or sync runs. fn leaves out the rows of SuspendedClients. The transaction has its number
// before fn reads which are suspended: either a move waits for the claim to end, or fn sees
// the suspension (db/move). The server rolls a claim back that is idle for claimIdle.
func (d *DB) Claim(ctx context.Context, fn func(ctx context.Context) error) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		if _, err := pg.Exec(ctx, d, "number a claim", pg.Prepared(pg.SQL(
			"SELECT pg_current_xact_id(), set_config('idle_in_transaction_session_timeout', ?, true)", claimIdle))); err != nil {
			return err
		}
		return fn(ctx)
	})
}
