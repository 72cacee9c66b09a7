package main

import (
	"strings"
	"testing"

	"partnerapi/db/dbtest"
)

// TestMigrateSaysWhatIsToCome: without changing anything, and with what is locked.
func TestMigrateSaysWhatIsToCome(t *testing.T) {
	t.Parallel()
	flag := "--database-url=" + dbtest.URL(t, emptySchema)
	for range 2 {
		says(t, must(t, "migrate", "--dry-run", flag),
			"missing 00001_core.sql\n", "missing 00021_users.sql\n        locks users: ACCESS EXCLUSIVE, about 1s (0 rows)\n",
			"missing 00030_keys.go\n        locks partners: SHARE ROW EXCLUSIVE, ", "locks clients: ACCESS EXCLUSIVE, a moment\n",
			"        takes away: programs of before 00023 ", "missing 00068_recounts.sql\n")
	}
	must(t, "migrate", flag)
	if got := must(t, "migrate", "--dry-run", flag); got != "nothing to do: the tables are up to date\n" {
		t.Errorf("afterwards: %s", got)
	}
	if got := must(t, "migrate", "--status", flag); strings.Contains(got, "missing") || !strings.HasPrefix(got, "applied 00001_core.sql\n") {
		t.Errorf("afterwards: %s", got)
	}
	if got := must(t, "migrate", "--dry-run", "--json", flag); got != `{"migrations":[]}`+"\n" {
		t.Errorf("as JSON: %s", got)
	}

	// Two rows with one name since an upgrade are listed as long as both have it.
	tables := opened(t, flag).SQL()
	change := func(statement string) {
		t.Helper()
		if _, err := tables.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	change(`INSERT INTO partners (id, name, name_key, created_at) SELECT id, name, key, now() FROM (VALUES
		('01890000-0000-7000-8000-000000000001'::uuid, 'Straße', 'strasse'),
		('01890000-0000-7000-8000-000000000002', 'STRASSE', 'strasse 01890000-0000-7000-8000-000000000002')) AS p (id, name, key)`)
	says(t, must(t, "migrate", "--status", flag), "clash: partner ", `("STRASSE") has the name or address of partner `)
	says(t, must(t, "migrate", "--status", "--json", flag), `"clashes":[{"kind":"partner",`)
	change(`UPDATE partners SET name = 'Other', name_key = 'other' WHERE name_key = 'strasse'`)
	if got := must(t, "migrate", "--status", flag); strings.Contains(got, "clash") {
		t.Errorf("after one was renamed: %s", got)
	}
}
