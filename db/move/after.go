package move

import (
	"context"
	"slices"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The old cell's rows of a detached partner.

// Suspend ends the work of partners that were detached at least minAge ago, and returns their number. By then all
// processes of the cell know of the detachment (cells.MovesKnown). Until Suspend, the clients of a detached partner are in
// resting_clients: their work waits. It does nothing while the clock is not trusted (db.DB.ClockTrusted).
func Suspend(ctx context.Context, d *db.DB, minAge time.Duration) (int, error) {
	if trusted, err := d.ClockTrusted(ctx, d.Now()); err != nil || !trusted {
		return 0, err
	}
	detached, err := pg.All[domain.PartnerID](ctx, d, "look for detached partners", pg.SQL(`
		SELECT m.partner_id FROM moves AS m WHERE m.step = ? AND m.moved_at <= clock_timestamp() - ?::interval
			AND (EXISTS (SELECT FROM clients AS c WHERE c.partner_id = m.partner_id AND c.archived_at IS NULL)
				OR EXISTS (SELECT FROM webhooks AS w WHERE w.partner_id = m.partner_id))
		ORDER BY m.partner_id`, Detached, minAge))
	for i, partner := range detached {
		if err := suspend(ctx, d, partner); err != nil {
			return i, err
		}
	}
	return len(detached), err
}

// suspend deletes the outstanding work and the webhooks of a detached partner, and archives its clients. These then
// need no row in resting_clients: resume deletes it. suspend does nothing if the partner is no longer detached.
func suspend(ctx context.Context, d *db.DB, partner domain.PartnerID) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		detached, err := pg.All[bool](ctx, d, "look at the move", pg.SQL("SELECT true FROM moves WHERE partner_id = ? AND step = ? FOR UPDATE", partner, Detached))
		if err != nil || len(detached) == 0 {
			return err
		}
		for _, statement := range []string{
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
			if err := pg.Run(ctx, d, "delete outstanding work", pg.SQL(statement, partner)); err != nil {
				return err
			}
		}
		return resume(ctx, d, partner)
	})
}

// dropBatch bounds the rows that are deleted in one transaction.
const dropBatch = 10_000

// CleanUp deletes the rows of detached partners whose keep_until has passed, and returns the number of partners.
// Numbers of version 1 stay, as the numbers of deleted objects do. It may be interrupted and repeated. It does nothing
// while the clock is not trusted (db.DB.ClockTrusted).
func CleanUp(ctx context.Context, d *db.DB) (partners int, err error) {
	now := d.Now()
	if trusted, err := d.ClockTrusted(ctx, now); err != nil || !trusted {
		return 0, err
	}
	due, err := pg.All[domain.PartnerID](ctx, d, "look for detached partners", pg.SQL(
		"SELECT partner_id FROM moves WHERE step = ? AND keep_until < ? ORDER BY partner_id", Detached, now))
	if err != nil {
		return 0, err
	}
	for _, partner := range due {
		// If a move back holds the lock, free is false, and the partner is skipped.
		free, err := d.TryAdvisoryLock(ctx, lockName(partner), func(ctx context.Context) error { return cleanUp(ctx, d, partner) })
		if err != nil {
			return partners, err
		}
		partners += pg.Number(free)
	}
	return partners, nil
}

// cleanUp deletes the rows of a partner, referring rows first, except those of tables marked keep, and sets the step
// Cleaned. It does nothing if the partner has moved back.
func cleanUp(ctx context.Context, d *db.DB, partner domain.PartnerID) error {
	detached, err := pg.One[bool](ctx, d, "look at the move", pg.SQL("SELECT step = ?1 FROM moves WHERE partner_id = ?0", partner, Detached))
	if err != nil || !detached {
		return err
	}
	if err := resume(ctx, d, partner); err != nil { // now: it finds the clients by rows that are deleted below
		return err
	}
	o, err := readOwnedIDs(ctx, d, partner)
	if err != nil {
		return err
	}
	existing, err := shapes(ctx, d, tables)
	if err != nil {
		return err
	}
	for _, t := range slices.Backward(existing) {
		if t.keep {
			continue
		}
		if t.name == "webhook_deliveries" {
			t.rows = ofPartner // not by the webhooks: suspend deleted them
		}
		drop := pg.Raw("DELETE FROM "+t.name+" WHERE ctid = ANY (ARRAY(SELECT t.ctid FROM "+t.name+" AS t WHERE "+
			o.condition(t.table)+" LIMIT $1))", []any{dropBatch})
		for dropped := dropBatch; dropped == dropBatch; {
			if dropped, err = pg.Exec(ctx, d, "drop rows of "+t.name, drop); err != nil {
				return err
			}
		}
	}
	return pg.Run(ctx, d, "note that the partner's rows are gone", pg.SQL("UPDATE moves SET step = ?1 WHERE partner_id = ?0", partner, Cleaned))
}
