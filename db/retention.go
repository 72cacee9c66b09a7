package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// dropBatch is how many old rows are deleted in one transaction.
const dropBatch = 10_000

// bounded are the tables whose rows are kept for a bounded time.
var bounded = []struct {
	// table has a column named by at: since when a row is kept.
	table, at string
	life      time.Duration
}{
	{"idempotency_records", "created_at", domain.OutcomeLife},
	{"audit_entries", "at", domain.AuditLife},
	{"published_events", "created_at", domain.EventLife}, // events itself is an outbox, and loses nothing
	{"email_classifications", "classified_at", domain.ClassificationLife},
	{"sync_runs", "queued_at", domain.SyncRunLife},
	{"webhook_deliveries", "created_at", domain.DeliveryLife},
}

// dropOld deletes the rows that are older than they are kept, a batch in each
// transaction. It may be repeated, and must not be called in a transaction.
func (d *DB) dropOld(ctx context.Context) error {
	for _, b := range bounded {
		drop := pg.SQL("DELETE FROM "+b.table+" WHERE ctid = ANY (ARRAY(SELECT ctid FROM "+b.table+
			" WHERE "+b.at+" < ? LIMIT ?))", d.Now().Add(-b.life), dropBatch)
		for dropped := dropBatch; dropped == dropBatch; {
			var err error
			if dropped, err = pg.Exec(ctx, d, "drop old rows of "+b.table, drop); err != nil {
				return err
			}
		}
	}
	return nil
}
