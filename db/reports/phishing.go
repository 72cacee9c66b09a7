package reports

import (
	"context"
	"iter"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The functions of this package that take a Tenant are for Tenant.Snapshot, whose
// transaction those that return a sequence need.

// reportedUsers are the users of a report about every user (decisions 8.9), alias
// u, in its order: the active ones of the client ?0 by their name and address. Rows
// that are looked up for each of them stay in that order without being sorted.
const reportedUsers = `(
		SELECT id, first_name, last_name, email, department, name_key, next_due_on, next_course_id FROM users
		WHERE client_id = ?0 AND status = 'active' ORDER BY name_key, email
	) AS u`

// person are the columns of a domain.Person.
const person = "u.first_name, u.last_name, u.email, u.department"

// phishingCounts counts the simulated mails of the rows r of phishing_results, as
// phishing_days does for a day.
const phishingCounts = `count(*) AS sent, count(*) FILTER (WHERE r.status <> 'sent') AS opened,
			count(*) FILTER (WHERE r.status IN ('attachment_opened', 'clicked', 'credentials_submitted')) AS clicked,
			count(*) FILTER (WHERE r.reported) AS reported, count(r.credentials_submitted_at) AS credentials_submitted,
			count(r.attachment_opened_at) AS attachments_opened`

// PhishedMonths counts the simulated mails of a period by the month of sending.
// Months without any are left out.
func PhishedMonths(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]domain.PhishedMonth, error) {
	return pg.All[domain.PhishedMonth](ctx, t.DB(), "count simulated mails by month", pg.SQL(`
		SELECT date_trunc('month', day::timestamp)::date AS month, sum(sent) AS sent, sum(opened) AS opened,
			sum(clicked) AS clicked, sum(reported) AS reported, sum(credentials_submitted) AS credentials_submitted,
			sum(attachments_opened) AS attachments_opened
		FROM phishing_days WHERE client_id = ? AND day BETWEEN ? AND ? GROUP BY 1 ORDER BY 1`, t.ID, p.Start, p.End))
}

// PhishedCategories counts the simulated mails of a period by the category of
// their template.
func PhishedCategories(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]domain.PhishedCategory, error) {
	since, until := p.Within()
	return pg.All[domain.PhishedCategory](ctx, t.DB(), "count simulated mails by category", pg.SQL(`
		SELECT m.category, `+phishingCounts+`
		FROM phishing_results AS r JOIN phishing_templates AS m ON m.id = r.template_id
		WHERE r.client_id = ? AND r.sent_at >= ? AND r.sent_at < ?
		GROUP BY m.category ORDER BY m.category COLLATE "C"`, t.ID, since, until))
}

// RepeatClickers are the users, inactive ones too, who fell for two or more of the
// simulated mails of a period: those who fell for the most first.
func RepeatClickers(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) iter.Seq2[domain.RepeatClicker, error] {
	since, until := p.Within()
	return pg.Each[domain.RepeatClicker](ctx, t.DB(), "read repeat clickers", pg.SQL(`
		WITH repeated AS (
			SELECT user_id, count(*) AS clicked,
				max(greatest(clicked_at, credentials_submitted_at, attachment_opened_at)) AS last_clicked_at
			FROM phishing_results
			WHERE client_id = ?0 AND sent_at >= ?1 AND sent_at < ?2
				AND (clicked_at IS NOT NULL OR credentials_submitted_at IS NOT NULL OR attachment_opened_at IS NOT NULL)
			GROUP BY user_id HAVING count(*) > 1
		)
		SELECT `+person+`, u.status, n.sent, c.clicked, c.last_clicked_at
		FROM repeated AS c JOIN users AS u ON u.client_id = ?0 AND u.id = c.user_id
		CROSS JOIN LATERAL (
			SELECT count(*) AS sent FROM phishing_results AS r
			WHERE r.client_id = ?0 AND r.user_id = c.user_id AND r.sent_at >= ?1 AND r.sent_at < ?2
		) AS n
		ORDER BY c.clicked DESC, u.name_key, u.email`, t.ID, since, until))
}

// CountRepeatClickers counts them.
func CountRepeatClickers(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) (int, error) {
	since, until := p.Within()
	return pg.One[int](ctx, t.DB(), "count repeat clickers", pg.SQL(`
		SELECT count(*) FROM (
			SELECT FROM phishing_results WHERE client_id = ? AND sent_at >= ? AND sent_at < ?
				AND (clicked_at IS NOT NULL OR credentials_submitted_at IS NOT NULL OR attachment_opened_at IS NOT NULL)
			GROUP BY user_id HAVING count(*) > 1
		) AS repeated`, t.ID, since, until))
}

// PhishedUsers counts the simulated mails of a period for every active user.
func PhishedUsers(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) iter.Seq2[domain.PhishedUser, error] {
	since, until := p.Within()
	return pg.Each[domain.PhishedUser](ctx, t.DB(), "count simulated mails by user", pg.SQL(`
		SELECT `+person+`, n.* FROM `+reportedUsers+`
		CROSS JOIN LATERAL (
			SELECT `+phishingCounts+` FROM phishing_results AS r
			WHERE r.client_id = ?0 AND r.user_id = u.id AND r.sent_at >= ?1 AND r.sent_at < ?2
		) AS n
		ORDER BY u.name_key, u.email`, t.ID, since, until))
}
