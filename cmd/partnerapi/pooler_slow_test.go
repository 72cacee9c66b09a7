//go:build slow

package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/db/reports"
)

// TestPoolers: serve, work and the other commands do their work behind a PgBouncer, whatever its mode, if they have the
// server's own address too.
func TestPoolers(t *testing.T) {
	t.Parallel()
	for mode, connections := range map[string]int{"session": 80, "transaction": 3} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			server := dbtest.URL(t, demoSchema)
			pooled := "--database-url=" + dbtest.PgBouncer(t, server, mode, connections)
			for _, args := range [][]string{{"serve", "--listen=127.0.0.1:0"}, {"work"}, {"migrate"}, {"keys", "list"}, {"export"}} {
				refused(t, 1, append(args, pooled), "--database-url leads to a pooler", "--direct-database-url")
				refused(t, 1, append(args, pooled, "--direct-"+pooled[2:]), "--direct-database-url leads to a pooler")
			}
			if r := command(t, "doctor", pooled); r.code != 1 || !strings.Contains(r.out, "\nfail  pooler ") || !strings.Contains(r.out, "set --direct-database-url") {
				t.Errorf("doctor: exit %d, %s", r.code, r.out)
			}
			refused(t, 1, []string{"keys", "list", pooled, "--direct-database-url=" + dbtest.URL(t, tablesSchema)}, "lead to different databases")
			commandsBehind(t, server, pooled, "--direct-database-url="+server)
		})
	}
}

// commandsBehind uses the demonstration by way of a pooler. That 16 clients share its connections is TestBehindPooler
// of v2.
func commandsBehind(t *testing.T, server string, flags ...string) {
	t.Helper()
	with := func(args ...string) []string { return append(args, flags...) }
	must(t, with("migrate")...)
	must(t, with("seed", "--clients=2", "--users=20")...)
	if r := command(t, with("doctor")...); strings.Contains(r.out, "fail  pooler") || strings.Contains(r.out, "fail  connections") {
		t.Errorf("doctor: %s", r.out)
	}
	lines := filepath.Join(t.TempDir(), "lines.ndjson")
	must(t, with("export", lines, "--partner=Tidewater Demo MSP")...)
	if r := command(t, with("import", lines)...); !strings.Contains(r.out, " 0 updated, ") {
		t.Errorf("import: exit %d, %s%s", r.code, r.out, r.err)
	}

	work := inProcess(t, with("work", "--data-dir="+t.TempDir(), "--connections=5")...)
	r := serving(t, with("--demo", "--no-work", "--release=latest", "--connections=16")...)
	list := "/v2/clients/" + oldestClient(r) + "/reports"
	r.do("POST", list, "pk_demo_all", fields{"type": "executive_summary", "format": "pdf"}).want(http.StatusCreated)
	if older() {
		r.get("/v1/clients?limit=5", "pk_demo_all").want(http.StatusOK)
	}
	d := opened(t, server)
	await(t, "all reports are made", func() bool {
		pending, err := reports.PendingReports(t.Context(), d, d.Now(), 1)
		if err != nil {
			t.Fatal(err)
		}
		return len(pending) == 0
	})
	r.finish()
	work.finish()
	if strings.Contains(r.logs.String(), "level=ERROR") {
		t.Error(r.logs)
	}
}
