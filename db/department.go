package db

import (
	"context"
	"unicode"

	"github.com/google/uuid"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// departmentRow is a department with its place in the list.
type departmentRow struct {
	Place    string
	Spelling *string

	Users, Active, Scores, Overdue int
	Sent, Clicked                  int
}

// department returns the department. White space that an earlier release stored around it is removed.
func (r *departmentRow) department() domain.Department {
	d := domain.Department{
		Users: r.Users, Active: r.Active, Scores: r.Scores, Overdue: r.Overdue, Sent: r.Sent, Clicked: r.Clicked,
	}
	if r.Place != noDepartment {
		d.Name = r.Spelling
	}
	return d
}

// whiteSpace holds the characters that domain.CleanName removes.
var whiteSpace = func() string {
	var all []rune
	for c := rune(0); c <= '\u3000'; c++ {
		if unicode.IsSpace(c) {
			all = append(all, c)
		}
	}
	return string(all)
}()

// departmentsSQL reads ?limit departments of ?client after ?after, by their places. mode returns the first of several
// spellings that as many users have. A user is overdue as in summarySQL, and the simulated emails are those that it counts
// for 90 days: an email was clicked if the user fell for it (domain.Result.FellAt).
//
// The users are read in the order of their departments, up to the last one of the page. Emails are counted on indexes
// alone: for each user of the page, and the few that users fell for, for the whole client.
var departmentsSQL = `
	WITH page AS MATERIALIZED (
		SELECT ` + departmentPlace + ` AS place, count(*) AS users, count(*) FILTER (WHERE u.status = 'active') AS active,
			coalesce(sum(u.score) FILTER (WHERE u.status = 'active'), 0) AS scores,
			count(*) FILTER (WHERE u.status = 'active' AND u.next_due_on < ?today::date) AS overdue,
			mode() WITHIN GROUP (ORDER BY btrim(u.department, ?whiteSpace) COLLATE "C") FILTER (WHERE u.status = 'active') AS spelling,
			min(btrim(u.department, ?whiteSpace) COLLATE "C") AS any_spelling, coalesce(sum(r.sent), 0) AS sent
		FROM users AS u LEFT JOIN LATERAL (
			SELECT count(*) AS sent FROM phishing_results AS r
			WHERE r.client_id = u.client_id AND r.user_id = u.id AND r.sent_at >= (?today::date - 89)::timestamptz
		) AS r ON u.status = 'active'
		WHERE u.client_id = ?client AND ` + departmentPlace + ` > ?after GROUP BY 1 ORDER BY 1 LIMIT ?limit
	), clicks AS (
		SELECT ` + departmentPlace + ` AS place, sum(r.clicked) AS clicked
		FROM (
			SELECT r.user_id, count(*) AS clicked FROM phishing_results AS r
			WHERE r.client_id = ?client AND r.sent_at >= (?today::date - 89)::timestamptz
				AND ` + FellFor + `
			GROUP BY 1
		) AS r JOIN users AS u ON u.client_id = ?client AND u.id = r.user_id AND u.status = 'active' GROUP BY 1
	)
	SELECT p.place, coalesce(p.spelling, p.any_spelling) AS spelling, p.users, p.active, p.scores, p.overdue, p.sent,
		coalesce(c.clicked, 0) AS clicked
	FROM page AS p LEFT JOIN clicks AS c ON c.place = p.place ORDER BY p.place`

// Departments reads a page of the departments of the client's users, in the order of their keys (decisions 2.8). The
// users without a department come last.
func (t *Tenant) Departments(ctx context.Context, w domain.Window) (domain.Slice[domain.Department], error) {
	after := ""
	if w.After != nil {
		after = w.After.Key
	}
	rows, err := pg.All[departmentRow](ctx, t.db, "read a page of departments", pg.SQL(departmentsSQL, pg.Named{
		"client": t.ID, "today": domain.DateOf(t.db.Now()), "whiteSpace": whiteSpace, "after": after, "limit": w.Limit + 1,
	}))
	page := pg.SliceOf(rows, w, func(r *departmentRow) domain.Position {
		return domain.Position{Key: r.Place, ID: uuid.Nil.String()}
	})
	return pg.Map(page, (*departmentRow).department), err
}
