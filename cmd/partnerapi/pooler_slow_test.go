//go:build slow

package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"partnerapi/db/dbtest"
	"partnerapi/db/reports"
)

// TestPoolers: serve, work and the other commands do their work behind a PgBouncer, also
// where transactions share three connections of the server; then only with its own
// address.
func TestPoolers(t *testing.T) {
	t.Parallel()
	t.Run("session", func(t *testing.T) {
		t.Parallel()
		server := dbtest.URL(t, demoSchema)
		commandsBehind(t, server, "--database-url="+dbtest.PgBouncer(t, server, "session", 80))
	})
	t.Run("transaction", func(t *testing.T) {
		t.Parallel()
		server := dbtest.URL(t, demoSchema)
		pooled := "--database-url=" + dbtest.PgBouncer(t, server, "transaction", 3)
		for _, args := range [][]string{{"serve", "--listen=127.0.0.1:0"}, {"work"}, {"migrate"}, {"keys", "list"}, {"export"}} {
			refused(t, 1, append(args, pooled), "a pooler in transaction mode", "--direct-database-url", "pool_mode = session")
			refused(t, 1, append(args, pooled, "--direct-"+pooled[2:]), "--direct-database-url leads to a pooler in transaction mode")
		}
		if r := command(t, "doctor", pooled); r.code != 1 || !strings.Contains(r.out, "\nfail  pooler ") || !strings.Contains(r.out, "pool_mode = session") {
			t.Errorf("doctor: exit %d, %s", r.code, r.out)
		}
		refused(t, 1, []string{"keys", "list", pooled, "--direct-database-url=" + dbtest.URL(t, tablesSchema)}, "another database")
		commandsBehind(t, server, pooled, "--direct-database-url="+server)
	})
}

// commandsBehind uses the demonstration by way of a pooler.
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

	var work sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	work.Go(func() {
		logs := newTranscript()
		if code := run(ctx, with("work", "--data-dir="+t.TempDir(), "--connections=5"), nil, logs, logs); code != 0 {
			t.Errorf("work: exit %d: %s", code, logs)
		}
	})
	defer work.Wait()
	defer stop()
	r := serving(t, with("--demo", "--no-work", "--release=latest", "--connections=16")...)
	useAtOnce(r)
	d := opened(t, server)
	for deadline := time.Now().Add(patience); ; {
		pending, err := reports.PendingReports(t.Context(), d, d.Now(), 1)
		if err != nil || time.Now().After(deadline) {
			t.Fatal("reports are pending ", err)
		}
		if len(pending) == 0 {
			break
		}
	}
	r.finish()
	if strings.Contains(r.logs.String(), "level=ERROR") {
		t.Error(r.logs)
	}
}

// useAtOnce asks for a report, and has 16 clients read and write.
func useAtOnce(r *running) {
	r.t.Helper()
	const key = "pk_demo_all"
	client := fmt.Sprint(into[struct{ Data []map[string]any }](r.get("/v2/clients?limit=1", key).want(http.StatusOK)).Data[0]["id"])
	list := "/v2/clients/" + client + "/reports"
	r.do("POST", list, key, map[string]any{"type": "executive_summary", "format": "pdf"}).want(http.StatusCreated)
	reads := []string{"/v2/clients?limit=5", "/v2/clients/" + client + "/users?limit=5", "/v2/clients/" + client + "/risk", list, "/v2/events?limit=5"}
	if older() {
		reads = append(reads, "/v1/clients?limit=5")
	}
	var clients sync.WaitGroup
	for n := range 16 {
		clients.Go(func() {
			for i := range 6 {
				r.expect(http.StatusCreated, "POST", "/v2/clients", key, func(try int) any {
					return map[string]any{"name": fmt.Sprintf("Client %d of %d, try %d", i, n, try)}
				})
				r.expect(http.StatusOK, "GET", reads[(i+n)%len(reads)], key, func(int) any { return nil })
			}
		})
	}
	clients.Wait()
}

// expect sends a request of one of several clients, and wants it answered with a status. It
// is sent again while a busy machine makes the service answer 503.
func (r *running) expect(status int, method, path, key string, body func(try int) any) {
	for try, deadline := 0, time.Now().Add(patience); ; try++ {
		answer, err := r.client.try(method, path, key, body(try))
		if err == nil && answer.status == http.StatusServiceUnavailable && time.Now().Before(deadline) {
			continue
		}
		if err != nil || answer.status != status && answer.status != http.StatusTooManyRequests {
			r.t.Errorf("%s %s: %d %s, %v", method, path, answer.status, answer.body, err)
		}
		return
	}
}
