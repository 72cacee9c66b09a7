package db_test

import (
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
)

// BenchmarkEvaluate evaluates framework assignments of clients whose users have
// eight courses, six simulated mails and three policies each: 1,000 of 100 clients
// of 1,000 users, and ten of one client of 50,000.
func BenchmarkEvaluate(b *testing.B) {
	for _, size := range []struct {
		name           string
		clients, users int
	}{{"1000 assignments", 100, 1000}, {"50000 users", 1, 50_000}} {
		b.Run(size.name, func(b *testing.B) {
			w := newWorld(b)
			fillFollowed(w, size.clients, size.users)
			for b.Loop() {
				w.Must(db.EvaluateAll(b.Context(), w.DB))
			}
		})
	}
}

// fillFollowed adds clients with users, each of whom has done most of what ten
// frameworks ask for.
func fillFollowed(w *world, clients, users int) {
	w.T.Helper()
	w.Add("phishing_templates", row{"id": domain.TemplateID{15: 1}})
	for range clients {
		client := w.AddClient()
		w.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language,
				source, score, next_due_on, created_at, updated_at)
			SELECT $1, gen_random_uuid(), n || '@example.com', 'A', 'B', 'a b', 'active',
				(ARRAY['standard', 'admin', 'finance'])[1 + n % 3], 'en', 'api', 700,
				$2::timestamptz::date - 5 + n % 100, $2::timestamptz - n % 500 * interval '1 day', $2
			FROM generate_series(1, $3::integer) AS n`, client, noon, users)
		w.Exec(`INSERT INTO policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, reviewed_at,
				created_at, updated_at)
			SELECT $1, uuid_v7($2), 'P', 'tenant', $1, true, $2, $2, $2 FROM generate_series(1, 3)`, client, noon)
		w.Exec(`INSERT INTO framework_assignments (client_id, id, framework_id, audience_type, policies, created_at)
			SELECT $1, uuid_v7($2), id, 'all', true, $2 FROM unnest($3::text[]) AS f (id)`, client, noon, tenFrameworks())
	}
	w.Exec(`INSERT INTO policy_signatures (client_id, policy_id, user_id, version, signed_at)
		SELECT p.client_id, p.id, u.id, 1, $1::timestamptz - random() * interval '370 days'
		FROM policies AS p JOIN users AS u ON u.client_id = p.client_id`, noon)
	w.Exec(`INSERT INTO assignments (client_id, user_id, course_id, position, assigned_at, due_on, completed_at)
		SELECT u.client_id, u.id, c.id, 1, $1::timestamptz, $1::timestamptz::date,
			$1::timestamptz - random() * interval '400 days'
		FROM users AS u CROSS JOIN (SELECT id FROM courses ORDER BY id DESC LIMIT 8) AS c`, noon)
	w.Exec(`INSERT INTO phishing_results (client_id, id, user_id, template_id, status, send_at, created_at, updated_at,
			sent_at, clicked_at)
		SELECT client_id, gen_random_uuid(), user_id, $2::uuid, CASE WHEN fell THEN 'clicked' ELSE 'sent' END, at, at, at, at,
			CASE WHEN fell THEN at END
		FROM (
			SELECT u.client_id, u.id AS user_id, $1::timestamptz - n * interval '60 days' AS at, random() < 0.1 AS fell
			FROM users AS u CROSS JOIN generate_series(1, 6) AS n
		) AS r`, noon, domain.TemplateID{15: 1}.UUID())
	w.Exec("ANALYZE")
}

func tenFrameworks() []string {
	var ids []string
	for _, f := range domain.Frameworks[:10] {
		ids = append(ids, f.ID)
	}
	return ids
}
