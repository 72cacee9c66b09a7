package reports

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// QueueMonthlyReports inserts the reports of the last month for the clients that have them mailed, and returns their
// number. It does so once a month: on the first day or, if no process ran then, up to domain.MailCauseLife later. At
// other times, and while the clock is not trusted (db.DB.ClockTrusted), it inserts none. The reports do not count
// towards the limit of a client.
func QueueMonthlyReports(ctx context.Context, d *db.DB) (n int, err error) {
	now := d.Now()
	if trusted, err := d.ClockTrusted(ctx, now); err != nil || !trusted {
		return 0, err
	}
	today := domain.DateOf(now)
	period := domain.MonthlyReport.DefaultPeriod(today)
	month := period.End.AddDays(1)
	if now.Sub(month.Time()) > domain.MailCauseLife {
		return 0, nil
	}

	err = d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		first, err := pg.Exec(ctx, c, "begin a monthly mailing", pg.SQL(
			"INSERT INTO monthly_mailings (month, queued_at) VALUES (?, ?) ON CONFLICT DO NOTHING", month, c.At))
		if err != nil || first == 0 {
			return err
		}
		n, err = pg.Exec(ctx, c, "add monthly reports", pg.SQL(`
			INSERT INTO reports
				(client_id, id, type, format, status, period_start, period_end, mailed_for, created_at, updated_at)
			SELECT s.client_id, uuid_v7(?now::timestamptz), ?monthlyReport, ?pdf, ?reportPending, ?start::date, ?end::date, ?start::date, ?now, ?now
			FROM mail_switches AS s JOIN clients AS c ON c.id = s.client_id AND c.archived_at IS NULL
			WHERE s.kind = ?monthlyReportMail AND s.enabled ORDER BY s.client_id
			ON CONFLICT (client_id, mailed_for) WHERE mailed_for IS NOT NULL DO NOTHING`, // another cell may have made one before the partner moved
			pg.Named{
				"now": c.At, "monthlyReport": domain.MonthlyReport, "pdf": domain.PDF,
				"reportPending": domain.ReportPending, "start": period.Start, "end": period.End,
				"monthlyReportMail": domain.MonthlyReportMail,
			}))
		if err != nil || n == 0 {
			return err
		}
		return c.NotifyReports(ctx)
	})
	return n, err
}

// mailMonthly requests the emails about a report to the client's admins, if it is a monthly one, which has mailed_for.
func mailMonthly(ctx context.Context, c *db.Change, client domain.ClientID, report domain.ReportID) error {
	admins, err := pg.All[domain.AdminID](ctx, c, "list the admins for a monthly report", pg.SQL(`
		SELECT a.id FROM admins AS a JOIN reports AS r USING (client_id)
		WHERE r.client_id = ? AND r.id = ? AND r.mailed_for IS NOT NULL ORDER BY a.id`, client, report))
	for _, admin := range admins {
		c.RequestMail(domain.UserKey{Client: client}, c.At,
			db.MailRequest{Type: domain.MonthlyReportMail, AdminID: admin.UUID(), ReportID: report.UUID()})
	}
	return err
}
