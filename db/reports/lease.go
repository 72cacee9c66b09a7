package reports

import (
	"context"
	"time"

	"github.com/google/uuid"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// ReportLease is the right to make a pending report.
type ReportLease struct {
	Client domain.ClientID `bun:"client_id"`
	Report domain.ReportID `bun:"id"`
	// Tries is how many tries failed before. A process that dies fails its try.
	Tries int
	// Token is that of the claim.
	Token uuid.UUID `bun:"lease"`
}

// ClaimReports leases up to n pending reports that are due, for so long: those that
// callers asked for before the service's own.
func ClaimReports(ctx context.Context, d *db.DB, n int, life time.Duration) ([]ReportLease, error) {
	now := d.Now()
	return pg.All[ReportLease](ctx, d, "claim reports", pg.SQL(`
		WITH chosen AS MATERIALIZED (
			SELECT client_id, id FROM reports WHERE status = 'pending' AND (due_at IS NULL OR due_at <= ?0)
			ORDER BY mailed_for IS NOT NULL, coalesce(due_at, created_at) LIMIT ?1 FOR NO KEY UPDATE SKIP LOCKED
		)
		UPDATE reports AS r SET lease = ?2, due_at = ?3, tries = r.tries + (r.lease IS NOT NULL)::integer FROM chosen
		WHERE r.client_id = chosen.client_id AND r.id = chosen.id
		RETURNING r.client_id, r.id, r.tries, r.lease`, now, n, uuid.New(), now.Add(life)))
}

// ReportDue is when the next pending report is due, or the next lease ends; false where
// no report is pending.
func ReportDue(ctx context.Context, d *db.DB) (time.Time, bool, error) {
	due, err := pg.One[*time.Time](ctx, d, "look for the next report", pg.SQL(
		"SELECT min(coalesce(due_at, created_at)) FROM reports WHERE status = 'pending'"))
	return pg.Or(due, time.Time{}), due != nil, err
}

// RequeueReport gives a lease back: the report is due again at a time. failed says that
// a try failed. ErrLeaseLost where the lease had ended.
func RequeueReport(ctx context.Context, d *db.DB, l ReportLease, at time.Time, failed bool) error {
	n, err := pg.Exec(ctx, d, "put a report back", pg.SQL(`
		UPDATE reports SET lease = NULL, due_at = ?3, tries = tries + ?4::integer
		WHERE client_id = ?0 AND id = ?1 AND lease = ?2`, l.Client, l.Report, l.Token, at, pg.Number(failed)))
	return db.Held(n, err)
}

// ListenReports calls wake whenever reports were asked for, and once when it begins to
// listen, until ctx ends or the connection fails (pg.DB.Listen).
func ListenReports(ctx context.Context, d *db.DB, wake func()) error {
	return d.ListenFor(ctx, db.ReportChannel, wake)
}
