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

// deletedFor is how long after its deletion a subscription may still be given
// deliveries, by a transaction that saw it before.
const deletedFor = time.Hour

// DropDeletedWebhooks deletes the deliveries of deleted subscriptions, a batch in
// each transaction. It may be cut short and repeated, and must not be called in a
// transaction.
func (d *DB) DropDeletedWebhooks(ctx context.Context) error {
	ids, err := pg.All[domain.WebhookID](ctx, d, "look for deleted webhooks", pg.SQL("SELECT id FROM deleted_webhooks"))
	if err != nil {
		return err
	}
	for _, id := range ids {
		for dropped := dropBatch; dropped == dropBatch; {
			dropped, err = pg.Exec(ctx, d, "delete deliveries", pg.SQL(`
				DELETE FROM webhook_deliveries WHERE webhook_id = ?0 AND id = ANY (ARRAY(
					SELECT id FROM webhook_deliveries WHERE webhook_id = ?0 LIMIT ?1))`, id, dropBatch))
			if err != nil {
				return err
			}
		}
	}
	_, err = pg.Exec(ctx, d, "forget deleted webhooks", pg.SQL(`
		DELETE FROM deleted_webhooks AS g WHERE g.id = ANY(?::uuid[]) AND g.deleted_at < clock_timestamp() - ?::interval
			AND NOT EXISTS (SELECT 1 FROM webhook_deliveries AS d WHERE d.webhook_id = g.id)`, pg.IDs(ids), deletedFor))
	return err
}
