//go:build slow

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportOutlivesCrash kills an import of several batches in the middle of one: run
// again with the same file it ends as if nothing had happened, and nothing is done
// twice.
func TestImportOutlivesCrash(t *testing.T) {
	t.Parallel()
	const users = 5000
	id := func(n int) string { return fmt.Sprintf("0197cafe-0000-7000-8000-%012d", n) }
	var lines strings.Builder
	fmt.Fprintf(&lines, `{"object":"collection","id":%q,"client":%q,"name":"K","members":[%q]}`+"\n", id(3), id(2), id(10))
	for n := range users {
		fmt.Fprintf(&lines, `{"object":"user","id":%q,"client":%q,"email":"u%d@example.com","created_at":"2025-01-01T00:00:00Z"}`+"\n",
			id(10+n), id(2), n)
	}
	fmt.Fprintf(&lines, `{"object":"client","id":%q,"partner":%q,"name":"C"}`+"\n", id(2), id(1))
	fmt.Fprintf(&lines, `{"object":"partner","id":%q,"name":"P"}`+"\n", id(1))
	file := filepath.Join(t.TempDir(), "objects.ndjson")
	writeFile(t, file, lines.String())

	dir := dataDir(t)
	must(t, "migrate", "--data-dir="+dir)
	d, leave := lookInto(t, dir)
	defer leave()
	d.exec("BEGIN")
	d.exec(fmt.Sprintf("INSERT INTO partners (id, name, name_key, created_at) VALUES ('%s', '', '', now())", id(0)))
	d.exec(fmt.Sprintf(`INSERT INTO clients (id, partner_id, name, name_key, summarized_at, created_at, updated_at)
		VALUES ('%s', '%s', '', '', now(), now(), now())`, id(0), id(0)))
	d.exec(fmt.Sprintf(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role,
			preferred_language, source, score, created_at, updated_at)
		VALUES ('%s', '%s', '', '', '', '', 'active', 'hr', 'en', 'api', 0, now(), now())`, id(0), id(3000)))

	first := spawned(t, "import", "--data-dir="+dir, file)
	d.until(1, "SELECT count(*) FROM (SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted LIMIT 1) AS l")
	first.kill()
	d.exec("ROLLBACK")
	d.hangUp()
	if n := d.number("SELECT count(*) FROM users"); n == 0 || n >= users {
		t.Fatalf("%d users are there", n)
	}

	if out := must(t, "import", "--data-dir="+dir, file); !strings.Contains(out, "unchanged, 0 refused") || strings.Contains(out, " 0 unchanged") {
		t.Error(out)
	}
	for query, want := range map[string]int{
		"SELECT count(*) FROM users":                           users,
		"SELECT users_active FROM clients":                     users,
		"SELECT count(*) FROM user_risks":                      users,
		"SELECT count(*) FROM assignments WHERE overdue_noted": 6 * users,
		"SELECT member_count FROM collections":                 1,
		"SELECT count(*) FROM events":                          0,
		"SELECT count(*) FROM mail_requests":                   0,
		"SELECT count(*) FROM groups WHERE manual":             1,
		"SELECT client_count FROM partners":                    1,
	} {
		if got := d.number(query); got != want {
			t.Errorf("%s: %d, not %d", query, got, want)
		}
	}
}
