//go:build slow

package v2_test

import (
	"fmt"
	"strings"
	"testing"

	"partnerapi/domain"
)

// TestClientTrainingOfMany: of many assignments, those with a status, a completion or a change
// in weeks or years are found, in the order of the list.
func TestClientTrainingOfMany(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 1)
	w.Exec("DELETE FROM assignments WHERE client_id = $1", w.client.ID)
	w.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language,
			source, group_id, score, created_at, updated_at)
		SELECT client_id, md5('many' || n)::uuid, 'many' || n || '@example.com', '', '', '', 'active', role, preferred_language, source,
			group_id, score, created_at, updated_at
		FROM users, generate_series(1, 7000) AS n WHERE client_id = $1`, w.client.ID)
	// Of every twenty users one is to have the course still, half are overdue, and the others
	// have completed it. The last courses are assigned last.
	w.Exec(`INSERT INTO assignments (client_id, user_id, course_id, round, position, assigned_at, due_on, completed_at)
		SELECT u.client_id, u.id, c.id, 1, c.position, '2025-01-01Z'::timestamptz + make_interval(days => 10 * c.position::integer),
			CASE WHEN n % 20 = 0 OR c.position > 4 THEN '2026-07-01'::date + (n % 30)::integer ELSE '2025-09-01'::date END,
			CASE WHEN n % 20 > 10 AND c.position < 5 THEN '2026-03-01Z'::timestamptz + make_interval(hours => n::integer % 1000) END
		FROM (SELECT *, row_number() OVER (ORDER BY id) AS n FROM users WHERE client_id = $1) AS u
		CROSS JOIN (SELECT id, row_number() OVER (ORDER BY id) AS position FROM courses ORDER BY id LIMIT 6) AS c`, w.client.ID)
	for filter, holds := range map[string]string{
		"status=assigned":                      "completed_at IS NULL AND due_on >= '2026-06-15'",
		"status=overdue":                       "completed_at IS NULL AND due_on < '2026-06-15'",
		"status=assigned,overdue":              "completed_at IS NULL",
		"completed_since=2026-03-02T00:00:00Z": "completed_at >= '2026-03-02Z'",
		"completed_until=2026-03-02T00:00:00Z": "completed_at < '2026-03-02Z'",
		"completed_since=2020-01-01T00:00:00Z": "completed_at IS NOT NULL",
		"completed_since=2026-03-20T00:00:00Z&status=completed&user_status=active&course_id=" + course(2).String(): "completed_at >= '2026-03-20Z' AND position = 2",
		"updated_since=2020-01-01T00:00:00Z": "assigned_at IS NOT NULL",
		"updated_since=2026-03-01T00:00:00Z": "completed_at IS NOT NULL",
		"updated_since=2026-04-10T00:00:00Z": "completed_at >= '2026-04-10Z'",
	} {
		want := w.Text(`SELECT string_agg(user_id || ' ' || position, E'\n' ORDER BY assigned_at, user_id, course_id)
			FROM assignments WHERE client_id = $1 AND `+holds, w.client.ID)
		var got []string
		for _, item := range w.All("/v2/clients/"+w.client.ID.String()+"/training/assignments?limit=500&"+filter, w.tenant.Key) {
			got = append(got, fmt.Sprintf("%s %v", idOf[domain.UserKind](t, item["user_id"].(string)).UUID(), item["order"]))
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s: %d assignments, not %d, or in another order", filter, len(got), strings.Count(want, "\n")+1)
		}
	}
}
