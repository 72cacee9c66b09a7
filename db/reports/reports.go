// Package reports reads the data of reports, of a client in a period, and the queue of pending reports, which are
// claimed under a lease, made, and marked as ready or failed.
package reports

import (
	"context"
	"errors"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// FinishReport marks a pending report as ready or failed, and returns the new status, which is failed if the client was
// archived. If as is failed, it counts as a failed attempt. If the report is ready, FinishReport records the event and
// requests the emails of a monthly report. It returns db.ErrLeaseLost if the lease is no longer held, or if the report
// is marked already or was deleted. A lease without a token is for a report that is not claimed.
func FinishReport(
	ctx context.Context, d *db.DB, l ReportLease, as domain.ReportStatus,
) (status domain.ReportStatus, err error) {
	err = d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		c.WillLock(db.ReportLocks)
		status, err = pg.One[domain.ReportStatus](ctx, c, "mark a report", pg.SQL(`
			UPDATE reports AS r SET lease = NULL, tries = r.tries + (?as = ?reportFailed)::integer,
				updated_at = greatest(r.updated_at, ?now), status = CASE
				WHEN EXISTS (SELECT 1 FROM clients AS c WHERE c.id = r.client_id AND c.archived_at IS NULL) THEN ?as ELSE ?reportFailed END
			WHERE r.client_id = ?client AND r.id = ?report AND r.status = ?reportPending AND r.lease IS NOT DISTINCT FROM ?token::uuid RETURNING r.status`,
			pg.Named{
				"client": l.Client, "report": l.Report, "as": as, "now": c.At,
				"reportFailed": domain.ReportFailed, "reportPending": domain.ReportPending, "token": domain.OrNil(l.Token),
			}))
		if errors.Is(err, pg.ErrNoRow) {
			return db.ErrLeaseLost
		}
		if err == nil && status == domain.ReportReady {
			c.ObjectEvent(domain.ReportMade, domain.UserKey{Client: l.Client}, l.Report.UUID())
			return mailMonthly(ctx, c, l.Client, l.Report)
		}
		return err
	})
	return status, err
}

// ReportKey identifies a report and its client.
type ReportKey struct {
	ClientID domain.ClientID
	ID       domain.ReportID
}

// PendingReports returns up to n pending reports of all clients that were requested at by or before, the oldest first.
func PendingReports(ctx context.Context, d *db.DB, by time.Time, n int) ([]ReportKey, error) {
	return pg.All[ReportKey](ctx, d, "look for pending reports", pg.SQL(
		"SELECT client_id, id FROM reports WHERE status = 'pending' AND created_at <= ? ORDER BY created_at LIMIT ?", by, n))
}

// DeleteReports deletes the rows of reports. Their files must have been deleted before.
func DeleteReports(ctx context.Context, d *db.DB, reports []domain.Report) error {
	return pg.Run(ctx, d, "delete reports", pg.SQL(
		"DELETE FROM reports WHERE (client_id, id) IN (SELECT * FROM unnest(?::uuid[], ?::uuid[]))",
		pg.MapRows(reports, func(r *domain.Report) [16]byte { return r.Client }),
		pg.MapRows(reports, func(r *domain.Report) [16]byte { return r.ID })))
}
