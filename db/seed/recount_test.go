//go:build slow

package seed

import (
	"context"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// recounts are queries that count the places where a stored value differs from
// what it sums up, as of the day $1.
var recounts = map[string]string{
	"users.next_due_on": `SELECT count(*) FROM users AS u
		LEFT JOIN LATERAL (
			SELECT due_on, course_id FROM assignments AS a
			WHERE a.client_id = u.client_id AND a.user_id = u.id AND completed_at IS NULL ORDER BY due_on, position LIMIT 1
		) AS n ON true
		WHERE (u.next_due_on, u.next_course_id) IS DISTINCT FROM (n.due_on, n.course_id) OR $1::date IS NULL`,
	"courses whose renewal is due": `SELECT count(*) FROM (
			SELECT DISTINCT ON (client_id, user_id, course_id) * FROM assignments ORDER BY client_id, user_id, course_id, round DESC
		) AS a JOIN courses AS c ON c.id = a.course_id JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id
		WHERE u.status = 'active' AND (a.completed_at + make_interval(months => c.renewal_months))::date <= $1::date`,
	"courses that frameworks ask for": `SELECT count(*) FROM framework_assignments AS f
		JOIN framework_courses AS r USING (framework_id)
		JOIN users AS u ON u.client_id = f.client_id AND u.status = 'active' AND (r.role IS NULL OR r.role = u.role)
		AND (f.audience_type = 'all' OR u.group_id = f.audience_id OR EXISTS (SELECT 1 FROM collection_members AS m
			WHERE m.client_id = f.client_id AND m.collection_id = f.audience_id AND m.user_id = u.id))
		WHERE NOT EXISTS (SELECT 1 FROM assignments AS a WHERE a.client_id = u.client_id AND a.user_id = u.id
			AND a.course_id = r.course_id AND f.id = ANY (a.frameworks)) OR $1::date IS NULL`,
	"courses of other roles": `SELECT count(*) FROM assignments AS a JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id
		WHERE NOT a.from_program AND NOT a.direct AND NOT EXISTS (SELECT 1 FROM framework_assignments AS f
			JOIN framework_courses AS r USING (framework_id)
			WHERE f.id = ANY (a.frameworks) AND r.course_id = a.course_id AND (r.role IS NULL OR r.role = u.role)) OR $1::date IS NULL`,
	"what has not happened yet": `SELECT count(*) FROM (
			SELECT created_at AS at FROM users UNION ALL SELECT updated_at FROM users UNION ALL SELECT updated_at FROM clients
			UNION ALL SELECT completed_at FROM assignments UNION ALL SELECT assigned_at FROM assignments
			UNION ALL SELECT greatest(sent_at, opened_at, clicked_at, credentials_submitted_at, reported_at, created_at, updated_at) FROM phishing_results
			UNION ALL SELECT signed_at FROM policy_signatures UNION ALL SELECT resolved_at FROM exposures UNION ALL SELECT first_seen_at FROM exposures
			UNION ALL SELECT sent_at FROM sent_emails UNION ALL SELECT greatest(reported_at, classified_at) FROM reported_emails
			UNION ALL SELECT added_at FROM collection_members UNION ALL SELECT last_login_at FROM admins UNION ALL SELECT created_at FROM admins
		) AS moments WHERE at > $1::date`,
	"what happened before its user": `SELECT count(*) FROM users AS u WHERE u.created_at < (SELECT created_at FROM clients WHERE id = u.client_id)
		OR u.created_at > (SELECT min(assigned_at) FROM assignments WHERE client_id = u.client_id AND user_id = u.id)
		OR u.created_at > (SELECT min(completed_at) FROM assignments WHERE client_id = u.client_id AND user_id = u.id)
		OR u.created_at > (SELECT min(sent_at) FROM phishing_results WHERE client_id = u.client_id AND user_id = u.id)
		OR u.created_at > (SELECT min(signed_at) FROM policy_signatures WHERE client_id = u.client_id AND user_id = u.id)
		OR u.created_at > (SELECT min(first_seen_at) FROM exposures WHERE client_id = u.client_id AND user_id = u.id)
		OR u.created_at > (SELECT min(sent_at) FROM sent_emails WHERE client_id = u.client_id AND user_id = u.id)
		OR u.created_at > (SELECT min(reported_at) FROM reported_emails WHERE client_id = u.client_id AND user_id = u.id)
		OR $1::date IS NULL`,
}

// wantRecount checks stored values against a recount, and then by what db makes
// of the same rows: its refreshes must find nothing to change.
func wantRecount(t *testing.T, d *db.DB) {
	t.Helper()
	if wrong, err := doctor.Recount(t.Context(), d); err != nil || len(wrong) > 0 {
		t.Errorf("wrong counts: %v, %v", wrong, err)
	}
	for what, query := range recounts {
		if n := value[int](t, d, query, d.Now().Format(time.DateOnly)); n != 0 {
			t.Errorf("%s: %d differ", what, n)
		}
	}
	leaveOut := []string{"computed_at", "summarized_at"}
	before := contents(t, d, leaveOut...)
	rescore(t, d)
	if err := d.ForceSummaries(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := contents(t, d, leaveOut...)
	delete(before, "client_risks") // made with the first summary that db makes
	delete(after, "client_risks")
	wantSame(t, before, after)
	if due, err := d.RefreshDue(t.Context()); err != nil || due {
		t.Errorf("a refresh is due: %v, %v", due, err)
	}
}

// rescore lets db compute the scores of all users.
func rescore(t *testing.T, d *db.DB) {
	t.Helper()
	users, err := pg.All[domain.UserKey](t.Context(), d, "list users", pg.SQL(`SELECT client_id AS client, id AS "user" FROM users`))
	if err != nil {
		t.Fatal(err)
	}
	err = d.Change(t.Context(), func(_ context.Context, c *db.Change) error {
		c.Rescore(users...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
