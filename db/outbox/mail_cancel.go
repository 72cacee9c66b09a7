package outbox

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// CancelSends cancels the emails of a client's results with the given ids, as far as they wait in the outbox and cannot
// have been sent: they have no lease, and no try of them ended without a response. It deletes these from the outbox and
// marks their results as failed. It returns all results with the ids, in their new state, ordered by id.
func CancelSends(ctx context.Context, c *db.Change, t *db.Tenant, ids []domain.ResultID) ([]domain.Result, error) {
	cancelled, err := cancelSends(ctx, c, t, ids)
	if err != nil {
		return nil, err
	}
	// A second statement, to see rows that were committed while the first one waited for locks.
	rows, err := pg.All[db.ResultRow](ctx, c, "read results", pg.Rows[db.ResultRow]().
		Apply(pg.Where("r.client_id = ? AND r.id = ANY(?::uuid[])", t.ID, pg.IDs(ids))).OrderExpr("r.id"))
	if err != nil {
		return nil, err
	}

	results := pg.MapRows(rows, func(r *db.ResultRow) domain.Result { return r.Result })
	var changes []db.ResultChange
	for _, r := range results {
		if cancelled[r.ID] {
			changes = append(changes, db.CancelledResultChange(t.ID, r))
			c.ObjectEvent(domain.ResultUpdated, domain.UserKey{Client: t.ID, User: r.User}, r.ID.UUID())
		}
	}
	_, err = c.CountSends(ctx, changes)
	return results, err
}

// cancelSends deletes the emails from the outbox, marks their results as failed, and returns the results that it
// marked. It locks rows in the order of their ids. If a claim has locked an email, it waits, and then leaves the leased
// email alone.
func cancelSends(ctx context.Context, c *db.Change, t *db.Tenant, ids []domain.ResultID) (map[domain.ResultID]bool, error) {
	c.WillLock(db.OutboxLocks)
	c.WillLock(db.ResultLocks)
	marked, err := pg.All[domain.ResultID](ctx, c, "cancel simulated emails", pg.SQL(`
		WITH unsent AS MATERIALIZED (
			SELECT client_id, id FROM outbox
			WHERE client_id = ?client AND id = ANY(?ids::uuid[]) AND kind = ?simulatedMail AND lease IS NULL AND NOT maybe_sent
			ORDER BY id FOR UPDATE
		), removed AS (
			DELETE FROM outbox AS o USING unsent AS u WHERE o.client_id = u.client_id AND o.id = u.id
			RETURNING o.client_id, o.id
		), locked AS MATERIALIZED (
			SELECT r.client_id, r.id FROM phishing_results AS r JOIN removed USING (client_id, id)
			ORDER BY r.id FOR NO KEY UPDATE OF r
		)
		UPDATE phishing_results AS r SET status = ?failed, failed_at = ?now, failure = ?cancelled,
			updated_at = greatest(r.updated_at, ?now)
		FROM locked AS l WHERE r.client_id = l.client_id AND r.id = l.id
		RETURNING r.id`, pg.Named{
		"client": t.ID, "ids": pg.IDs(ids), "simulatedMail": db.SimulatedMail, "failed": domain.ResultFailed,
		"cancelled": domain.FailureCancelled, "now": c.At,
	}))
	return pg.Index(marked, func(id *domain.ResultID) (domain.ResultID, bool) { return *id, true }), err
}
