package migrate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/migrate"
	"partnerapi/domain"
)

// insertOfRelease is how 1.0 inserts a user, an admin and an invite of the same address, n days after the others.
var insertOfRelease = []string{
	`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score,
			created_at, updated_at)
		SELECT id, gen_random_uuid(), $1, 'A', '', 'a', 'active', 'standard', 'en', 'api', 1, created_at + $2 * interval '1 day', now() FROM clients`,
	`INSERT INTO admins (id, partner_id, client_id, email, name, role, created_at)
		SELECT gen_random_uuid(), partner_id, id, $1, 'A', 'admin', created_at + $2 * interval '1 day' FROM clients`,
	`INSERT INTO admin_invites (client_id, id, email, role, created_at, expires_at)
		SELECT id, gen_random_uuid(), $1, 'admin', created_at + $2 * interval '1 day', now() + interval '7 days' FROM clients`,
}

// atRelease opens a database with the tables of 1.0 and a partner.
func atRelease(t *testing.T) *worldtest.World {
	t.Helper()
	d, err := db.Open(dbtest.URL(t, noTables))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	w := worldtest.Of(t, d, nil)
	if _, err := migrate.Released().Up(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	w.Exec("INSERT INTO partners (id, name, name_key, created_at) VALUES (gen_random_uuid(), 'P', 'p', now())")
	return w
}

// TestEmailKeysOfReleaseBefore verifies the migration of a database with addresses of 1.0, also with two of the same key,
// and then what 1.0 does alongside this version: it inserts addresses and changes them, and nothing of that fails.
func TestEmailKeysOfReleaseBefore(t *testing.T) {
	t.Parallel()
	w := atRelease(t)
	d := w.DB
	w.Exec(`INSERT INTO clients (id, partner_id, name, name_key, created_at, updated_at, summarized_at)
		SELECT gen_random_uuid(), id, 'C', 'c', now(), now(), now() FROM partners`)
	days := 0
	insert := func(emails ...string) {
		t.Helper()
		for _, email := range emails {
			days++
			for _, statement := range insertOfRelease {
				w.Exec(statement, email, days)
			}
		}
	}
	const claims, shared, unsettled = "", "shared", "unsettled"
	check := func(when string, want map[string]string) {
		t.Helper()
		for _, table := range []string{"users", "admins"} {
			rows, err := d.SQL().Query("SELECT email, coalesce(email_key, email), coalesce(email_state, '') FROM " + table)
			w.Must(err)
			seen := 0
			for ; rows.Next(); seen++ {
				var email, key, state string
				w.Must(rows.Scan(&email, &key, &state))
				wanted, known := want[email]
				if wantKey := domain.EmailKey(email); !known || state != wanted || wanted != unsettled && key != wantKey {
					t.Errorf("%s: %q of %s has the key %q and the state %q, not %q and %q", when, email, table, key, state, wantKey, wanted)
				}
			}
			w.Must(rows.Err())
			if seen != len(want) {
				t.Errorf("%s: %d of %d %s", when, seen, len(want), table)
			}
		}
	}
	settle := func(want int) {
		t.Helper()
		n, err := d.SettleEmails(t.Context())
		if err != nil || n != want {
			t.Fatalf("%d addresses are settled, not %d: %v", n, want, err)
		}
		if n, err = d.SettleEmails(t.Context()); n != 0 || err != nil {
			t.Fatalf("%d addresses are settled again: %v", n, err)
		}
	}

	insert("ada@example.com", "νίκος@example.com", "νίκοσ@example.com", "straße@example.com", "strasse@example.com",
		"x@xn--bcher-kva.example", "é@example.com", "fin@example.com", "ﬁn@example.com", "=bob@example.com")
	applied, err := migrate.Up(t.Context(), d)
	if err != nil || !slices.Contains(applied, "00005_key_emails.go") {
		t.Fatal(applied, err)
	}
	want := map[string]string{
		"ada@example.com": claims, "νίκος@example.com": shared, "νίκοσ@example.com": claims, "straße@example.com": shared,
		"strasse@example.com": claims, "x@xn--bcher-kva.example": claims, "é@example.com": claims, "fin@example.com": claims,
		"ﬁn@example.com": shared, "=bob@example.com": claims,
	}
	check("after the migration", want)
	if n := w.Number("SELECT count(*) FROM admin_invites WHERE email_key IS NOT NULL"); n != 6 {
		t.Errorf("%d invites have a key", n)
	}
	settle(0)

	insert("eve@example.com", "ſtrasse@example.com", "ö@example.com")
	for _, email := range []string{"eve@example.com", "ſtrasse@example.com", "ö@example.com"} {
		want[email] = unsettled
	}
	check("after inserts of 1.0", want)
	settle(2*3 + 2) // of the invites those that are not plain
	want["eve@example.com"], want["ſtrasse@example.com"], want["ö@example.com"] = claims, shared, claims
	check("after the background work", want)

	// 1.0 changes addresses, directly and by placeholders. The rows claim nothing until they are settled, so that no
	// change fails: Ada gets the key of others, and a user of whom a key is stored gets an address in ASCII.
	for _, table := range []string{"users", "admins"} {
		for _, change := range [][2]string{
			{"ada@example.com", "ﬁN@example.com"}, {"é@example.com", "plain@example.com"}, {"ö@example.com", "ä@example.com"},
			{"=bob@example.com", "=eve@example.com"},
		} {
			w.Exec(fmt.Sprintf("UPDATE %s SET email = $2 WHERE email = $1", table), change[0], change[1])
		}
		w.Exec(fmt.Sprintf("UPDATE %s SET email = '~' || id WHERE email LIKE 'str%%@example.com'", table))
		w.Exec(fmt.Sprintf("UPDATE %s SET email = 's' || row || '@example.com' FROM (SELECT id AS of, row_number() OVER (ORDER BY id) AS row FROM %[1]s WHERE email LIKE '~%%') AS r WHERE id = of", table))
	}
	for _, old := range []string{"ada@example.com", "é@example.com", "ö@example.com", "=bob@example.com", "straße@example.com", "strasse@example.com"} {
		delete(want, old)
	}
	for _, email := range []string{"ﬁN@example.com", "plain@example.com", "ä@example.com", "=eve@example.com", "s1@example.com", "s2@example.com"} {
		want[email] = unsettled
	}
	check("after changes of 1.0", want)
	settle(2 * 6)
	for email, state := range want {
		if want[email] = state; state == unsettled {
			want[email] = claims
		}
	}
	want["ﬁN@example.com"] = shared
	check("at the end", want)

	_, err = d.SQL().Exec("UPDATE users SET email_state = NULL WHERE email = 'ﬁN@example.com'")
	if err == nil || !strings.Contains(err.Error(), "users_email_key_unique") {
		t.Errorf("two users claim a key: %v", err)
	}
}
