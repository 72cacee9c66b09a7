package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
)

// dueWithin is more than the longest time for which waiting work is put off or leased, other than a schedule that a
// caller chose. Work that is due later was put off by a clock that was ahead.
const dueWithin = 3 * time.Hour

// putBack are statements that make work due at the time ?0 if it is due after ?1, and end its lease. They skip locked
// rows.
var putBack = []string{
	// A simulation stays if it is due when its caller chose. A mail that was leased may have been sent.
	`WITH late AS (
		SELECT o.client_id, o.id, greatest(CASE WHEN r.send_at > r.created_at THEN r.send_at END, ?0::timestamptz) AS due
		FROM outbox AS o LEFT JOIN phishing_results AS r ON r.client_id = o.client_id AND r.id = o.id AND o.kind = 'simulation'
		WHERE o.due_at > ?1 AND (r.id IS NULL OR o.due_at > r.send_at OR r.send_at <= r.created_at)
		FOR NO KEY UPDATE OF o SKIP LOCKED
	)
	UPDATE outbox AS o SET due_at = late.due, lease = NULL, maybe_sent = o.maybe_sent OR o.lease IS NOT NULL
	FROM late WHERE o.client_id = late.client_id AND o.id = late.id`,
	`UPDATE webhook_deliveries SET due_at = ?0, lease = NULL WHERE (webhook_id, id) IN (
		SELECT webhook_id, id FROM webhook_deliveries WHERE status = 'waiting' AND due_at > ?1 FOR NO KEY UPDATE SKIP LOCKED)`,
	`UPDATE reports SET due_at = ?0, lease = NULL WHERE (client_id, id) IN (
		SELECT client_id, id FROM reports WHERE status = 'pending' AND coalesce(due_at, created_at) > ?1 FOR NO KEY UPDATE SKIP LOCKED)`,
	`UPDATE sync_runs SET leased_until = NULL, lease = NULL WHERE (client_id, id) IN (
		SELECT client_id, id FROM sync_runs WHERE status IN ('queued', 'running') AND leased_until > ?1 FOR NO KEY UPDATE SKIP LOCKED)`,
	`UPDATE directory_connections SET next_run_at = ?0 WHERE client_id IN (
		SELECT client_id FROM directory_connections WHERE next_run_at > ?1::timestamptz + interval '6 hours' FOR NO KEY UPDATE SKIP LOCKED)`,
	"UPDATE events SET postponed_until = NULL WHERE postponed_until > ?1",
}

// putBackLate makes work due now that a clock which was ahead of now has put off or leased.
func (d *DB) putBackLate(ctx context.Context, now time.Time) error {
	for _, statement := range putBack {
		if err := pg.Run(ctx, d, "put late work back", pg.SQL(statement, now, now.Add(dueWithin))); err != nil {
			return err
		}
	}
	return nil
}
