package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// ReportRow is a row of reports.
type ReportRow struct {
	bun.BaseModel `bun:"table:reports,alias:r"`

	domain.Report
	PeriodStart, PeriodEnd domain.Date // zero for none
}

func (r *ReportRow) report() domain.Report {
	report := r.Report
	if !r.PeriodStart.IsZero() {
		report.Period = &domain.ReportPeriod{Start: r.PeriodStart, End: r.PeriodEnd}
	}
	return report
}

// reportList returns the list of a client's reports, in the order of creation.
func reportList(client domain.ClientID) pg.Keyset[ReportRow] {
	k := pg.ByTime("r.created_at", "r.id", func(r *ReportRow) (time.Time, domain.ReportID) { return r.CreatedAt, r.ID })
	k.Where.Add("r.client_id = ?", client)
	return k
}

// Reports reads a page of the client's reports that match the filter, the newest first.
func (t *Tenant) Reports(
	ctx context.Context, f domain.ReportFilter, w domain.Window,
) (domain.Slice[domain.Report], error) {
	k := reportList(t.ID)
	k.Desc = true
	if f.Type != "" {
		k.Where.Add("r.type = ?", f.Type)
	}
	if f.Status != "" {
		k.Where.Add("r.status = ?", f.Status)
	}
	delta, err := pg.DeltaOf(ctx, t.db.DB, f.UpdatedSince, &w)
	if err != nil {
		return domain.Slice[domain.Report]{}, err
	}
	k.Where.Changed(delta, "r.updated_at")
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*ReportRow).report), err
}

// Report reads one of the client's reports.
func (t *Tenant) Report(ctx context.Context, id domain.ReportID) (domain.Report, error) {
	row, err := pg.Find[ReportRow](ctx, t.db, id.Noun(), pg.Prepared(
		pg.Rows[ReportRow]().Apply(pg.Where("r.client_id = ? AND r.id = ?", t.ID, id))))
	return row.report(), err
}

// InsertReport inserts a report, and notifies the processes that make reports. It returns RateLimited if the client has
// reached the limit of requested reports within the window. Failed reports count, and monthly ones, which have a
// mailed_for, do not. The client must be locked (LockTenant), so that concurrent requests count.
func (t *Tenant) InsertReport(ctx context.Context, c *Change, r domain.Report) error {
	recent, err := pg.One[struct {
		Count int
		First *time.Time
	}](ctx, c, "count a client's reports", pg.SQL(`
		SELECT count(*), min(created_at) AS first FROM (
			SELECT created_at FROM reports WHERE client_id = ?client AND created_at > ?since AND mailed_for IS NULL ORDER BY created_at DESC LIMIT ?maxReports
		) AS recent`,
		pg.Named{"client": t.ID, "since": c.At.Add(-domain.ReportWindow), "maxReports": domain.MaxReports}))
	if err != nil {
		return err
	}
	if recent.Count == domain.MaxReports {
		return &domain.Error{
			Code: domain.RateLimited, Object: r.ID.Noun(), RetryAfter: recent.First.Add(domain.ReportWindow).Sub(c.At),
			Message: "this client has reached its limit of 5 reports an hour; retry after the time in Retry-After",
		}
	}

	row := ReportRow{Report: r}
	if r.Period != nil {
		row.PeriodStart, row.PeriodEnd = r.Period.Start, r.Period.End
	}
	if err = pg.Run(ctx, c, "insert a report", pg.Insert(row)); err != nil {
		return err
	}
	return c.NotifyReports(ctx)
}

// ReportChannel is the channel of processes that make reports.
const ReportChannel = "reports"

// NotifyReports notifies, at the commit, the processes that make reports.
func (c *Change) NotifyReports(ctx context.Context) error {
	return pg.Run(ctx, c, "notify of reports", pg.SQL("SELECT pg_notify(?, '')", ReportChannel))
}

// ExpiredReports returns up to n expired reports of all clients, archived ones included, oldest first: none while the
// clock is not trusted (ClockTrusted).
func (d *DB) ExpiredReports(ctx context.Context, n int) ([]domain.Report, error) {
	now := d.Now()
	if trusted, err := d.ClockTrusted(ctx, now); err != nil || !trusted {
		return nil, err
	}
	rows, err := pg.All[ReportRow](ctx, d, "look for expired reports", pg.Limit(pg.Rows[ReportRow]().
		Apply(pg.Where("r.created_at < ?", now.Add(-domain.ReportLife))).OrderExpr("r.created_at"), n))
	return pg.MapRows(rows, (*ReportRow).report), err
}
