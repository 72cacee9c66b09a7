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
	// Tries is the number of failed attempts. If a process dies, its attempt counts as failed.
	Tries int
	// Token identifies the claim.
	Token uuid.UUID `bun:"lease"`
	// CreatedAt is the time of the request. Monthly is true for the report of a monthly email.
	CreatedAt time.Time
	Monthly   bool
}

// LeasedRow implements db.Leased.
func (l ReportLease) LeasedRow() db.LeasedRow {
	return db.LeasedRow{Table: "reports", OwnerColumn: "client_id", Owner: l.Client, ID: l.Report, Token: l.Token}
}

// pendingReports are the conditions of pending reports: first those that callers requested, then the service's own.
var pendingReports = []string{
	"status = 'pending' AND mailed_for IS NULL", "status = 'pending' AND mailed_for IS NOT NULL",
}

// ClaimReports leases up to n pending reports that are due for the duration life. Reports that callers requested come
// before the service's own, and reports that have waited longest come first. An expired lease counts as a failed
// attempt. A client has few pending reports (domain.MaxReports), so clients need not take turns.
func ClaimReports(ctx context.Context, d *db.DB, n int, life time.Duration) (leases []ReportLease, err error) {
	err = d.Claim(ctx, func(ctx context.Context) error {
		leases = nil
		now, ok := d.ClaimTime(life)
		if !ok {
			return nil
		}
		for _, pending := range pendingReports {
			more, err := pg.All[ReportLease](ctx, d, "claim reports", pg.SQL(`
				WITH chosen AS MATERIALIZED (
					SELECT client_id, id FROM reports
					WHERE `+pending+` AND coalesce(due_at, created_at) <= ?now AND client_id NOT IN (`+db.SuspendedClients+`)
					ORDER BY coalesce(due_at, created_at) LIMIT ?free FOR NO KEY UPDATE SKIP LOCKED
				)
				UPDATE reports AS r SET lease = ?lease, due_at = ?until, tries = r.tries + (r.lease IS NOT NULL)::integer FROM chosen
				WHERE r.client_id = chosen.client_id AND r.id = chosen.id
				RETURNING r.client_id, r.id, r.tries, r.lease, r.created_at, r.mailed_for IS NOT NULL AS monthly`,
				pg.Named{"now": now, "free": n - len(leases), "lease": uuid.New(), "until": now.Add(life)}))
			if err != nil {
				return err
			}
			if leases = append(leases, more...); len(leases) == n {
				return nil
			}
		}
		return nil
	})
	return leases, err
}

// ReportDue returns the earliest time at which a pending report is due or its lease ends, and false if none is pending.
func ReportDue(ctx context.Context, d *db.DB) (time.Time, bool, error) {
	const first = "(SELECT min(coalesce(due_at, created_at)) FROM reports WHERE client_id NOT IN (" + db.SuspendedClients + ") AND "
	due, err := pg.One[*time.Time](ctx, d, "look for the next report", pg.SQL(
		"SELECT least("+first+pendingReports[0]+"), "+first+pendingReports[1]+"))"))
	return domain.OrZero(due), due != nil, err
}

// RequeueReport releases a lease and makes the report due again at a time. failed reports whether the try failed. It
// returns db.ErrLeaseLost if the lease is no longer held.
func RequeueReport(ctx context.Context, d *db.DB, l ReportLease, at time.Time, failed bool) error {
	return pg.RunOr(ctx, d, db.ErrLeaseLost, "put a report back", pg.SQL(`
		UPDATE reports SET lease = NULL, due_at = ?at, tries = tries + ?failed::integer
		WHERE client_id = ?client AND id = ?report AND lease = ?token`, pg.Named{
		"client": l.Client, "report": l.Report, "token": l.Token, "at": at, "failed": pg.Number(failed),
	}))
}
