package move

import (
	"context"
	"slices"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// What becomes of the rows of a detached partner.

// Suspend ends the work of partners whose detachment is at least the duration after old, and
// returns how many. All processes of the cell then know of the detachment (db.MovesKnown).
// Until then their clients are in resting_clients.
func Suspend(ctx context.Context, d *db.DB, after time.Duration) (partners int, err error) {
	detached, err := pg.All[domain.PartnerID](ctx, d, "look for detached partners", pg.SQL(`
		SELECT m.partner_id FROM moves AS m WHERE m.step = ? AND m.moved_at <= clock_timestamp() - ?::interval
			AND (EXISTS (SELECT FROM clients AS c WHERE c.partner_id = m.partner_id AND c.archived_at IS NULL)
				OR EXISTS (SELECT FROM webhooks AS w WHERE w.partner_id = m.partner_id))
		ORDER BY m.partner_id`, Detached, after))
	for _, partner := range detached {
		if err := suspend(ctx, d, partner); err != nil {
			return partners, err
		}
		partners++
	}
	return partners, err
}

// suspend deletes the outstanding work of a detached partner, and archives its clients. A
// process that does not know of the move would show that.
func suspend(ctx context.Context, d *db.DB, partner domain.PartnerID) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		gone, err := pg.All[bool](ctx, d, "look at the move", pg.SQL("SELECT true FROM moves WHERE partner_id = ? AND step = ? FOR UPDATE", partner, Detached))
		if err != nil || len(gone) == 0 {
			return err
		}
		for _, text := range []string{
			"DELETE FROM outbox WHERE client_id = ?0 OR client_id IN (SELECT id FROM clients WHERE partner_id = ?0)",
			"DELETE FROM partner_mails WHERE sent_at IS NULL AND failed_at IS NULL AND suppressed_at IS NULL AND partner_id = ?0",
			`DELETE FROM mail_requests WHERE sent_at IS NULL AND failed_at IS NULL AND suppressed_at IS NULL
				AND client_id IN (SELECT id FROM clients WHERE partner_id = ?0)`,
			`DELETE FROM phishing_results WHERE sent_at IS NULL AND failed_at IS NULL
				AND client_id IN (SELECT id FROM clients WHERE partner_id = ?0)`,
			"DELETE FROM reports WHERE status = 'pending' AND client_id IN (SELECT id FROM clients WHERE partner_id = ?0)",
			"DELETE FROM events WHERE client_id IN (SELECT id FROM clients WHERE partner_id = ?0)",
			"DELETE FROM waiting_assignments WHERE client_id IN (SELECT id FROM clients WHERE partner_id = ?0)",
			"DELETE FROM directory_connections WHERE client_id IN (SELECT id FROM clients WHERE partner_id = ?0)",
			"DELETE FROM sync_runs WHERE status IN ('queued', 'running') AND client_id IN (SELECT id FROM clients WHERE partner_id = ?0)",
			"DELETE FROM webhook_deliveries WHERE status = 'waiting' AND webhook_id IN (SELECT id FROM webhooks WHERE partner_id = ?0)",
			"DELETE FROM webhooks WHERE partner_id = ?0",
			"UPDATE clients SET archived_at = clock_timestamp() WHERE partner_id = ?0 AND archived_at IS NULL",
		} {
			if _, err := pg.Exec(ctx, d, "delete outstanding work", pg.SQL(text, partner)); err != nil {
				return err
			}
		}
		return resume(ctx, d, partner)
	})
}

// dropBatch bounds the rows that are deleted in one transaction.
const dropBatch = 10_000

// CleanUp deletes the rows of detached partners whose keep_until has passed, and returns how
// many partners. Numbers of version 1 stay, as those of deleted objects do. It may be cut
// short and repeated.
func CleanUp(ctx context.Context, d *db.DB) (partners int, err error) {
	due, err := pg.All[domain.PartnerID](ctx, d, "look for detached partners", pg.SQL(
		"SELECT partner_id FROM moves WHERE step = ? AND keep_until < ? ORDER BY partner_id", Detached, d.Now()))
	if err != nil {
		return 0, err
	}
	for _, partner := range due {
		// A move back has the lock, or waits for it.
		free, err := d.TryAdvisoryLock(ctx, lockName(partner), func(ctx context.Context) error { return cleanUp(ctx, d, partner) })
		if err != nil {
			return partners, err
		}
		partners += pg.Number(free)
	}
	return partners, nil
}

// cleanUp deletes the rows of a partner that has not moved back, referring rows first.
func cleanUp(ctx context.Context, d *db.DB, partner domain.PartnerID) error {
	gone, err := pg.One[bool](ctx, d, "look at the move", pg.SQL("SELECT step = ?1 FROM moves WHERE partner_id = ?0", partner, Detached))
	if err != nil || !gone {
		return err
	}
	if err := resume(ctx, d, partner); err != nil {
		return err
	}
	o, err := ownedBy(ctx, d, partner)
	if err != nil {
		return err
	}
	there, err := shapes(ctx, d, tables)
	if err != nil {
		return err
	}
	for _, t := range slices.Backward(there) {
		if t.kept {
			continue
		}
		if t.name == "webhook_deliveries" {
			t.rows = ofPartner // their webhooks are gone
		}
		drop := pg.Raw("DELETE FROM "+t.name+" WHERE ctid = ANY (ARRAY(SELECT t.ctid FROM "+t.name+" AS t WHERE "+
			o.condition(t.table)+" LIMIT $1))", []any{dropBatch})
		for dropped := dropBatch; dropped == dropBatch; {
			if dropped, err = pg.Exec(ctx, d, "drop rows of "+t.name, drop); err != nil {
				return err
			}
		}
	}
	_, err = pg.Exec(ctx, d, "note that the partner's rows are gone", pg.SQL("UPDATE moves SET step = ?1 WHERE partner_id = ?0", partner, Cleaned))
	return err
}
