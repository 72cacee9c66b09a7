package migrate_test

import (
	"testing"

	"partnerapi/db/migrate"
)

// TestActiveUserDaysOfReleaseBefore verifies what the migration finds in a database of 1.0: the days of the risk history
// on which the number differs, today's number, and the end of archived clients. A change of 1.0 is then counted, and a
// repetition of the migration's statements changes nothing.
func TestActiveUserDaysOfReleaseBefore(t *testing.T) {
	t.Parallel()
	w := atRelease(t)
	d := w.DB
	w.Exec(`INSERT INTO clients (id, partner_id, name, name_key, users_active, archived_at, created_at, updated_at, summarized_at)
		SELECT gen_random_uuid(), id, name, name, users, archived, now() - interval '9 days', now() - interval '9 days', now()
		FROM partners AS p (id, partner), (VALUES ('a', 7, NULL), ('b', 4, now() - interval '2 days'), ('c', 3, now() - interval '2 days'), ('d', 0, NULL))
			AS c (name, users, archived)`)
	w.Exec(`INSERT INTO risk_history (client_id, day, average_score, active_users)
		SELECT c.id, (now() AT TIME ZONE 'UTC')::date - h.age, 700, h.users
		FROM clients AS c JOIN (VALUES ('a', 9, NULL), ('a', 8, 5), ('a', 7, 5), ('a', 5, 6), ('a', 0, 6), ('a', -1, 99), ('b', 5, 4)) AS h (name, age, users)
			ON h.name = c.name`)

	// Each row as name, age in days, highest and last.
	check := func(want string) {
		t.Helper()
		got := w.Text(`SELECT string_agg(concat_ws(' ', c.name, (now() AT TIME ZONE 'UTC')::date - day, active_users_max, active_users_last), ', ' ORDER BY name, day)
			FROM active_user_days AS a JOIN clients AS c ON c.id = a.client_id`)
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if _, err := migrate.Up(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	check("a 8 5 5, a 5 6 6, a 0 7 7, b 5 4 4, b 2 4 0, c 2 3 0, d 0 0 0")
	w.Exec("UPDATE clients SET users_active = users_active + 1, updated_at = now() WHERE name = 'a'")
	w.Exec("UPDATE clients SET users_active = users_active - 2, updated_at = now() WHERE name = 'a'")
	w.Exec("DELETE FROM schema_migrations WHERE version_id >= 21")
	w.Exec("ALTER TABLE webhooks DROP COLUMN sealed_authorization, DROP COLUMN authorization_url")
	if _, err := migrate.Up(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	check("a 8 5 5, a 5 6 6, a 0 8 6, b 5 4 4, b 2 4 0, c 2 3 0, d 0 0 0")
}
