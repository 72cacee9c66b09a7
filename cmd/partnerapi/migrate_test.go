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
		says(t, must(t, "migrate", "--dry-run", flag), "missing 00001_schema.sql\n")
		says(t, must(t, "migrate", "--dry-run", flag), "missing v1/0001_schema.sql\n        locks clients: SHARE ROW EXCLUSIVE, a moment\n") // v1-line
	}
	must(t, "migrate", flag)
	if got := must(t, "migrate", "--dry-run", flag); got != "nothing to do: the tables are up to date\n" {
		t.Errorf("afterwards: %s", got)
	}
	if got := must(t, "migrate", "--status", flag); strings.Contains(got, "missing") || !strings.HasPrefix(got, "applied 00001_schema.sql\n") {
		t.Errorf("afterwards: %s", got)
	}
	if got := must(t, "migrate", "--dry-run", "--json", flag); got != `{"migrations":[]}`+"\n" {
		t.Errorf("as JSON: %s", got)
	}
}

// TestDatabasesOfBefore: every command refuses a database of a version before 1.0, and
// says the way.
func TestDatabasesOfBefore(t *testing.T) {
	t.Parallel()
	flag := "--database-url=" + dbtest.URL(t, emptySchema)
	execute(t, opened(t, flag), `CREATE TABLE migrations AS SELECT 98 AS version_id, true AS is_applied`)
	for _, args := range [][]string{
		{"migrate"}, {"migrate", "--status"}, {"migrate", "--dry-run"}, {"keys", "list"}, {"work"},
		{"serve", "--listen=127.0.0.1:0"}, {"serve", "--no-migrate", "--listen=127.0.0.1:0"}, {"serve", "--demo", "--listen=127.0.0.1:0"},
	} {
		refused(t, 1, append(args, flag), "before 1.0", "export", "import", "no keys", "docs/versions.md")
	}
}
