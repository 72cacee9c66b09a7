package outbox

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// readSubject reads into r.Mail what an email is about, as far as the query that read r does not have it.
func readSubject(ctx context.Context, d *db.DB, r *mailRow, kind domain.MailKind) (err error) {
	m := &r.Mail
	switch {
	case r.Round != nil:
		m.CompletedOn, err = readCompletion(ctx, d, *r.Round, m)
	case r.ResultID != nil:
		m.Simulated, err = simulatedMail(ctx, d, m.Client, *r.ResultID)
	case r.BreachName != nil && m.DarkWebMonitoring:
		m.Exposure, err = d.Exposure(ctx, domain.UserKey{Client: m.Client, User: *m.User}, *r.BreachName)
		if domain.IsCode(err, domain.NotFound) {
			m.Exposure, err = domain.Exposure{}, nil
		}
	case kind.Overdue:
		m.Overdue, err = d.OverdueCourses(ctx, domain.UserKey{Client: m.Client, User: *m.User}, m.Language)
	case !m.Report.IsZero() && !m.AdminRemoved:
		m.MonthOf, err = pg.Find[domain.Date](ctx, d, m.Report.Noun(), pg.SQL(
			"SELECT period_start FROM reports WHERE client_id = ? AND id = ?", m.Client, m.Report))
	}
	return err
}

// readCompletion reads the date on which the user completed the round of the course; zero if it is not completed.
func readCompletion(ctx context.Context, d *db.DB, round int, m *domain.Mail) (domain.Date, error) {
	rows, err := pg.All[time.Time](ctx, d, "look for a completion", pg.SQL(`
		SELECT completed_at FROM assignments
		WHERE client_id = ?client AND user_id = ?user AND course_id = ?course AND round = ?round AND completed_at IS NOT NULL`,
		pg.Named{"client": m.Client, "user": *m.User, "course": m.Course, "round": round}))
	if err != nil || len(rows) == 0 {
		return domain.Date{}, err
	}
	return domain.DateOf(rows[0]), nil
}

// simulatedMailRow is the row of a simulated email for the reminder about it.
type simulatedMailRow struct {
	FromEmail, Subject string
	SentAt             time.Time
	Indicators         []domain.Indicator
}

// simulatedMail reads a simulated email as it was sent. Without its record in sent_emails, sender and subject are
// empty: the template has only placeholders for them.
func simulatedMail(
	ctx context.Context, d *db.DB, client domain.ClientID, id domain.ResultID,
) (domain.SimulatedMail, error) {
	row, err := pg.Find[simulatedMailRow](ctx, d, id.Noun(), pg.Prepared(pg.SQL(`
		SELECT coalesce(e.from_email, '') AS from_email, coalesce(e.subject, '') AS subject, r.sent_at, t.indicators
		FROM phishing_results AS r
		LEFT JOIN sent_emails AS e ON e.client_id = r.client_id AND e.user_id = r.user_id AND e.id = r.id
		JOIN phishing_templates AS t ON t.id = r.template_id
		WHERE r.client_id = ? AND r.id = ?`, client, id)))
	if err != nil {
		return domain.SimulatedMail{}, err
	}
	var t domain.Template
	t.Indicators = row.Indicators
	return domain.SimulatedMail{
		From: row.FromEmail, Subject: row.Subject, SentOn: domain.DateOf(row.SentAt), Clues: t.Clues(),
	}, nil
}
